package device

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"

	"github.com/zincc-dev/zincc/internal/private"
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
	cache, notKept := private.Open("probes")
	if notKept == nil {
		if p.Probe = readProbe(cache, c.probeFile()); p.Probe != nil {
			return p, nil
		}
	}
	err := p.Measure(ctx)
	if err == nil && notKept == nil {
		writeProbe(cache, c.probeFile(), p.Probe)
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

// probeFile is where measurements of the device are kept, made with this driver by these kernels.
func (c *Choice) probeFile() string {
	kernels := vulkan.ProbeIdentity()
	if c.cuda != nil {
		kernels = cuda.ProbeIdentity()
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %x", c.Identity(), kernels))
	return fmt.Sprintf("%x.json", key[:12])
}

// readProbe returns nil for a file that is not there, not whole, or not this user's.
func readProbe(cache *private.Cache, file string) *runtime.ProbeResult {
	r := &runtime.ProbeResult{}
	if json.Unmarshal(cache.Read(file), r) != nil || !(r.ReadBandwidth > 0) || len(r.Dispatches) == 0 {
		return nil
	}
	return r
}

// writeProbe keeps what was measured. That it cannot is no error: it is measured again then.
func writeProbe(cache *private.Cache, file string, r *runtime.ProbeResult) {
	if data, err := json.Marshal(r); err == nil {
		_ = cache.Write(file, data)
	}
}
