package device

import (
	"fmt"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// Found is a place on this computer where plans can run, and whether it is the one that is taken
// where nobody names one.
type Found struct {
	Name   string `json:"name"` // for --device: vulkan:0, cpu, host
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
// failed is why there is no list, if there is none. The last two are the processor, which unusable says
// why no code can be made for, and the host.
func Survey(infos []vulkan.DeviceInfo, failed, unusable error) []Found {
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
			f.Why = "the processor through Vulkan: cpu needs no driver"
		case used < 0:
			f.Use, f.Why, used = true, "the best device here", len(all)
		case all[used].Type != f.Type:
			f.Why = fmt.Sprintf("%s is %s", all[used].Name, all[used].Type)
		default:
			f.Why = fmt.Sprintf("%s has as much memory or more", all[used].Name)
		}
		all = append(all, f)
	}
	c := Found{Name: "cpu", Device: processor.Name(), Type: "cpu", Arch: processor.Arch, Use: used < 0 && unusable == nil}
	h := Found{Name: "host", Device: "the oracle, in Go: the same processor, slower", Type: "host", Use: used < 0 && unusable != nil}
	if used >= 0 {
		c.Why = fmt.Sprintf("%s is a GPU", all[used].Name)
	} else {
		c.Why = noGPU(all, failed)
	}
	h.Why = c.Why
	switch {
	case h.Use:
		c.Why = unusable.Error()
		h.Why += ", and " + c.Why
	case c.Use:
		h.Why = "it is for comparison"
	}
	return append(all, c, h)
}

// noGPU says why none of the devices is taken.
func noGPU(all []Found, failed error) string {
	switch {
	case failed != nil:
		return failed.Error()
	case len(all) == 0:
		return "Vulkan lists no device"
	}
	for _, f := range all {
		if f.Type != "cpu" {
			return f.Why
		}
	}
	return "no GPU that can run plans"
}

// Best returns the device that is taken where nobody names one, nil for the processor, and in that case
// one line that says why no GPU is.
func Best() (best *vulkan.DeviceInfo, why string) {
	infos, err := vulkan.Enumerate()
	for _, f := range Survey(infos, err, processor.Usable()) {
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
