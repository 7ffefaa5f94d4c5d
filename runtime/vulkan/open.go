package vulkan

import (
	"cmp"
	"context"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/exec"
)

// Executor is an executor on a Vulkan device.
type Executor struct {
	*exec.Executor
	dev *Device
}

// NewExecutor opens the device of that index, or with -1 the first by
// rank that meets the plan's requirements. progress, if not nil, is
// called with the number of bytes of weights that have arrived.
func NewExecutor(ctx context.Context, index int, plan *plans.Plan, src *plans.Source, progress func(int64)) (*Executor, error) {
	need := plan.Require.Vulkan
	if need == nil {
		return nil, ir.Unsupported("the plan is for backend %s, not for Vulkan", plan.Require.Backend)
	}
	if index < 0 {
		var err error
		if index, err = choose(&plan.Require); err != nil {
			return nil, err
		}
	}
	dev, err := Open(index, *need)
	if err != nil {
		return nil, err
	}
	if err := dev.serves(&plan.Require); err != nil {
		dev.Close()
		return nil, err
	}
	x, err := exec.New(ctx, Driver(dev), plan, src, progress)
	if err != nil {
		return nil, err
	}
	return &Executor{x, dev}, nil
}

// choose returns the best device that meets need, else what the best device lacks.
func choose(need *plans.Requirements) (int, error) {
	all, err := Enumerate()
	if err != nil {
		return 0, err
	}
	var first error
	for _, d := range Ranked(all) {
		err := d.Meets(need)
		if err == nil {
			return d.Index, nil
		}
		first = cmp.Or(first, err)
	}
	return 0, cmp.Or(first, ir.Unsupported("there is no Vulkan device"))
}

// serves fails if the device does not meet need, also where only a kernel shows it.
func (d *Device) serves(need *plans.Requirements) error {
	if err := d.Info.Meets(need); err != nil {
		return err
	}
	if need.Vulkan.Fragments {
		return d.proveFragments()
	}
	return nil
}

// Underlying is the open device.
func (x *Executor) Underlying() *Device { return x.dev }

// ReadBandwidth calls Device.ReadBandwidth.
func (x *Executor) ReadBandwidth(ctx context.Context) (float64, error) {
	return x.dev.ReadBandwidth(ctx)
}
