package plans

import (
	"bytes"
	"fmt"

	"github.com/zincc-dev/zincc/internal/table"
)

// PTX is the format of code that NVIDIA's driver compiles.
const PTX = "ptx"

// CUDARequirements are what a CUDA device must offer.
type CUDARequirements struct {
	Arch int // compute capability without the dot, at least: 90 for sm_90
	// Exact: no later architecture runs the plan, as with sm_90a.
	Exact     bool
	Workgroup int // invocations of the largest workgroup
	Shared    int // bytes of shared memory of the hungriest workgroup
}

// CUDACapabilities are what a CUDA device offers.
type CUDACapabilities struct {
	Arch, Workgroup, Shared int
}

// earlyArch is the first architecture whose dispatches can begin early (programmatic dependent launch).
const earlyArch = 90

// maxArch bounds compute capabilities.
const maxArch = 999

func (r *CUDARequirements) valid() error {
	if r.Arch < 0 || r.Arch > maxArch || r.Workgroup < 0 || r.Workgroup > maxWorkgroup || r.Shared < 0 || r.Shared > maxShared {
		return fmt.Errorf("architecture %d, workgroup %d or shared %d out of range", r.Arch, r.Workgroup, r.Shared)
	}
	return nil
}

func (r *CUDARequirements) missing(c *Capabilities) string {
	has := &c.CUDA
	if has.Arch != 0 && r.Arch > has.Arch {
		return fmt.Sprintf("is sm_%d, sm_%d is needed", has.Arch, r.Arch)
	}
	if r.Exact && has.Arch != 0 && r.Arch != has.Arch {
		return fmt.Sprintf("is sm_%d, and the plan is for sm_%da alone: compile for sm_%d", has.Arch, r.Arch, has.Arch)
	}
	return exceeded(
		limit{"invocations of a workgroup", int64(r.Workgroup), int64(has.Workgroup)},
		limit{"bytes of shared memory", int64(r.Shared), int64(has.Shared)})
}

func (r *CUDARequirements) check(c *checker) {
	for i, pl := range c.plan.Pipelines {
		if pl.Workgroup > r.Workgroup || pl.Shared > r.Shared {
			c.add("requirements", "", fmt.Sprintf("pipeline %d", i), "workgroup of %d and %d bytes of shared memory, plan requires %d and %d",
				pl.Workgroup, pl.Shared, r.Workgroup, r.Shared)
		}
	}
}

func (r *CUDARequirements) describe(t *table.Table) {
	architecture := fmt.Sprintf("sm_%d", r.Arch)
	if r.Exact {
		architecture += "a, and no later one"
	}
	t.Add("architecture", architecture)
	t.Add("workgroup", r.Workgroup)
	t.Add("shared memory", table.Bytes(r.Shared))
}

// validPTX looks at how a module begins.
func validPTX(code []byte) error {
	if !bytes.HasPrefix(code, []byte(".version ")) || bytes.IndexByte(code, 0) >= 0 {
		return fmt.Errorf("not PTX")
	}
	return nil
}
