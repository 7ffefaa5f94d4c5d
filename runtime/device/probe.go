package device

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Probed is a GPU through CUDA or Vulkan with its measurements, which are nil if it was only listed.
type Probed struct {
	CUDA   *cuda.Info
	Vulkan *vulkan.DeviceInfo
	Probe  *runtime.ProbeResult
}

// MarshalJSON writes the fields of the device, with the probe as one of them.
func (p *Probed) MarshalJSON() ([]byte, error) {
	type probe struct {
		Probe *runtime.ProbeResult `json:"probe,omitempty"`
	}
	if p.CUDA != nil {
		return json.Marshal(struct {
			cuda.Info
			probe
		}{*p.CUDA, probe{p.Probe}})
	}
	return json.Marshal(struct {
		vulkan.DeviceInfo
		probe
	}{*p.Vulkan, probe{p.Probe}})
}

// Listed returns a GPU without measurements.
func (c *Choice) Listed() *Probed { return &Probed{CUDA: c.cuda, Vulkan: c.vulkan} }

// Probe measures a GPU, or takes an earlier measurement of the same device with the
// same driver and the same kernels from the user's cache folder.
func (c *Choice) Probe(ctx context.Context) (*Probed, error) {
	p := c.Listed()
	path, cacheErr := c.probePath()
	if cacheErr == nil {
		if p.Probe = readProbe(path); p.Probe != nil {
			return p, nil
		}
	}
	err := p.Measure(ctx)
	if err == nil && cacheErr == nil {
		writeProbe(path, p.Probe)
	}
	return p, err
}

// Measure measures a GPU.
func (p *Probed) Measure(ctx context.Context) (err error) {
	if p.CUDA != nil {
		p.Probe, err = cuda.Probe(ctx, *p.CUDA)
	} else {
		p.Probe, err = vulkan.Probe(ctx, *p.Vulkan)
	}
	return err
}

func (c *Choice) probePath() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	kernels := vulkan.ProbeIdentity()
	if c.cuda != nil {
		kernels = cuda.ProbeIdentity()
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %x", c.Identity(), kernels))
	return filepath.Join(dir, "zincc", "probes", fmt.Sprintf("%x.json", key[:12])), nil
}

// readProbe returns nil for a file that is not there or not whole: it only saves time.
func readProbe(path string) *runtime.ProbeResult {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	r := &runtime.ProbeResult{}
	if json.Unmarshal(data, r) != nil || !(r.ReadBandwidth > 0) || len(r.Dispatches) == 0 {
		return nil
	}
	return r
}

// writeProbe keeps what was measured. That it cannot is no error: it is measured again then.
func writeProbe(path string, r *runtime.ProbeResult) {
	if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		_ = outfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
	}
}
