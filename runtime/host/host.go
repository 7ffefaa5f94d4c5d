// Package host runs a plan on the oracle: the op program behind every dispatch,
// evaluated in Go, without a GPU, driver or compiler.
package host

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// cacheBytes bounds the memory for weights kept as float32; what does not fit is
// dequantized at each use.
const cacheBytes = 2 << 30

// Executor runs the entries of one plan.
type Executor struct {
	plan    *plans.Plan
	src     *plans.Source // whose weights the machine reads as it needs them
	machine *oracle.Machine
	io      map[string]region
}

type region struct {
	f *ir.Func // nil for globals
	v *ir.Value
}

// New prepares the executor of plan with weights from src. It fails if this computer has not the
// memory for it.
func New(ctx context.Context, plan *plans.Plan, src *plans.Source) (*Executor, error) {
	available := Available()
	var m *oracle.Machine
	err := src.Read(func() (err error) {
		m, err = oracle.New(ctx, plan.Program, src, oracle.Options{CacheBytes: min(cacheBytes, available/4), MostBytes: available / 4 * 3})
		return err
	})
	if err != nil {
		return nil, err
	}
	x := &Executor{plan: plan, src: src, machine: m, io: map[string]region{}}
	for _, g := range plan.Program.Globals {
		if g.Class == ir.Step || g.Class == ir.KV || g.Class == ir.State {
			x.io[g.Name] = region{v: g}
		}
	}
	for _, f := range plan.Program.Funcs {
		for _, op := range f.Ops() {
			if r := op.Result; r != nil && r.Class == ir.IO {
				x.io[plans.IORegion(f.Name, r)] = region{f, r}
			}
		}
	}
	return x, x.beginPages()
}

// Device names where the plan runs.
func (x *Executor) Device() string {
	return fmt.Sprintf("host (%d threads)", goruntime.GOMAXPROCS(0))
}

// Machine is the oracle underneath.
func (x *Executor) Machine() *oracle.Machine { return x.machine }

// Write sets the first elements of a region of the step block.
func (x *Executor) Write(name string, data []int32) error {
	r, ok := x.io[name]
	if !ok {
		return fmt.Errorf("plan has no region %q", name)
	}
	dst := x.machine.Ints(r.v)
	if len(dst) < len(data) {
		return fmt.Errorf("region %q holds %d values, not %d", name, len(dst), len(data))
	}
	if group := slices.Index(ir.TableNames[:], name); group >= 0 {
		return x.writeTable(group, dst, data)
	}
	copy(dst, data)
	return nil
}

// Submit computes the launches: there is nothing to wait for.
func (x *Executor) Submit(ctx context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		f := x.plan.Program.Func(l.Entry.Name)
		from, to := 0, len(f.Groups)
		switch l.Part {
		case runtime.Logits:
			to = f.Choice()
		case runtime.Choice:
			from = f.Choice()
		}
		for range l.Times {
			if err := x.src.Read(func() error { return x.machine.RunGroups(ctx, f, from, to) }); err != nil {
				return 0, err
			}
		}
	}
	return 0, nil
}

// Wait has nothing to do.
func (x *Executor) Wait(context.Context, runtime.Ticket) error { return nil }

// Ints returns a region of int32, valid until the next run.
func (x *Executor) Ints(name string) ([]int32, error) {
	r, ok := x.io[name]
	if !ok {
		return nil, fmt.Errorf("plan has no region %q", name)
	}
	return x.machine.Ints(r.v), nil
}

// Floats returns a region of float32, valid until the next run.
func (x *Executor) Floats(name string, _ ...int) ([]float32, error) {
	r, ok := x.io[name]
	if !ok {
		return nil, fmt.Errorf("plan has no region %q", name)
	}
	return x.machine.Floats(r.v), nil
}

// Close frees the memory.
func (x *Executor) Close() error {
	x.machine, x.io = nil, nil
	return nil
}
