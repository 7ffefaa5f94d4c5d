package vulkan

import (
	"encoding/binary"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// The products of the kernel probe_deal have dealRows x dealCols elements each: first one of
// matrices of f16, then one of bytes.
const (
	dealRows  = 16
	dealCols  = 8
	dealLanes = 32
)

// dealtProducts are the depths of the products, and how a sum is written.
var dealtProducts = []struct {
	depth int
	bits  func(sum int) uint32
}{
	{16, func(sum int) uint32 { return math.Float32bits(float32(sum)) }},
	{32, func(sum int) uint32 { return uint32(int32(sum)) }},
}

// dealtFeatures are what the kernel probe_deal needs, beside what all plans do that require it.
var dealtFeatures = []string{"shaderFloat16", "shaderInt8"}

// dealtProduct is element (i, j) of a product of that depth on a device that deals as
// plans.Requirements.Dealt says.
func dealtProduct(i, j, depth int) int {
	sum := 0
	for k := range depth {
		sum += ((i*i+3*k)%17 - 8) * ((k*k+5*j)%13 - 6)
	}
	return sum
}

// proveDeal fails if the device deals the elements of cooperative matrices to lanes in
// another way than Requirements.Dealt says. It must have been opened with what plans
// that require it need, and with dealtFeatures.
func (d *Device) proveDeal() error {
	pipelines, err := d.CreatePipelines([]PipelineInfo{{Name: "probe_deal", Words: probeDeal, SubgroupSize: dealLanes, FullSubgroups: true}})
	if err != nil {
		return err
	}
	defer freeAll(pipelines)
	y, err := d.Alloc(int64(4*dealRows*dealCols*len(dealtProducts)), Readback)
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
	for _, p := range dealtProducts {
		for i := range dealRows {
			for j := range dealCols {
				if binary.LittleEndian.Uint32(y[4*(i*dealCols+j):]) != p.bits(dealtProduct(i, j, p.depth)) {
					return ir.Unsupported("device %s: lanes hold other elements of cooperative matrices than by mma.m16n8k16 and m16n8k32, which the plan's kernels rely on", d.Info.Name)
				}
			}
		}
		y = y[4*dealRows*dealCols:]
	}
	return nil
}
