package vulkan

import (
	"math"
	"unsafe"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// Statistic is one figure of the driver's compiler about a pipeline, such
// as the number of registers.
type Statistic struct {
	Executable  string  `json:"executable"` // the part of the pipeline
	Name        string  `json:"name"`
	Description string  `json:"description"`
	Value       float64 `json:"value"`
}

// Statistics are the compiler's figures for p. The device must have been opened
// with the feature pipelineExecutableInfo.
func (p *Pipeline) Statistics() ([]Statistic, error) {
	d := p.dev
	executables, err := p.executables()
	if err != nil {
		return nil, err
	}
	var all []Statistic
	for i, e := range executables {
		which := p.executable(i)
		initial := vk.PipelineExecutableStatisticKHR{SType: vk.StructureTypePipelineExecutableStatisticKHR}
		figures, err := listOf(initial, func(n *uint32, s *vk.PipelineExecutableStatisticKHR) vk.Result {
			return d.cmd.GetPipelineExecutableStatisticsKHR(d.handle, &which, n, s)
		})
		if err != nil {
			return nil, d.errorf("list pipeline statistics: %w", err)
		}
		for _, s := range figures {
			all = append(all, Statistic{
				Executable:  vk.String(e.Name[:]),
				Name:        vk.String(s.Name[:]),
				Description: vk.String(s.Description[:]),
				Value:       statisticValue(s.Format, uint64(s.Value)),
			})
		}
	}
	return all, nil
}

// Code returns the output of the driver's compiler for p, by the driver's names: intermediate
// forms and assembly. p must have been created with PipelineInfo.Code.
func (p *Pipeline) Code() (map[string]string, error) {
	d := p.dev
	executables, err := p.executables()
	if err != nil {
		return nil, err
	}
	code := map[string]string{}
	for i := range executables {
		which := p.executable(i)
		initial := vk.PipelineExecutableInternalRepresentationKHR{SType: vk.StructureTypePipelineExecutableInternalRepresentationKHR}
		// The first list has the sizes, the second the data.
		list, err := listOf(initial, func(n *uint32, r *vk.PipelineExecutableInternalRepresentationKHR) vk.Result {
			return d.cmd.GetPipelineExecutableInternalRepresentationsKHR(d.handle, &which, n, r)
		})
		if err != nil {
			return nil, d.errorf("list pipeline representations: %w", err)
		}
		if len(list) == 0 {
			continue
		}
		texts := make([][]byte, len(list))
		for j := range list {
			texts[j] = make([]byte, max(list[j].DataSize, 1))
			list[j].PData = unsafe.Pointer(&texts[j][0])
		}
		n := uint32(len(list))
		if err := d.cmd.GetPipelineExecutableInternalRepresentationsKHR(d.handle, &which, &n, &list[0]).Err(); err != nil {
			return nil, d.errorf("read pipeline representations: %w", err)
		}
		for j, r := range list[:n] {
			if r.IsText != 0 {
				code[vk.String(r.Name[:])] = vk.String(texts[j])
			}
		}
	}
	return code, nil
}

// executables are the parts of p that the driver tells of.
func (p *Pipeline) executables() ([]vk.PipelineExecutablePropertiesKHR, error) {
	d := p.dev
	if !d.enabled["pipelineExecutableInfo"] {
		return nil, d.errorf("pipeline executables: opened without pipelineExecutableInfo")
	}
	info := vk.PipelineInfoKHR{SType: vk.StructureTypePipelineInfoKHR, Pipeline: p.handle}
	initial := vk.PipelineExecutablePropertiesKHR{SType: vk.StructureTypePipelineExecutablePropertiesKHR}
	list, err := listOf(initial, func(n *uint32, e *vk.PipelineExecutablePropertiesKHR) vk.Result {
		return d.cmd.GetPipelineExecutablePropertiesKHR(d.handle, &info, n, e)
	})
	if err != nil {
		return nil, d.errorf("list pipeline executables: %w", err)
	}
	return list, nil
}

func (p *Pipeline) executable(i int) vk.PipelineExecutableInfoKHR {
	return vk.PipelineExecutableInfoKHR{SType: vk.StructureTypePipelineExecutableInfoKHR, Pipeline: p.handle, ExecutableIndex: uint32(i)}
}

// statisticValue reads the union of a statistic.
func statisticValue(format vk.PipelineExecutableStatisticFormatKHR, bits uint64) float64 {
	switch format {
	case vk.PipelineExecutableStatisticFormatBool32KHR:
		return float64(uint32(bits))
	case vk.PipelineExecutableStatisticFormatInt64KHR:
		return float64(int64(bits))
	case vk.PipelineExecutableStatisticFormatFloat64KHR:
		return math.Float64frombits(bits)
	}
	return float64(bits)
}
