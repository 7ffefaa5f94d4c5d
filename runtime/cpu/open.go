// Package cpu runs plans whose kernels are machine code of this processor. docs/backends/cpu.md
// says what it expects of the code, and why a plan that it takes cannot make it fault.
package cpu

import (
	"context"
	"fmt"
	goruntime "runtime"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/host"
)

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
func New(ctx context.Context, plan *plans.Plan, src *plans.Source, o Options) (*exec.Executor, error) {
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
	if o.Said == nil {
		o.Said = func(string) {}
	}
	scratch := int64(0)
	for _, p := range plan.Pipelines {
		scratch = max(scratch, int64(p.Shared))
	}
	d, err := open(o, scratch)
	if err != nil {
		return nil, err
	}
	d.src = src
	return exec.New(ctx, d, plan, src, o.Progress)
}
