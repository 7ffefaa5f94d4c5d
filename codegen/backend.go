package codegen

import (
	"fmt"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// backend is how the kernels of a target become code, and what the plan then requires.
type backend struct {
	name   string
	format string // of the code: a row of plans.Formats
	// lower returns the code of a kernel and the name of its entry point. Where the format does not
	// leave constants open, the code is that for the constants of spec, by id, or their defaults, and
	// for subgroups of wave lanes.
	lower func(fn *kernel.Func, spec map[uint32]uint32, wave int) (code []byte, entry string, err error)
	// require sets the backend's part of the plan's requirements from the plan and the kernels of its
	// modules.
	require func(p *plans.Plan, used []*kernel.Func)
}

// backends has a row for each backend with kernels.
var backends = []backend{
	{name: plans.Vulkan, format: plans.SPIRV, lower: lowerSPIRV, require: requireVulkan},
}

// backendOf returns the row of a backend.
func backendOf(name string) (*backend, error) {
	i := slices.IndexFunc(backends, func(b backend) bool { return b.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no kernels for backend %q", name)
	}
	return &backends[i], nil
}

// open reports whether the code leaves constants open.
func (b *backend) open() bool {
	f, err := plans.FormatOf(b.format)
	return err == nil && f.Open
}

// module lowers a kernel of that name.
func (b *backend) module(name string, fn *kernel.Func, spec map[uint32]uint32, wave int) (plans.Module, error) {
	m := plans.Module{Name: name, Format: b.format, Interface: plans.Interface{Args: len(fn.Args)}}
	var err error
	if m.Bytes, m.Interface.Entry, err = b.lower(fn, spec, wave); err != nil {
		return m, err
	}
	if b.open() {
		spec = nil
		for _, s := range fn.Spec {
			m.Interface.Open = append(m.Interface.Open, plans.OpenConst{ID: s.ID, Name: s.Name})
		}
	}
	if !b.open() || len(fn.Spec) == 0 {
		size, err := fn.WorkgroupSize(spec)
		if err != nil {
			return m, err
		}
		shared, err := fn.SharedBytes(spec)
		if err != nil {
			return m, err
		}
		m.Interface.Workgroup, m.Interface.Shared = int(size), int(shared)
	}
	return m, nil
}

func lowerSPIRV(fn *kernel.Func, _ map[uint32]uint32, _ int) ([]byte, string, error) {
	words, err := kernelspirv.Lower(fn)
	if err != nil {
		return nil, "", err
	}
	return spirv.Bytes(words), kernelspirv.EntryPoint, nil
}

// vulkanFeatures are what the runtime itself needs: addresses of buffers, a timeline for
// submissions.
var vulkanFeatures = []string{"bufferDeviceAddress", "timelineSemaphore", "vulkanMemoryModel"}

func requireVulkan(p *plans.Plan, used []*kernel.Func) {
	features, extensions, subgroupOps := map[string]bool{}, map[string]bool{}, map[string]bool{}
	add := func(to map[string]bool, names []string) {
		for _, name := range names {
			to[name] = true
		}
	}
	add(features, vulkanFeatures)
	r := &plans.VulkanRequirements{}
	for _, fn := range used {
		add(features, fn.Features)
		add(extensions, fn.Extensions)
		add(subgroupOps, fn.SubgroupOps)
		r.Dealt = r.Dealt || fn.Dealt
	}
	r.Features = slices.Sorted(maps.Keys(features))
	r.Extensions = slices.Sorted(maps.Keys(extensions))
	r.SubgroupOps = slices.Sorted(maps.Keys(subgroupOps))
	for i, pl := range p.Pipelines {
		r.Workgroup = max(r.Workgroup, pl.Workgroup)
		r.Shared = max(r.Shared, pl.Shared)
		if i == 0 {
			r.Subgroup = [2]int{pl.Wave, pl.Wave}
		}
		r.Subgroup = [2]int{min(r.Subgroup[0], pl.Wave), max(r.Subgroup[1], pl.Wave)}
	}
	for _, entry := range p.Entries {
		for _, d := range entry.Dispatches {
			r.PushConstants = max(r.PushConstants, plans.AddressBytes*len(d.Args))
		}
	}
	p.Require.Vulkan = r
}
