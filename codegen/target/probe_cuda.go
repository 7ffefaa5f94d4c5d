package target

import (
	"cmp"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// cudaProbe is what `zincrun probe --json` says only of devices through CUDA. Sizes are in bytes.
type cudaProbe struct {
	Arch       int   `json:"arch"`         // compute capability without the dot
	Clock      int   `json:"clock"`        // kHz; 0 where the driver does not tell
	Memory     int64 `json:"memory"`       // of the device
	FreeMemory int64 `json:"free"`         // what a process could take of it; 0: not asked
	Shared     int   `json:"shared"`       // of a workgroup
	Optional   int   `json:"shared_optin"` // the same for kernels that ask for more; 0: there is no more
}

func (p *Probe) checkCUDA() error {
	if err := p.ranges([]figure{
		{"units", float64(p.Units), 1, 1 << 16},
		{"arch", float64(p.Arch), 10, 999},
		{"clock", float64(p.Clock), 0, 1e7},
		{"memory", float64(p.Memory), 1 << 20, 1 << 50},
		{"free", float64(p.FreeMemory), 0, 1 << 50},
		{"shared", float64(p.Shared), 1 << 10, 1 << 24},
		{"shared_optin", float64(p.Optional), 0, 1 << 24},
	}); err != nil {
		return err
	}
	if cudaBase(p.Arch) == nil {
		return fmt.Errorf("device %s is sm_%d: plans through CUDA need sm_75", p.Name, p.Arch)
	}
	return nil
}

// cudaBase is the published target of the newest architecture whose PTX a device takes, nil where it is
// too old.
func cudaBase(arch int) *Target {
	var base *Target
	for _, t := range cuda {
		if t.CUDA <= arch && (base == nil || t.CUDA > base.CUDA) {
			base = t
		}
	}
	return base
}

// cudaTarget is the published target of the device's architecture, or of the one before, with the
// device's own figures. Operations are those of the base by what SMs there are, and by their clock where it
// is known.
func (p *Probe) cudaTarget() *Target {
	base := cudaBase(p.Arch)
	t := *base
	t.Probe = p.asJSON()
	t.Name, t.Doc = ProbePrefix+p.Name+WithCUDA, "as probed through CUDA"
	t.Arch = fmt.Sprintf("sm_%d%s", p.Arch, WithCUDA)
	t.Groups = base.Groups && p.Arch == base.CUDA && p.Optional >= base.SharedOptIn // no later architecture has them
	if p.Arch != base.CUDA {
		t.Curve, t.Thresholds = nil, device.Thresholds{}
	}
	t.Units, t.Shared, t.SharedOptIn = p.Units, min(base.Shared, p.Shared), min(base.SharedOptIn, p.Optional)
	if t.Memory = p.Memory; p.Type != "discrete" {
		t.Memory = 0
	}
	scale := float64(p.Units) / float64(base.Units)
	if p.Clock > 0 {
		scale = float64(p.Units) * float64(p.Clock) * 1e3 * 2 * float64(lanesOfSM(p.Arch)) / base.FLOPs
	}
	t.FLOPs, t.MatrixFLOPs = base.FLOPs*scale, base.MatrixFLOPs*scale
	t.Bandwidth, t.Stage = p.Measured.Bandwidth, p.stage(t.Units)
	return &t
}

// lanesOfSM is how many f32 operations an SM begins in a cycle (CUDA C++ Programming Guide, "Arithmetic
// Instructions").
func lanesOfSM(arch int) int {
	if arch <= 80 {
		return 64
	}
	return 128
}

func (p *Probe) cudaFree() int64 { return cmp.Or(p.FreeMemory, p.Memory) }

func (p *Probe) cudaCapabilities() plans.Capabilities {
	return plans.Capabilities{Memory: p.Memory, CUDA: plans.CUDACapabilities{Arch: p.Arch, Workgroup: 1024, Shared: max(p.Shared, p.Optional)}}
}
