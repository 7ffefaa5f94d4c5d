package device

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// System is the devices that the drivers of a computer list.
type System struct {
	CUDA   []cuda.Info
	Vulkan []vulkan.DeviceInfo
	// CUDAErr and VulkanErr say why there is no list.
	CUDAErr, VulkanErr error
	Processor          error // why no code can be made for the processor
}

// Here asks both drivers of this computer at the same time, since each takes 0.1 s and more to start.
func Here() *System { return ask(plans.CUDA, plans.Vulkan) }

// Select is System.Select for this computer. It asks only the drivers that the name allows.
func Select(name string) (c *Choice, note string, err error) {
	kind, _, _ := strings.Cut(name, ":")
	if kind == "auto" {
		return Here().Select(name)
	}
	return ask(kind).Select(name)
}

func ask(backends ...string) *System {
	s := &System{Processor: processor.Usable()}
	var asked sync.WaitGroup
	if slices.Contains(backends, plans.Vulkan) {
		asked.Go(func() { s.Vulkan, s.VulkanErr = vulkan.Enumerate() })
	}
	if slices.Contains(backends, plans.CUDA) {
		s.CUDA, s.CUDAErr = cuda.Enumerate()
	}
	asked.Wait()
	return s
}

// ReadFree asks CUDA how much memory is free on each device, which takes some 0.2 s per device. If CUDA cannot
// tell, free memory stays unknown.
func (s *System) ReadFree() {
	for i := range s.CUDA {
		_ = s.CUDA[i].ReadFree()
	}
}

// All returns the devices of both drivers, in their order; a device that both list appears twice.
func (s *System) All() []*Choice {
	var all []*Choice
	for i := range s.CUDA {
		all = append(all, &Choice{Backend: plans.CUDA, cuda: &s.CUDA[i]})
	}
	for i := range s.Vulkan {
		all = append(all, &Choice{Backend: plans.Vulkan, vulkan: &s.Vulkan[i]})
	}
	return all
}

// Select returns the device of that name; "auto" is the best one. note, if not empty, is one
// line that says why nothing faster is used.
func (s *System) Select(name string) (c *Choice, note string, err error) {
	kind, index, err := parse(name)
	if err != nil {
		return nil, "", err
	}
	switch {
	case kind == "auto":
		c, note = s.best()
		return c, note, nil
	case kind == plans.CPU || kind == plans.Host:
		return &Choice{Backend: kind}, "", nil
	case index < 0:
		c, err = s.bestOf(kind)
		return c, "", err
	}
	listed, failed := len(s.Vulkan), s.VulkanErr
	if kind == plans.CUDA {
		listed, failed = len(s.CUDA), s.CUDAErr
	}
	switch {
	case failed != nil:
		return nil, "", ir.Unsupported("%s", failed)
	case index >= listed:
		return nil, "", &OutOfRange{name, titles[kind], listed}
	case kind == plans.CUDA:
		return &Choice{Backend: kind, cuda: &s.CUDA[index]}, "", nil
	}
	return &Choice{Backend: kind, vulkan: &s.Vulkan[index]}, "", nil
}

// titles are the names of backends for people.
var titles = map[string]string{plans.CUDA: "CUDA", plans.Vulkan: "Vulkan"}

// OutOfRange says that a device is not listed.
type OutOfRange struct {
	name, title string
	listed      int
}

func (e *OutOfRange) Error() string {
	return fmt.Sprintf("%s: there are %d %s devices", e.name, e.listed, e.title)
}

// best is the device that the survey takes.
func (s *System) best() (c *Choice, note string) {
	for _, g := range s.graphics() {
		if w := g.take(""); w != nil {
			if why := s.slower(g, w); why != "" {
				note = fmt.Sprintf("%s is used through Vulkan, which is slower there: %s", g.name, why)
			}
			return &w.Choice, note
		}
	}
	why := s.None()
	if s.Processor != nil {
		return &Choice{Backend: plans.Host}, fmt.Sprintf("%s, and %s", why, s.Processor)
	}
	return &Choice{Backend: plans.CPU}, why
}

// bestOf is the best GPU through a backend.
func (s *System) bestOf(backend string) (*Choice, error) {
	failed := s.VulkanErr
	if backend == plans.CUDA {
		failed = s.CUDAErr
	}
	if failed != nil {
		return nil, ir.Unsupported("%s", failed)
	}
	var lacks error
	for _, g := range s.graphics() {
		if w := g.take(backend); w != nil {
			return &w.Choice, nil
		}
		lacks = cmp.Or(lacks, g.lacks(backend))
	}
	return nil, ir.Unsupported("%s", cmp.Or(lacks, fmt.Errorf("%s lists no device", titles[backend])))
}
