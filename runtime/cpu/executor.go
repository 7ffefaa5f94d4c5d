// Package cpu runs plans whose kernels are machine code of this processor. docs/backends/cpu.md
// says what it expects of the code, and why a plan that it takes cannot make it fault.
package cpu

import (
	"context"
	"fmt"
	goruntime "runtime"
	"time"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// Executor holds a plan's memory and runs its entries.
type Executor struct {
	plan     *plans.Plan
	code     *code
	memory   *memory
	team     *team
	tables   *native.Memory
	programs map[string]*program
	took     map[string]time.Duration // a step of an entry, the last time
}

// Options say how to run a plan.
type Options struct {
	Threads int // 0: as many as GOMAXPROCS says
	// Keep is a folder in which weights are kept in the layouts of the plan, to be mapped the next time; "": they are
	// not.
	Keep string
	// Said gets a line where kept weights are refused or cannot be kept: the plan runs all the same. nil: nobody.
	Said func(line string)
	// Progress is called with the number of bytes as weights are read; nil: nobody looks.
	Progress func(int64)

	nodes nodes // of this computer
}

// New prepares a plan to run.
func New(ctx context.Context, plan *plans.Plan, src *plans.Source, o Options) (*Executor, error) {
	if err := plans.Validate(plan); err != nil {
		return nil, err
	}
	need := plan.Require.CPU
	if need == nil {
		return nil, ir.Unsupported("the plan is for backend %s, not for the processor", plan.Require.Backend)
	}
	has := Capabilities()
	if what := plan.Require.Missing(&has); what != "" {
		return nil, ir.Unsupported("this processor %s", what)
	}
	if bytes, free := plan.MemoryBytes(), host.Available(); bytes > free {
		return nil, fmt.Errorf("the plan takes %s of memory, %s are free", table.Bytes(bytes), table.Bytes(free))
	}
	if o.Threads <= 0 {
		o.Threads = goruntime.GOMAXPROCS(0)
	}
	if o.nodes == nil {
		o.nodes = theseNodes()
	}
	x := &Executor{plan: plan, programs: map[string]*program{}, took: map[string]time.Duration{}}
	if err := x.prepare(ctx, src, o); err != nil {
		_ = x.Close() // frees what there is
		return nil, err
	}
	return x, nil
}

func (x *Executor) prepare(ctx context.Context, src *plans.Source, o Options) error {
	var err error
	if x.code, err = newCode(x.plan); err != nil {
		return err
	}
	scratch := int64(0)
	for _, p := range x.plan.Pipelines {
		scratch = max(scratch, int64(p.Shared))
	}
	if x.team, err = newTeam(o.Threads, o.nodes, scratch); err != nil {
		return err
	}
	if x.memory, err = newMemory(ctx, x.plan, src, o); err != nil {
		return err
	}
	return x.build()
}

// build makes the tables of all entries.
func (x *Executor) build() error {
	var err error
	x.tables, err = layOut(func(b *builder) error {
		for i := range x.plan.Entries {
			e := &x.plan.Entries[i]
			p, err := x.program(b, e)
			if err != nil {
				return err
			}
			x.programs[e.Name] = p
		}
		return nil
	})
	return err
}

// Device names where the plan runs.
func (x *Executor) Device() string {
	return fmt.Sprintf("cpu (%d threads)", len(x.team.threads))
}

// Write sets the first values of a region of the step block.
func (x *Executor) Write(name string, data []int32) error {
	r, ok := x.memory.regions[place{"step", name}]
	if !ok || 4*len(data) > len(r) {
		return fmt.Errorf("%d values do not fit region %q of the step block", len(data), name)
	}
	copy(contents.Numbers[int32](r), data)
	return nil
}

// watched is how long a run must be expected to take for somebody to look whether the caller
// has lost interest meanwhile.
const watched = 5 * time.Millisecond

// Run runs the entry times in a row, in one call of generated code.
func (x *Executor) Run(ctx context.Context, entry *plans.Entry, times int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := x.programs[entry.Name]
	if p == nil {
		return fmt.Errorf("plan has no entry %q", entry.Name)
	}
	last, known := x.took[entry.Name]
	began := time.Now()
	if err := x.run(ctx, p, times, known && time.Duration(times)*last < watched); err != nil {
		return err
	}
	x.took[entry.Name] = time.Since(began) / time.Duration(max(1, times))
	return nil
}

// run makes passes over a program. Only a short one is not ended with ctx.
func (x *Executor) run(ctx context.Context, p *program, times int, short bool) error {
	j := job{p, p.passes, p.passes + uint64(times)}
	if short || ctx.Done() == nil {
		x.team.run(j)
		p.passes = j.end
		return nil
	}
	stopped := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() { x.team.stop(); close(stopped) })
	done := x.team.run(j)
	if !cancel() {
		<-stopped
		x.team.resume()
	}
	if !done {
		p.reset()
		return ctx.Err()
	}
	p.passes = j.end
	return nil
}

// Ints returns a region of the step block or the ids that an entry chose, valid until the next
// run.
func (x *Executor) Ints(name string) ([]int32, error) {
	r, err := x.region(name)
	return contents.Numbers[int32](r), err
}

// Floats returns the logits of an entry, valid until the next run.
func (x *Executor) Floats(name string) ([]float32, error) {
	r, err := x.region(name)
	return contents.Numbers[float32](r), err
}

func (x *Executor) region(name string) ([]byte, error) {
	for _, space := range []string{"io", "step"} {
		if r, ok := x.memory.regions[place{space, name}]; ok {
			return r, nil
		}
	}
	return nil, fmt.Errorf("plan has no region %q", name)
}

// Close ends the threads and frees the memory.
func (x *Executor) Close() error {
	if x.team != nil {
		x.team.close()
		x.team = nil
	}
	if x.memory != nil {
		x.memory.free()
		x.memory = nil
	}
	if x.tables != nil {
		x.tables.Free()
		x.tables = nil
	}
	if x.code != nil {
		x.code.mapped.Free()
		x.code = nil
	}
	return nil
}
