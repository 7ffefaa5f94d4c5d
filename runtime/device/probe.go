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
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Probed is a device with what was measured of it; nil where it was only listed.
type Probed struct {
	vulkan.DeviceInfo
	Probe *vulkan.ProbeResult `json:"probe,omitempty"`
}

// Probe measures a device, or takes what was measured before of the same device with the same
// driver by the same kernels, which the user's cache folder keeps.
func Probe(ctx context.Context, info vulkan.DeviceInfo) (*Probed, error) {
	path, cacheErr := probePath(info)
	if cacheErr == nil {
		if r := readProbe(path); r != nil {
			return &Probed{info, r}, nil
		}
	}
	r, err := vulkan.Probe(ctx, info)
	if err != nil {
		return nil, err
	}
	if cacheErr == nil {
		writeProbe(path, r)
	}
	return &Probed{info, r}, nil
}

func probePath(info vulkan.DeviceInfo) (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %d %s %s %x", info.UUID, info.DriverVersion, info.Name, info.DriverInfo, vulkan.ProbeIdentity()))
	return filepath.Join(dir, "zincc", "probes", fmt.Sprintf("%x.json", key[:12])), nil
}

// readProbe returns nil for a file that is not there or not whole: it only saves time.
func readProbe(path string) *vulkan.ProbeResult {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	r := &vulkan.ProbeResult{}
	if json.Unmarshal(data, r) != nil || !(r.ReadBandwidth > 0) || len(r.Dispatches) == 0 {
		return nil
	}
	return r
}

// writeProbe keeps what was measured. That it cannot is no error: it is measured again then.
func writeProbe(path string, r *vulkan.ProbeResult) {
	if os.MkdirAll(filepath.Dir(path), 0o777) == nil {
		_ = outfile.Write(path, func(w io.Writer) error { return json.NewEncoder(w).Encode(r) })
	}
}
