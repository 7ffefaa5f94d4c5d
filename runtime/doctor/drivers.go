package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// modules are the kernel's drivers for each maker's cards, and where they come from.
var modules = map[uint32]struct {
	names   []string
	install string
}{
	gpu.NVIDIA: {[]string{"nvidia"}, "install NVIDIA's driver (Debian: nvidia-driver), and restart"},
	gpu.AMD:    {[]string{"amdgpu"}, "install the firmware (Debian: firmware-amd-graphics) and a kernel that knows the card; `dmesg | grep amdgpu` says what is missing"},
	gpu.Intel:  {[]string{"xe", "i915"}, "install the firmware (Debian: firmware-misc-nonfree) and a kernel that knows the card; `dmesg | grep -e xe -e i915` says what is missing"},
}

// mesa is how Vulkan gets its driver for AMD and Intel.
const mesa = "install Mesa's drivers (Debian: mesa-vulkan-drivers libvulkan1)"

// drivers looks at the kernel's driver of each card, and at the libraries that programs call.
func drivers(m *Machine) []Finding {
	var all []Finding
	cards := m.cards()
	for _, c := range cards {
		known, ok := modules[c.vendor]
		switch {
		case !ok:
		case c.driver == "" && m.container():
			// The host's folders may be hidden here; nodes tells whether the card can be reached.
		case c.driver == "":
			all = append(all, Finding{State: Problem, Found: c.name() + " has no driver in the kernel", Do: known.install})
		case strings.HasPrefix(c.driver, "vfio"):
			all = append(all, Finding{State: Note, Found: c.name() + " is kept for a virtual machine by " + c.driver})
		case !slices.Contains(known.names, c.driver):
			all = append(all, Finding{State: Problem, Found: fmt.Sprintf("%s is driven by %s, not by %s", c.name(), c.driver, known.names[0]), Do: known.install})
		default:
			all = append(all, Finding{State: OK, Found: c.name() + ": " + c.driver})
		}
	}
	return append(append(all, m.cudaDriver(cards)...), m.vulkanDriver(cards)...)
}

func has(cards []card, vendors ...uint32) bool {
	return slices.ContainsFunc(cards, func(c card) bool { return slices.Contains(vendors, c.vendor) })
}

func (m *Machine) cudaDriver(cards []card) []Finding {
	nvidia, s := has(cards, gpu.NVIDIA), m.System
	do := modules[gpu.NVIDIA].install
	if m.container() {
		do = "start the container with NVIDIA's runtime: docker run --gpus all"
	}
	switch {
	case s.CUDAErr == nil && len(s.CUDA) > 0:
		return []Finding{{State: OK, Found: s.CUDA[0].DriverText() + ": " + plural(len(s.CUDA), "device")}}
	case !nvidia && (s.CUDAErr == nil || errors.Is(s.CUDAErr, cuda.ErrNoDriver)):
		return nil // nobody needs it
	case s.CUDAErr == nil:
		return []Finding{{State: Problem, Found: "CUDA lists no device", Do: "CUDA_VISIBLE_DEVICES may hide it; " + do}}
	}
	return []Finding{{State: Problem, Found: s.CUDAErr.Error(), Do: do}}
}

func (m *Machine) vulkanDriver(cards []card) []Finding {
	s, needs := m.System, has(cards, gpu.AMD, gpu.Intel)
	if s.VulkanErr != nil {
		switch {
		case needs:
			return []Finding{{State: Problem, Found: s.VulkanErr.Error(), Do: mesa}}
		case len(s.CUDA) > 0:
			return []Finding{{State: OK, Found: "no Vulkan; CUDA does not need it"}}
		}
		return []Finding{{State: Note, Found: s.VulkanErr.Error(), Do: "nothing, if there is no GPU: the processor needs no driver; else " + mesa}}
	}
	var all []Finding
	for _, vendor := range []uint32{gpu.AMD, gpu.Intel} {
		if has(cards, vendor) && !slices.ContainsFunc(s.Vulkan, func(d vulkan.DeviceInfo) bool { return d.VendorID == vendor }) {
			all = append(all, Finding{State: Problem, Found: "Vulkan lists no device of " + gpu.VendorName(vendor), Do: mesa + "; VK_DRIVER_FILES may hide it, and so may what is wrong below"})
		}
	}
	var seen []string
	for _, d := range s.Vulkan {
		if text := strings.TrimSpace(d.Driver + " " + d.DriverInfo); !slices.Contains(seen, text) {
			seen = append(seen, text)
		}
	}
	if len(seen) > 0 {
		all = append(all, Finding{State: OK, Found: "Vulkan: " + strings.Join(seen, ", ")})
	}
	return all
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// nodes looks whether this user may open the files by which programs reach cards.
func nodes(m *Machine) []Finding {
	var all []Finding
	cards := m.cards()
	render, _ := fs.Glob(m.Root, "dev/dri/renderD*")
	for _, path := range render {
		group := "sudo usermod -aG render $USER, and log in again (`ls -l /" + path + "` shows the group)"
		if m.container() {
			group = "give the container the group of the file: docker run --device /dev/dri --group-add $(stat -c %g /" + path + ")"
		}
		all = append(all, m.open(path, group))
	}
	if len(render) == 0 && has(cards, gpu.AMD, gpu.Intel) {
		do := "load the kernel's driver: see drivers"
		if m.container() {
			do = "give the container the device: docker run --device /dev/dri"
		}
		all = append(all, Finding{State: Problem, Found: "there is no /dev/dri/renderD*, by which programs reach cards of AMD and Intel", Do: do})
	}
	if !has(cards, gpu.NVIDIA) && !m.exists("dev/nvidiactl") {
		return all
	}
	do := "sudo nvidia-modprobe -u -c=0 makes them; `ls -l /dev/nvidia*` shows who may open them"
	if m.container() {
		do = "start the container with NVIDIA's runtime: docker run --gpus all"
	}
	list, _ := fs.Glob(m.Root, "dev/nvidia[0-9]*")
	for _, path := range append([]string{"dev/nvidiactl", "dev/nvidia-uvm"}, list...) {
		all = append(all, m.open(path, do))
	}
	return all
}

// open tries a file of a device.
func (m *Machine) open(path, do string) Finding {
	f, err := m.Root.Open(path)
	switch {
	case errors.Is(err, fs.ErrPermission):
		return Finding{State: Problem, Found: "/" + path + ": this user may not open it", Do: do}
	case errors.Is(err, fs.ErrNotExist):
		return Finding{State: Problem, Found: "/" + path + " is not there", Do: do}
	case err != nil:
		return Finding{State: Problem, Found: "/" + path + ": " + err.Error(), Do: do}
	}
	f.Close()
	return Finding{State: OK, Found: "/" + path}
}
