package vulkan

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// The matrices that the kernel probe_deal multiplies: dealSide x dealSide by dealSide x
// dealCols.
const (
	dealSide  = 16
	dealCols  = 8
	dealLanes = 32
)

// dealtProduct is element (i, j) of what the kernel probe_deal computes on a device that
// deals as plans.VulkanRequirements.Dealt says.
func dealtProduct(i, j int) float32 {
	sum := 0
	for k := range dealSide {
		sum += 4 * (110 + (i*i+3*k)%17) * (2030 + (k*k+5*j)%13)
	}
	return float32(math.Ldexp(float64(sum), -24)) // exact
}

// fragmentRequirements are what the kernel probe_deal needs of a device.
var fragmentRequirements = plans.VulkanRequirements{
	Features: append([]string{"cooperativeMatrix", "shaderFloat16"}, probeFeatures...),
	Subgroup: [2]int{dealLanes, dealLanes},
}

// hasFragments reports whether the device multiplies the matrices of that kernel.
func (info *DeviceInfo) hasFragments() bool {
	return info.Check(fragmentRequirements) == nil && slices.ContainsFunc(info.CooperativeMatrix, func(c CooperativeMatrix) bool {
		return c.M == dealSide && c.N == dealCols && c.K == dealSide && c.A == "f16" && c.B == "f16" && c.C == "f32" && c.Result == "f32"
	})
}

// proveDeal fails if the device deals the elements of cooperative matrices to lanes in
// another way than VulkanRequirements.Dealt says. It must have been opened with what plans
// that require it need.
func (d *Device) proveDeal() error {
	pipelines, err := d.CreatePipelines([]PipelineInfo{{Name: "probe_deal", Words: probeDeal, SubgroupSize: dealLanes, FullSubgroups: true}})
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	y, err := d.Alloc(4*dealSide*dealCols, Readback)
	if err != nil {
		return err
	}
	defer y.Free()
	c, err := d.NewCommands()
	if err != nil {
		return err
	}
	defer c.Free()
	c.Bind(pipelines[0])
	c.Push(y.Address())
	c.Dispatch(1, 1, 1)
	c.Barrier(Compute, Host)
	if err := c.End(); err != nil {
		return err
	}
	n, err := d.Submit(0, c)
	if err != nil {
		return err
	}
	if err := d.Wait(n, probeTimeout); err != nil {
		return err
	}
	return d.checkDeal(y.Bytes())
}

// checkDeal holds what the device has computed against dealtProduct.
func (d *Device) checkDeal(y []byte) error {
	for i := range dealSide {
		for j := range dealCols {
			if math.Float32frombits(binary.LittleEndian.Uint32(y[4*(i*dealCols+j):])) != dealtProduct(i, j) {
				return ir.Unsupported("device %s: lanes hold other elements of cooperative matrices than by mma.m16n8k16, or sums are not exact, which the plan's kernels rely on", d.Info.Name)
			}
		}
	}
	return nil
}
