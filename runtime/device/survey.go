package device

import (
	"fmt"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Found is a place on this computer where plans can run, and whether it is the one that is taken
// where nobody names one.
type Found struct {
	Name   string `json:"name"` // for --device: vulkan:0, host
	Device string `json:"device"`
	Type   string `json:"type"`           // discrete, integrated, virtual, cpu, other or host
	Arch   string `json:"arch,omitempty"` // the architecture's name, such as sm_90; "" where it is not known
	Chip   string `json:"chip,omitempty"`
	Driver string `json:"driver,omitempty"`
	Memory uint64 `json:"memory,omitempty"` // bytes of the device's own
	Free   uint64 `json:"free,omitempty"`   // of these, what a process may take now
	Use    bool   `json:"use"`
	Why    string `json:"why"`
}

// Survey says of every device that Vulkan lists what it is and why it is taken or not, best first;
// failed is why there is no list, if there is none. The last one is the host.
func Survey(infos []vulkan.DeviceInfo, failed error) []Found {
	var all []Found
	used := -1
	for _, info := range vulkan.Ranked(infos) {
		f := Found{
			Name: fmt.Sprintf("vulkan:%d", info.Index), Device: info.Name, Type: info.Type, Driver: info.Driver + " " + info.DriverInfo,
			Memory: info.LocalMemory(), Free: info.FreeMemory(),
		}
		if chip := gpu.Find(info.VendorID, info.DeviceID); chip != nil {
			f.Arch, f.Chip = chip.Arch.Name, chip.Name
		}
		lacks := info.Check(vulkan.ProbeRequirements())
		switch {
		case lacks != nil:
			f.Why = lacks.Error()
		case f.Memory == 0:
			f.Why = "it has no memory: a driver without hardware"
		case info.Type == "cpu":
			f.Why = "the processor through Vulkan: host needs no driver"
		case used < 0:
			f.Use, f.Why, used = true, "the best device here", len(all)
		case all[used].Type != f.Type:
			f.Why = fmt.Sprintf("%s is %s", all[used].Name, all[used].Type)
		default:
			f.Why = fmt.Sprintf("%s has as much memory or more", all[used].Name)
		}
		all = append(all, f)
	}
	h := Found{Name: "host", Device: "the processor, without a driver", Type: "host", Use: used < 0}
	switch {
	case used >= 0:
		h.Why = fmt.Sprintf("%s is a GPU", all[used].Name)
	case failed != nil:
		h.Why = failed.Error()
	case len(all) == 0:
		h.Why = "Vulkan lists no device"
	default:
		h.Why = "no GPU that can run plans"
		for _, f := range all {
			if f.Type != "cpu" {
				h.Why = f.Why
				break
			}
		}
	}
	return append(all, h)
}

// Best returns the device that is taken where nobody names one, nil for the host, and in that case
// one line that says why no GPU is.
func Best() (best *vulkan.DeviceInfo, why string) {
	infos, err := vulkan.Enumerate()
	for _, f := range Survey(infos, err) {
		if !f.Use {
			continue
		}
		for i := range infos {
			if f.Name == fmt.Sprintf("vulkan:%d", infos[i].Index) {
				return &infos[i], ""
			}
		}
		return nil, f.Why
	}
	return nil, ""
}
