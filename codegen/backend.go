package codegen

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// backend is how the kernels of a target become code, and what the plan then requires.
type backend struct {
	name   string
	open   bool                          // the code leaves constants open, so that one module serves many pipelines
	format func(t *target.Target) string // of the code: a row of plans.Formats
	// lower returns the code of a call's kernel and the name of its entry point. Where the format does not leave
	// constants open, the code is that for the call's constants, subgroup size, form and overlap.
	lower func(ctx context.Context, k *specialized, m made, t *target.Target) (code []byte, entry string, err error)
	// require sets the backend's part of the plan's requirements from the plan and the kernels of its
	// modules.
	require func(p *plans.Plan, used []*kernel.Func, t *target.Target)
}

// backends has a row for each backend with kernels.
var backends = []backend{
	{name: plans.Vulkan, open: true, format: always(plans.SPIRV), lower: lowerSPIRV, require: requireVulkan},
	{name: plans.CPU, open: true, format: objectFormat, lower: lowerObject, require: requireCPU},
	{name: plans.CUDA, format: always(plans.PTX), lower: lowerPTX, require: requireCUDA},
}

// backendOf returns the row of a backend.
func backendOf(name string) (*backend, error) {
	i := slices.IndexFunc(backends, func(b backend) bool { return b.name == name })
	if i < 0 {
		return nil, fmt.Errorf("no kernels for backend %q", name)
	}
	return &backends[i], nil
}

func always(format string) func(*target.Target) string {
	return func(*target.Target) string { return format }
}

// module lowers the kernel of a call.
func (b *backend) module(ctx context.Context, k *specialized, of made, t *target.Target) (plans.Module, error) {
	fn, spec := k.fn, k.spec
	m := plans.Module{Name: of.Kernel, Format: b.format(t), Interface: plans.Interface{Args: len(fn.Args)}}
	var err error
	if m.Bytes, m.Interface.Entry, err = b.lower(ctx, k, of, t); err != nil {
		return m, err
	}
	if b.open {
		spec = nil
		for _, s := range fn.Spec {
			m.Interface.Open = append(m.Interface.Open, plans.OpenConst{ID: s.ID, Name: s.Name})
		}
	}
	if !b.open || len(fn.Spec) == 0 {
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

func lowerSPIRV(_ context.Context, k *specialized, _ made, _ *target.Target) ([]byte, string, error) {
	words, err := kernelspirv.Lower(k.fn)
	if err != nil {
		return nil, "", err
	}
	return spirv.Bytes(words), kernelspirv.EntryPoint, nil
}

// vulkanFeatures are what the runtime itself needs: addresses of buffers, a timeline for
// submissions.
var vulkanFeatures = []string{"bufferDeviceAddress", "timelineSemaphore", "vulkanMemoryModel"}

func requireVulkan(p *plans.Plan, used []*kernel.Func, _ *target.Target) {
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
		r.Fragments = r.Fragments || fn.Fragments
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
