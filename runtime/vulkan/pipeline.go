package vulkan

import (
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// PipelineInfo describes a compute pipeline: a SPIR-V module with its entry
// point main, and its specialization.
type PipelineInfo struct {
	Name      string            // for error messages
	Words     []uint32          // SPIR-V; pipelines given the same slice share one shader module
	Constants map[uint32]uint32 // specialization constants, all of 32 bits, by id
	// SubgroupSize is the subgroup size to run with; 0 leaves it to the device.
	SubgroupSize int
	// FullSubgroups promises that the workgroup's x extent is a multiple of the
	// subgroup size, and asks for subgroups without idle lanes where the device
	// can be asked.
	FullSubgroups bool
	// Bindings are the storage buffers of set 0 that the module declares. Kernels of
	// this project have none.
	Bindings []uint32
	// Code keeps the driver's representations of the kernel, for Pipeline.Code; the
	// device must have been opened with the feature pipelineExecutableInfo.
	Code bool
}

// Pipeline is a compiled kernel.
type Pipeline struct {
	dev     *Device
	handle  vk.Pipeline
	layout  vk.PipelineLayout // its own, if the module has bindings; else 0
	buffers vk.DescriptorSetLayout
}

// CreatePipelines compiles pipelines, several at once, with the help of the
// pipeline cache on disk. Either all are made or none.
func (d *Device) CreatePipelines(infos []PipelineInfo) ([]*Pipeline, error) {
	d.cache.load(d)
	modules, err := d.shaderModules(infos)
	defer func() {
		for _, m := range modules {
			d.cmd.DestroyShaderModule(d.handle, m)
		}
	}()
	if err != nil {
		return nil, err
	}
	pipelines := make([]*Pipeline, len(infos))
	errs := make([]error, len(infos))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(infos)) {
		workers.Go(func() {
			for i := range next {
				pipelines[i], errs[i] = d.createPipeline(&infos[i], modules[&infos[i].Words[0]], d.cache.handle, d.capture(&infos[i]))
			}
		})
	}
	// What takes long comes first, so that no processor works on it alone at the end.
	order := make([]int, len(infos))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return len(infos[b].Words) - len(infos[a].Words) })
	for _, i := range order {
		next <- i
	}
	close(next)
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			for _, p := range pipelines {
				if p != nil {
					p.Free()
				}
			}
			return nil, err
		}
	}
	d.cache.save(d)
	return pipelines, nil
}

// shaderModules makes one module for each different Words of infos.
func (d *Device) shaderModules(infos []PipelineInfo) (map[*uint32]vk.ShaderModule, error) {
	modules := map[*uint32]vk.ShaderModule{}
	for i := range infos {
		words := infos[i].Words
		if len(words) == 0 {
			return modules, d.errorf("pipeline %s: no SPIR-V", infos[i].Name)
		}
		if _, ok := modules[&words[0]]; ok {
			continue
		}
		var m vk.ShaderModule
		err := d.cmd.CreateShaderModule(d.handle, &vk.ShaderModuleCreateInfo{
			SType:    vk.StructureTypeShaderModuleCreateInfo,
			CodeSize: uintptr(len(words) * 4),
			PCode:    &words[0],
		}, &m).Err()
		if err != nil {
			return modules, d.errorf("pipeline %s: create shader module: %w", infos[i].Name, err)
		}
		modules[&words[0]] = m
	}
	return modules, nil
}

// capture are the flags that make the driver keep what Statistics and Code tell.
func (d *Device) capture(info *PipelineInfo) (flags vk.PipelineCreateFlags) {
	if d.enabled["pipelineExecutableInfo"] {
		flags |= vk.PipelineCreateCaptureStatisticsBitKHR
	}
	if info.Code {
		flags |= vk.PipelineCreateCaptureInternalRepresentationsBitKHR
	}
	return flags
}

func (d *Device) createPipeline(info *PipelineInfo, module vk.ShaderModule, cache vk.PipelineCache, flags vk.PipelineCreateFlags) (*Pipeline, error) {
	stage := vk.PipelineShaderStageCreateInfo{
		SType:  vk.StructureTypePipelineShaderStageCreateInfo,
		Stage:  vk.ShaderStageComputeBit,
		Module: module,
		PName:  vk.CString("main"),
	}
	if ids := slices.Sorted(maps.Keys(info.Constants)); len(ids) > 0 {
		entries := make([]vk.SpecializationMapEntry, len(ids))
		values := make([]uint32, len(ids))
		for i, id := range ids {
			entries[i] = vk.SpecializationMapEntry{ConstantID: id, Offset: uint32(i * 4), Size: 4}
			values[i] = info.Constants[id]
		}
		stage.PSpecializationInfo = &vk.SpecializationInfo{
			MapEntryCount: uint32(len(entries)),
			PMapEntries:   &entries[0],
			DataSize:      uintptr(len(values) * 4),
			PData:         unsafe.Pointer(&values[0]),
		}
	}
	if err := d.setSubgroup(&stage, info); err != nil {
		return nil, d.errorf("pipeline %s: %w", info.Name, err)
	}
	create := vk.ComputePipelineCreateInfo{
		SType:  vk.StructureTypeComputePipelineCreateInfo,
		Flags:  flags,
		Stage:  stage,
		Layout: d.layout,
	}
	p := &Pipeline{dev: d}
	if err := p.bind(info.Bindings); err != nil {
		p.release()
		return nil, d.errorf("pipeline %s: layout of its bindings: %w", info.Name, err)
	}
	if p.layout != 0 {
		create.Layout = p.layout
	}
	err := d.cmd.CreateComputePipelines(d.handle, cache, 1, &create, &p.handle).Err()
	if err == nil && p.handle == 0 {
		err = errors.New("the driver reports success and gives no pipeline")
	}
	if err != nil {
		p.release()
		return nil, d.errorf("pipeline %s: %w", info.Name, err)
	}
	d.owned.Own(p)
	return p, nil
}

// setSubgroup asks for the subgroup size and for full subgroups.
func (d *Device) setSubgroup(stage *vk.PipelineShaderStageCreateInfo, info *PipelineInfo) error {
	if info.FullSubgroups && d.enabled["computeFullSubgroups"] {
		stage.Flags |= vk.PipelineShaderStageCreateRequireFullSubgroupsBit
	}
	size, s := info.SubgroupSize, d.Info.Subgroup
	switch {
	case size == 0 || s.Min == size && s.Max == size:
	case size < s.Min || size > s.Max:
		return fmt.Errorf("needs subgroups of %d, the device has %d to %d", size, s.Min, s.Max)
	case !d.enabled["subgroupSizeControl"]:
		return fmt.Errorf("needs subgroups of %d, the device cannot be asked for a size", size)
	default:
		stage.PNext = unsafe.Pointer(&vk.PipelineShaderStageRequiredSubgroupSizeCreateInfo{
			SType:                vk.StructureTypePipelineShaderStageRequiredSubgroupSizeCreateInfo,
			RequiredSubgroupSize: uint32(size),
		})
	}
	return nil
}

// Free frees the pipeline once the submissions that were made before have ended.
func (p *Pipeline) Free() { p.dev.free(p) }

func (p *Pipeline) release() {
	d := p.dev
	d.cmd.DestroyPipeline(d.handle, p.handle)
	d.cmd.DestroyPipelineLayout(d.handle, p.layout)
	d.cmd.DestroyDescriptorSetLayout(d.handle, p.buffers)
}

// bind makes the pipeline a layout with storage buffers, if it needs one of its own.
func (p *Pipeline) bind(bindings []uint32) error {
	if len(bindings) == 0 {
		return nil
	}
	d := p.dev
	list := make([]vk.DescriptorSetLayoutBinding, len(bindings))
	for i, n := range bindings {
		list[i] = vk.DescriptorSetLayoutBinding{Binding: n, DescriptorType: vk.DescriptorTypeStorageBuffer, DescriptorCount: 1, StageFlags: vk.ShaderStageComputeBit}
	}
	info := vk.DescriptorSetLayoutCreateInfo{SType: vk.StructureTypeDescriptorSetLayoutCreateInfo, BindingCount: uint32(len(list)), PBindings: &list[0]}
	if err := d.cmd.CreateDescriptorSetLayout(d.handle, &info, &p.buffers).Err(); err != nil {
		return err
	}
	layout := d.layoutInfo()
	layout.SetLayoutCount, layout.PSetLayouts = 1, &p.buffers
	return d.cmd.CreatePipelineLayout(d.handle, &layout, &p.layout).Err()
}
