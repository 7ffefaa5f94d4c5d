package vulkan

import (
	"math"

	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

// Statistic is one figure that the driver's compiler tells of a pipeline, such
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
	if !d.enabled["pipelineExecutableInfo"] {
		return nil, d.errorf("pipeline statistics: opened without pipelineExecutableInfo")
	}
	info := vk.PipelineInfoKHR{SType: vk.StructureTypePipelineInfoKHR, Pipeline: p.handle}
	initial := vk.PipelineExecutablePropertiesKHR{SType: vk.StructureTypePipelineExecutablePropertiesKHR}
	executables, err := listOf(initial, func(n *uint32, e *vk.PipelineExecutablePropertiesKHR) vk.Result {
		return d.cmd.GetPipelineExecutablePropertiesKHR(d.handle, &info, n, e)
	})
	if err != nil {
		return nil, d.errorf("list pipeline executables: %w", err)
	}
	var all []Statistic
	for i, e := range executables {
		which := vk.PipelineExecutableInfoKHR{
			SType: vk.StructureTypePipelineExecutableInfoKHR, Pipeline: p.handle, ExecutableIndex: uint32(i),
		}
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
