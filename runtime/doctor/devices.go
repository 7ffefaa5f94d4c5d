package doctor

import (
	"fmt"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/plans"
)

// isGPU says whether a type of device is a card's.
func isGPU(kind string) bool { return kind == "discrete" || kind == "integrated" || kind == "virtual" }

// devices says which device is used, and why the others are not.
func devices(m *Machine) []Finding {
	var all []Finding
	for _, d := range m.System.Survey() {
		f := Finding{State: OK, Found: fmt.Sprintf("%s, %s, is not used: %s", d.Name, d.Device, d.Why)}
		switch {
		case d.Use && d.Name == plans.Host:
			f = Finding{State: Problem, Found: "only the oracle can run plans, slowly: " + d.Why, Do: "see drivers; or use a computer with AVX2"}
		case d.Use:
			f.Found = fmt.Sprintf("%s, %s, is used: %s", d.Name, d.Device, d.Why)
		case d.Name == plans.Host:
			continue
		case isGPU(d.Type) && d.Able:
			f.State, f.Do = Note, fmt.Sprintf("--device %s runs on it", d.Name)
		case isGPU(d.Type):
			f.State, f.Do = Problem, "install its maker's newest driver: what is missing may come with it"
		}
		all = append(all, f)
	}
	return all
}

// matrices looks whether prompts can be read with the cards' units for matrices.
func matrices(m *Machine) []Finding {
	var all []Finding
	for _, d := range m.System.CUDA {
		all = append(all, Finding{State: OK, Found: fmt.Sprintf("cuda:%d: tensor cores of %s", d.Index, d.ArchName())})
	}
	for i := range m.System.Vulkan {
		d := &m.System.Vulkan[i]
		if !isGPU(d.Type) {
			continue
		}
		name := fmt.Sprintf("vulkan:%d", d.Index)
		chip := gpu.Find(d.VendorID, d.DeviceID)
		switch {
		case d.Features["cooperativeMatrix"]:
			all = append(all, Finding{State: OK, Found: name + " has cooperative matrices"})
		case chip != nil && chip.Arch.MatrixFLOPs > 0:
			all = append(all, Finding{State: Problem, Found: name + ": the card has units for matrices, and the driver no cooperative matrices: prompts are read more slowly",
				Do: "install a newer driver, with VK_KHR_cooperative_matrix; Mesa 25 has it for RDNA3 and RDNA4"})
		default:
			all = append(all, Finding{State: OK, Found: name + " has no cooperative matrices"})
		}
	}
	return all
}
