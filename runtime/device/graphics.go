package device

import (
	"cmp"
	"errors"
	"slices"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// way is a device through a backend.
type way struct {
	Choice
	lacks error // why it cannot be taken
}

// graphics is a device with the ways to it, the fastest first.
type graphics struct {
	name, kind string
	memory     uint64 // bytes of its own
	ways       []way
}

// graphics lists all that drivers list, best first. What two drivers list is one device: they give it the
// same UUID.
func (s *System) graphics() []*graphics {
	var all []*graphics
	for i := range s.CUDA {
		c := &s.CUDA[i]
		lacks := c.Check(plans.Requirements{Backend: plans.CUDA, CUDA: &plans.CUDARequirements{Arch: cuda.Oldest}})
		all = append(all, &graphics{c.Name, c.Type, c.Memory, []way{{Choice{Backend: plans.CUDA, cuda: c}, lacks}}})
	}
	for i := range s.Vulkan {
		v := &s.Vulkan[i]
		w := way{Choice{Backend: plans.Vulkan, vulkan: v}, v.Check(vulkan.ProbeRequirements())}
		switch {
		case w.lacks != nil:
		case v.LocalMemory() == 0:
			w.lacks = errors.New("it has no memory: a driver without hardware")
		case v.Type == "cpu":
			w.lacks = errors.New("the processor through Vulkan: cpu needs no driver")
		}
		same := slices.IndexFunc(all, func(g *graphics) bool { return g.ways[0].cuda != nil && g.ways[0].cuda.UUID == v.UUID })
		if same >= 0 {
			all[same].ways = append(all[same].ways, w)
			continue
		}
		all = append(all, &graphics{v.Name, v.Type, v.LocalMemory(), []way{w}})
	}
	slices.SortStableFunc(all, func(a, b *graphics) int { // stable: through CUDA before others that are alike
		return cmp.Or(cmp.Compare(vulkan.TypeRank(a.kind), vulkan.TypeRank(b.kind)), cmp.Compare(b.memory, a.memory))
	})
	return all
}

// take is the fastest way that can be taken, through a backend or with "" any; nil without one.
func (g *graphics) take(backend string) *way {
	for i := range g.ways {
		if w := &g.ways[i]; w.lacks == nil && (backend == "" || w.Backend == backend) {
			return w
		}
	}
	return nil
}

// lacks is why none of the ways can be taken.
func (g *graphics) lacks(backend string) error {
	var all []error
	for _, w := range g.ways {
		if w.lacks != nil && (backend == "" || w.Backend == backend) {
			all = append(all, w.lacks)
		}
	}
	if len(all) < 2 {
		return cmp.Or(append(all, nil)...)
	}
	return ir.Unsupported("%s; %s", all[0], all[1])
}

// slower says why a device of NVIDIA is taken through Vulkan, "" for all others.
func (s *System) slower(g *graphics, taken *way) string {
	switch {
	case taken.vulkan == nil || taken.vulkan.VendorID != gpu.NVIDIA:
		return ""
	case s.CUDAErr != nil:
		return s.CUDAErr.Error()
	case g.ways[0].cuda != nil:
		return g.ways[0].lacks.Error()
	}
	return "CUDA does not list it"
}
