package device

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cuda"
)

// Found is a place on this computer where plans can run, and says whether it is the default
// choice.
type Found struct {
	Name   string `json:"name"` // for --device: cuda:0, vulkan:0, cpu, host
	Device string `json:"device"`
	Type   string `json:"type"`           // discrete, integrated, virtual, cpu, other or host
	Arch   string `json:"arch,omitempty"` // the architecture's name, such as sm_90; "" where it is not known
	Chip   string `json:"chip,omitempty"`
	Driver string `json:"driver,omitempty"`
	Memory uint64 `json:"memory,omitempty"` // bytes of the device's own
	Free   uint64 `json:"free,omitempty"`   // of these, what a process may take now
	Able   bool   `json:"able"`             // it can run plans
	Use    bool   `json:"use"`
	Why    string `json:"why"`
	Also   []Also `json:"also,omitempty"` // other names of the same device, through other backends
}

// Also is the name of a device through a backend that is not used.
type Also struct {
	Name string `json:"name"`
	Why  string `json:"why"`
}

// Survey describes every device and says why it is used or not, best first. The last two are the
// processor and the host.
func (s *System) Survey() []Found {
	var all []Found
	used := -1
	for _, g := range s.graphics() {
		taken := g.take("")
		shown := cmp.Or(taken, &g.ways[0])
		f := shown.found()
		f.Device, f.Type, f.Memory, f.Able = g.name, g.kind, g.memory, taken != nil
		for i := range g.ways {
			w := &g.ways[i]
			if f.Free = cmp.Or(f.Free, w.free()); w == shown {
				continue
			}
			also := Also{w.Name(), "the same device, which is faster through CUDA"}
			if w.lacks != nil {
				also.Why = "the same device: " + w.lacks.Error()
			}
			f.Also = append(f.Also, also)
		}
		switch {
		case taken == nil:
			f.Why = g.lacks("").Error()
		case used < 0:
			f.Use, f.Why, used = true, "the best device here", len(all)
		case all[used].Type != f.Type:
			f.Why = fmt.Sprintf("%s is %s", all[used].Name, all[used].Type)
		default:
			f.Why = fmt.Sprintf("%s has as much memory or more", all[used].Name)
		}
		if taken != nil {
			if why := s.slower(g, taken); why != "" {
				f.Why += "; not through CUDA: " + why
			}
		}
		all = append(all, f)
	}
	c := Found{Name: plans.CPU, Device: processor.Name(), Type: "cpu", Arch: processor.Arch, Able: s.Processor == nil, Use: used < 0 && s.Processor == nil}
	h := Found{Name: plans.Host, Device: "the oracle, in Go: the same processor, slower", Type: "host", Able: true, Use: used < 0 && s.Processor != nil}
	if used >= 0 {
		c.Why = fmt.Sprintf("%s is a GPU", all[used].Name)
	} else {
		c.Why = s.None()
	}
	h.Why = c.Why
	switch {
	case h.Use:
		c.Why = s.Processor.Error()
		h.Why += ", and " + c.Why
	case c.Use:
		h.Why = "it is for comparison"
	}
	return append(all, c, h)
}

// found is what the driver says of the device.
func (w *way) found() Found {
	f := Found{Name: w.Name(), Arch: w.Arch()}
	if chip := w.chip(); chip != nil {
		f.Chip = chip.Name
	}
	if w.cuda != nil {
		f.Driver = w.cuda.DriverText()
	} else {
		f.Driver = w.vulkan.Driver + " " + w.vulkan.DriverInfo
	}
	return f
}

// free is what the driver has said of free memory, 0 where it was not asked.
func (w *way) free() uint64 {
	if w.cuda != nil {
		return w.cuda.Free
	}
	return w.vulkan.FreeMemory()
}

// None says why no GPU is used, or listed. It does not mention a missing CUDA driver if Vulkan
// has a driver.
func (s *System) None() string {
	var why []string
	absent := errors.Is(s.CUDAErr, cuda.ErrNoDriver)
	if s.CUDAErr != nil && !absent {
		why = append(why, s.CUDAErr.Error())
	}
	all := s.graphics()
	for _, g := range all {
		if g.kind != "cpu" && len(why) == 0 {
			why = append(why, g.lacks("").Error())
		}
	}
	switch {
	case s.VulkanErr != nil && absent:
		why = append(why, s.VulkanErr.Error()+", and no driver for CUDA")
	case s.VulkanErr != nil:
		why = append(why, s.VulkanErr.Error())
	case len(all) == 0 && absent:
		why = append(why, "Vulkan lists no device")
	case len(all) == 0:
		why = append(why, "neither CUDA nor Vulkan lists a device")
	case len(why) == 0:
		why = append(why, "no GPU that can run plans")
	}
	return strings.Join(why, "; ")
}
