package codegen

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// ReproducedRule is what CheckReproduced proves.
var ReproducedRule = plans.Rule{Name: "reproduced", Doc: "this compiler makes the same kernels, pipelines, dispatches and requirements of the op program"}

// Reproducible returns nil if CheckReproduced can judge p, else the reason: another version of the compiler made it,
// or its target is unknown.
func Reproducible(p *plans.Plan) error {
	if want := compilerName(); p.Header.Compiler != want {
		return fmt.Errorf("made by %q, this is %q", p.Header.Compiler, want)
	}
	_, err := target.OfPlan(&p.Header)
	return err
}

// CheckReproduced emits the program of a plan again and returns where the plan differs. The plan must have passed
// plans.Check and be Reproducible. It ignores the answers of the driver's compiler about pipelines. It reads no cache:
// what it judges may have come from there. The error is errors.ErrUnsupported where this computer cannot make the
// plan's code.
func CheckReproduced(ctx context.Context, p *plans.Plan) ([]plans.Problem, error) {
	c := &reproduction{have: p}
	want, err := reproduce(objects.Fresh(ctx), p)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, errors.ErrUnsupported):
		return nil, err
	case err != nil:
		c.add("", "", "%v", err)
		return c.problems, nil
	}
	if err := c.weights(); err != nil {
		return nil, err
	}
	c.modules(want)
	c.pipelines(want)
	for i := range min(len(p.Entries), len(want.Entries)) {
		c.entry(&p.Entries[i], &want.Entries[i])
	}
	want.Require.Memory = p.Require.Memory // rule "memory"
	if !reflect.DeepEqual(p.Require, want.Require) {
		c.add("", "", "requirements are %+v, want %+v", p.Require, want.Require)
	}
	return c.problems, nil
}

// reproduce emits what follows from the program of p, with its memory and weights.
func reproduce(ctx context.Context, p *plans.Plan) (*plans.Plan, error) {
	t, err := target.OfPlan(&p.Header)
	if err != nil {
		return nil, err
	}
	e := newEmitter(p.Program, t, &plans.Plan{Header: p.Header, Memory: p.Memory, Weights: p.Weights, Program: p.Program, Vocab: p.Vocab})
	if err := e.dispatches(ctx); err != nil {
		return nil, err
	}
	return e.plan, nil
}

type reproduction struct {
	have     *plans.Plan
	problems []plans.Problem
}

func (c *reproduction) add(entry, site, format string, args ...any) {
	c.problems = append(c.problems, plans.Problem{Rule: ReproducedRule.Name, Entry: entry, Site: site, Message: fmt.Sprintf(format, args...)})
}

// weights holds the layouts of weights against those that kernels read.
func (c *reproduction) weights() error {
	t, err := target.OfPlan(&c.have.Header)
	if err != nil {
		return err
	}
	want, err := weight.Layouts(t, c.have.Program)
	if err != nil {
		return err
	}
	for _, g := range c.have.Program.Globals {
		if g.Class == ir.Weight && g.Layout != want[g] {
			c.add("", g.Name, "the weight has layout %q, want %q", g.Layout, want[g])
		}
	}
	return nil
}

func (c *reproduction) modules(want *plans.Plan) {
	if have := len(c.have.Modules); have != len(want.Modules) {
		c.add("", "", "%d modules, want %d", have, len(want.Modules))
	}
	for i := range min(len(c.have.Modules), len(want.Modules)) {
		a, b := &c.have.Modules[i], &want.Modules[i]
		if !reflect.DeepEqual(a, b) {
			c.add("", a.Name, "the code is not that of kernel %q", b.Name)
		}
	}
}

func (c *reproduction) pipelines(want *plans.Plan) {
	if have := len(c.have.Pipelines); have != len(want.Pipelines) {
		c.add("", "", "%d pipelines, want %d", have, len(want.Pipelines))
	}
	for i := range min(len(c.have.Pipelines), len(want.Pipelines)) {
		a, b := c.have.Pipelines[i], want.Pipelines[i]
		a.Machine = nil
		if !reflect.DeepEqual(a, b) {
			c.add("", fmt.Sprintf("pipeline %d", i), "is %+v, want %+v", a, b)
		}
	}
}

func (c *reproduction) entry(a, b *plans.Entry) {
	if a.Kind != b.Kind || a.Rows != b.Rows || a.Logits != b.Logits || a.Next != b.Next || a.Candidates != b.Candidates || a.Grain != b.Grain {
		c.add(a.Name, "", "is of kind %q with %d rows, a grain of %d, logits %q, next ids %q and candidates %q, want %q, %d, %d, %q, %q and %q",
			a.Kind, a.Rows, a.Grain, a.Logits, a.Next, a.Candidates, b.Kind, b.Rows, b.Grain, b.Logits, b.Next, b.Candidates)
	}
	for i := range min(len(a.Dispatches), len(b.Dispatches)) {
		x, y := &a.Dispatches[i], &b.Dispatches[i]
		if x.Pipeline != y.Pipeline || x.Grid != y.Grid || x.Mixes != y.Mixes || x.Grain != y.Grain {
			c.add(a.Name, x.Site, "pipeline %d with grid %d, sequences mixed %t, a grain of %d, want %d with %d, %t, %d",
				x.Pipeline, x.Grid, x.Mixes, x.Grain, y.Pipeline, y.Grid, y.Mixes, y.Grain)
		}
		if len(x.Args) != len(y.Args) {
			c.add(a.Name, x.Site, "%d arguments, want %d", len(x.Args), len(y.Args))
		}
		for j := range min(len(x.Args), len(y.Args)) {
			if x.Args[j] != y.Args[j] {
				c.add(a.Name, x.Site, "argument %d is %+v, want %+v", j, x.Args[j], y.Args[j])
			}
		}
		if !slices.EqualFunc(x.Cover, y.Cover, equalCovers) {
			c.add(a.Name, x.Site, "covers are %+v, want %+v", x.Cover, y.Cover)
		}
	}
}

func equalCovers(a, b plans.Cover) bool {
	return a.Arg == b.Arg && slices.Equal(a.Dims, b.Dims) && slices.Equal(a.Tile, b.Tile) && slices.Equal(a.Axis, b.Axis) &&
		slices.Equal(a.First, b.First) && slices.Equal(a.Joined, b.Joined)
}
