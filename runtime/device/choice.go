package device

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Choice is a place where plans run: a backend, and one of its devices if they are numbered.
type Choice struct {
	Backend string
	cuda    *cuda.Info
	vulkan  *vulkan.DeviceInfo
}

// Name is the name for --device, such as cuda:0.
func (c *Choice) Name() string {
	switch {
	case c.cuda != nil:
		return fmt.Sprintf("%s:%d", c.Backend, c.cuda.Index)
	case c.vulkan != nil:
		return fmt.Sprintf("%s:%d", c.Backend, c.vulkan.Index)
	}
	return c.Backend
}

// IsGPU reports whether c is a device that a driver lists.
func (c *Choice) IsGPU() bool { return c.cuda != nil || c.vulkan != nil }

// Identity identifies the device and its driver, for the choice of a plan.
func (c *Choice) Identity() string {
	switch {
	case c.cuda != nil:
		return fmt.Sprintf("%s %s cuda %d", c.cuda.Name, c.cuda.UUID, c.cuda.Driver)
	case c.vulkan != nil:
		return fmt.Sprintf("%s %s %d %s", c.vulkan.Name, c.vulkan.UUID, c.vulkan.DriverVersion, c.vulkan.DriverInfo)
	case c.Backend == plans.CPU:
		return fmt.Sprintf("cpu %s lacks %s", processor.Arch, processor.Missing(processor.Known()))
	}
	return c.Backend
}

// Type is the type of a GPU: discrete, integrated, virtual, cpu or other.
func (c *Choice) Type() string {
	if c.cuda != nil {
		return c.cuda.Type
	}
	return c.vulkan.Type
}

// Free is the number of bytes of a GPU's memory that a process may take now.
func (c *Choice) Free() (uint64, error) {
	if c.cuda == nil {
		return c.vulkan.FreeMemory(), nil
	}
	err := c.cuda.ReadFree()
	return c.cuda.Free, err
}

// Warm starts to open a device that a call of Open will need soon.
func (c *Choice) Warm() {
	if c.cuda != nil {
		c.cuda.Warm()
	}
}

// Arch is the name of a GPU's architecture, "" if unknown.
func (c *Choice) Arch() string {
	if c.cuda != nil {
		return c.cuda.ArchName()
	}
	if chip := c.chip(); chip != nil {
		return chip.Arch.Name
	}
	return ""
}

func (c *Choice) chip() *gpu.Chip {
	if c.cuda != nil {
		return gpu.Find(gpu.NVIDIA, c.cuda.DeviceID)
	}
	return gpu.Find(c.vulkan.VendorID, c.vulkan.DeviceID)
}

// Multiplies reports whether a GPU has matrices of f16 of that shape that add in f32.
func (c *Choice) Multiplies(m, n, k int) bool {
	return c.cuda != nil || slices.ContainsFunc(c.vulkan.CooperativeMatrix, func(s vulkan.CooperativeMatrix) bool {
		return c.vulkan.Features["cooperativeMatrix"] && int(s.M) == m && int(s.N) == n && int(s.K) == k &&
			s.A == "f16" && s.B == "f16" && s.C == "f32" && s.Result == "f32"
	})
}
