package codegen

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func (e *emitter) dispatch(f *ir.Func, g *ir.Group, uses map[*ir.Value][]*ir.Op) (plans.Dispatch, error) {
	outputs := g.Outputs(uses)
	d := plans.Dispatch{Site: g.Name, Pipeline: -1, Grid: g.Call.Grid, Order: g.Order, Why: g.Call.Why}
	var err error
	if d.Cost, err = cost(e.p, e.t, f, g, outputs); err != nil {
		return d, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
	}
	first := !e.stages[g.Stage]
	e.stages[g.Stage] = true
	if e.t.IsHost() {
		d.Grain = 1 // the oracle computes every row by itself: no pass lays out chunks or splits for it
		return d, nil
	}
	c := e.chosen[g]
	d.Grain = c.Grain
	if f.Class == ir.ExactStep {
		d.Grain = 1
	}
	if d.Pipeline, err = e.pipeline(made{c, g.Call}); err != nil {
		return d, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
	}
	d.Cost.Predicted = e.predicted(&d, c, d.Cost, rowsOf(f, g), first)
	if f.Run < f.Rows && c.Rows == f.Rows {
		if err := e.predictTiles(&d, c, f, g, outputs); err != nil {
			return d, fmt.Errorf("%s: %s: %w", f.Name, g.Name, err)
		}
	}
	d.Grid, d.Cover, d.Mixes = c.Grid, c.Cover, c.Mixes(f)
	for _, o := range c.Arguments() {
		a, err := e.arg(f, o)
		if err != nil {
			return d, fmt.Errorf("%s: %s: argument %s: %w", f.Name, g.Name, o.Name, err)
		}
		d.Args = append(d.Args, a)
	}
	return d, nil
}

// predicted is the time of a dispatch of candidate c in a step of so many rows, which cost so much: a
// roofline, or what was fitted to the device, if that is more.
func (e *emitter) predicted(d *plans.Dispatch, c *kernels.Candidate, cost plans.Cost, rows int, first bool) plans.Times {
	t := strategy.Roofline(&cost, e.t, d.Grid, e.onMatrices(d.Pipeline), first)
	if s, ok := strategy.Seconds(c, e.t, rows); ok {
		t.Operations = max(t.Operations, float32(s))
	}
	return t
}

// predictTiles predicts a product of weights with the rows of a wide exact step: each tile of rows takes what it takes
// alone, since it is bound by taking weights apart and not by the bytes that tiles share.
func (e *emitter) predictTiles(d *plans.Dispatch, c *kernels.Candidate, f *ir.Func, g *ir.Group, outputs []*ir.Value) error {
	tile := *f
	tile.Rows = f.Run
	alone, err := cost(e.p, e.t, &tile, g, outputs)
	if err != nil {
		return err
	}
	times := e.predicted(d, c, alone, tile.Rows, false)
	most := max(times.Bytes, times.Operations) * float32(f.Rows/f.Run)
	d.Cost.Predicted.Operations = max(d.Cost.Predicted.Operations, most)
	return nil
}

// arg says where the value of an operand lies.
func (e *emitter) arg(f *ir.Func, o kernels.Operand) (plans.Arg, error) {
	v := o.Value
	rows := f.Rows
	if v.IsGlobal() {
		rows = e.plan.Header.MaxRows
	}
	n, err := v.Type.Bytes(rows, e.p.Ctx)
	if err != nil {
		return plans.Arg{}, err
	}
	a := plans.Arg{Name: o.Name, Space: v.Class.String(), Region: v.Name, Bytes: n,
		Read: o.Access&kernel.Read != 0, Write: o.Access&kernel.Write != 0}
	switch v.Class {
	case ir.Weight:
		w, err := weight.LayoutOf(v)
		if err != nil {
			return a, err
		}
		a.Bytes = w.Bytes
	case ir.Arena:
		if v.Offset < 0 {
			return a, fmt.Errorf("%s has no place in the arena", v)
		}
		a.Offset = v.Offset
	case ir.IO:
		a.Region = plans.IORegion(f.Name, v)
	}
	return a, nil
}

// pipeline returns the index of the call's pipeline, made on first use.
func (e *emitter) pipeline(m made) (int, error) {
	key := e.backend.moduleKey(m) + pipelineKey(m)
	if i, ok := e.pipelines[key]; ok {
		return i, nil
	}
	b := e.built[e.backend.moduleKey(m)]
	k, err := specialize(b.fn, m.Candidate, e.t)
	if err != nil {
		return 0, err
	}
	p := plans.Pipeline{Module: e.module(b), Wave: m.Wave, Workgroup: k.workgroup, Shared: k.shared}
	for _, s := range k.fn.Spec {
		if v, ok := k.spec[s.ID]; ok {
			p.Consts = append(p.Consts, plans.Const{ID: s.ID, Name: s.Name, Value: v, Float: s.Type == kernel.F32})
		}
	}
	e.plan.Pipelines = append(e.plan.Pipelines, p)
	e.pipelines[key] = len(e.plan.Pipelines) - 1
	return e.pipelines[key], nil
}

// module returns the index of a module, which is put into the plan on first use. Forms may have the same code.
func (e *emitter) module(b *built) int {
	key := sha256.Sum256(append([]byte(b.module.Name+"\x00"), b.module.Bytes...))
	i, ok := e.modules[key]
	if !ok {
		i = len(e.plan.Modules)
		e.modules[key] = i
		e.plan.Modules = append(e.plan.Modules, b.module)
		e.used = append(e.used, b.fn)
	}
	return i
}

// onMatrices reports whether the kernel of a pipeline multiplies cooperative matrices.
func (e *emitter) onMatrices(pipeline int) bool {
	return slices.Contains(e.used[e.plan.Pipelines[pipeline].Module].Features, "cooperativeMatrix")
}

// requirements sums up what a device must offer.
func (e *emitter) requirements() {
	e.plan.Require = plans.Requirements{Backend: e.t.Backend, Memory: e.plan.MemoryBytes()}
	if e.backend != nil {
		e.backend.require(e.plan, e.used, e.t)
	}
}
