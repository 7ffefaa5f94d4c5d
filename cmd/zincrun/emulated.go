package main

import (
	"context"

	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/exec"
)

func init() { device.Add("rdna", plans.Vulkan, openEmulated) }

// emulated runs a plan's kernels as machine code of an AMD GPU that is not there.
type emulated struct {
	*exec.Executor
	verbs *emulate.Verbs
}

func openEmulated(ctx context.Context, which string, plan *plans.Plan, src *plans.Source, o device.Options) (runtime.Executor, error) {
	d, err := emulate.Open(ctx, which)
	if err != nil {
		return nil, err
	}
	v := d.Verbs()
	x, err := exec.New(ctx, v, plan, src, o.Progress)
	if err != nil {
		return nil, err
	}
	return &emulated{x, v}, nil
}
