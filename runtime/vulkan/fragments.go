package vulkan

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// The matrices that the kernel probe_fragments multiplies: fragmentSide x fragmentSide by fragmentSide x
// fragmentCols.
const (
	fragmentSide  = 16
	fragmentCols  = 8
	fragmentLanes = 32
)

// fragmentProduct is element (i, j) of what the kernel probe_fragments computes on a device that
// gives them out as plans.VulkanRequirements.Fragments says.
func fragmentProduct(i, j int) float32 {
	sum := 0
	for k := range fragmentSide {
		sum += 4 * (110 + (i*i+3*k)%17) * (2030 + (k*k+5*j)%13)
	}
	return float32(math.Ldexp(float64(sum), -24)) // exact
}

// fragmentRequirements are what the kernel probe_fragments needs of a device.
var fragmentRequirements = plans.VulkanRequirements{
	Features: append([]string{"cooperativeMatrix", "shaderFloat16", "shaderRoundingModeRTEFloat16"}, probeFeatures...),
	Subgroup: [2]int{fragmentLanes, fragmentLanes},
}

// hasFragments reports whether the device multiplies the matrices of that kernel.
func (info *DeviceInfo) hasFragments() bool {
	return info.Check(fragmentRequirements) == nil && slices.ContainsFunc(info.CooperativeMatrix, func(c CooperativeMatrix) bool {
		return c.M == fragmentSide && c.N == fragmentCols && c.K == fragmentSide && c.A == "f16" && c.B == "f16" && c.C == "f32" && c.Result == "f32"
	})
}

// proveFragments fails if the device gives the elements of cooperative matrices to lanes in
// another way than VulkanRequirements.Fragments says. It must have been opened with what plans
// that require it need.
func (d *Device) proveFragments() error {
	pipelines, err := d.CreatePipelines([]PipelineInfo{{Name: "probe_fragments", Words: probeFragmentsKernel, SubgroupSize: fragmentLanes, FullSubgroups: true}})
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	y, err := d.Alloc(4*fragmentSide*fragmentCols, Readback)
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
	return d.checkFragments(y.Bytes())
}

// checkFragments holds what the device has computed against fragmentProduct.
func (d *Device) checkFragments(y []byte) error {
	for i := range fragmentSide {
		for j := range fragmentCols {
			if math.Float32frombits(binary.LittleEndian.Uint32(y[4*(i*fragmentCols+j):])) != fragmentProduct(i, j) {
				return ir.Unsupported("device %s: lanes hold other elements of cooperative matrices than by mma.m16n8k16, or sums are not exact, which the plan's kernels rely on", d.Info.Name)
			}
		}
	}
	return nil
}
