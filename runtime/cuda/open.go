package cuda

import (
	"cmp"
	"context"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/exec"
)

// Executor is an executor on a CUDA device.
type Executor struct {
	*exec.Executor
	dev *Device
}

// NewExecutor opens the device of that index, or with -1 the first that meets the plan's
// requirements. progress, if not nil, is called with the number of bytes of weights that have
// arrived.
func NewExecutor(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, progress func(int64)) (*Executor, error) {
	if index < 0 {
		var err error
		if index, err = choose(plan.Require); err != nil {
			return nil, err
		}
	}
	dev, err := Open(index, plan.Require)
	if err != nil {
		return nil, err
	}
	if err := dev.fits(plan.Require.Memory); err != nil {
		dev.Close()
		return nil, err
	}
	x, err := exec.New(ctx, dev, plan, src, progress)
	if err != nil {
		return nil, err
	}
	return &Executor{x, dev}, nil
}

// choose returns the first device that meets need, else what the first lacks.
func choose(need plans.Requirements) (int, error) {
	all, err := Enumerate()
	if err != nil {
		return 0, ir.Unsupported("%s", err)
	}
	var first error
	for _, info := range Ranked(all) {
		err := info.Check(need)
		if err == nil {
			return info.Index, nil
		}
		first = cmp.Or(first, err)
	}
	return 0, cmp.Or(first, ir.Unsupported("there is no CUDA device"))
}

// fits fails if less memory is free than a plan needs: before anything is read.
func (d *Device) fits(need int64) error {
	free, total, err := d.memory()
	if err != nil {
		return err
	}
	if uint64(need) > free {
		return d.errorf("the plan needs %s of device memory, of %s only %s are free", table.Bytes(uint64(need)), table.Bytes(total), table.Bytes(free))
	}
	return nil
}

// ReadBandwidth measures the bytes a second of a kernel that only reads the
// device's memory.
func (x *Executor) ReadBandwidth(ctx context.Context) (float64, error) {
	var r runtime.ProbeResult
	err := x.dev.probeRead(ctx, &r)
	return r.ReadBandwidth, err
}
