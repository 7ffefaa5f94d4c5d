// Package nvidia has the targets of NVIDIA's cards through CUDA that were not measured, and what all such targets have
// alike.
package nvidia

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/plans"
)

// WithCUDA ends the names of targets through NVIDIA's driver.
const WithCUDA = "-cuda"

// Targets has them in the order in which people should read them. Units, memory, bandwidth and operations are of the
// data sheet of the card that is named first; f16 products are those that add in f32. A stage is that of an H200, a
// graph without overlap, or somewhat more.
var Targets = []*device.Target{
	CUDA(100, "NVIDIA Blackwell (B200)", device.Target{Units: 148, Memory: 180e9, Bandwidth: 8e12, FLOPs: 75e12, MatrixFLOPs: 2250e12, Stage: 1.3e-6}),
	CUDA(120, "NVIDIA Blackwell (RTX 5090, 5080, 5070)", device.Target{Units: 170, Memory: 32e9, Bandwidth: 1.79e12, FLOPs: 105e12, MatrixFLOPs: 209e12, Stage: 1.3e-6}),
	CUDA(89, "NVIDIA Ada (RTX 4090, 4080, L40S, L4)", device.Target{Units: 128, Memory: 24e9, Bandwidth: 1.01e12, FLOPs: 83e12, MatrixFLOPs: 165e12, Stage: 1.5e-6}),
	CUDA(86, "NVIDIA Ampere (RTX 3090, 3080, A40, A10)", device.Target{Units: 82, Memory: 24e9, Bandwidth: 936e9, FLOPs: 36e12, MatrixFLOPs: 71e12, Stage: 1.5e-6}),
	CUDA(80, "NVIDIA Ampere (A100)", device.Target{Units: 108, Memory: 40e9, Bandwidth: 1.56e12, FLOPs: 19e12, MatrixFLOPs: 312e12, Stage: 1.5e-6}),
	CUDA(75, "NVIDIA Turing (RTX 2080 Ti, T4)", device.Target{Units: 68, Memory: 11e9, Bandwidth: 616e9, FLOPs: 13e12, MatrixFLOPs: 54e12, Stage: 1.5e-6}),
}

// CUDA adds to a card's figures what all have alike: PTX says which lane holds which element of a matrix, dp4a
// multiplies bytes, and prmt chooses some.
func CUDA(arch int, doc string, t device.Target) *device.Target {
	t.Name, t.Doc = fmt.Sprintf("sm_%d%s", arch, WithCUDA), doc+" through CUDA"
	t.Arch = fmt.Sprintf("sm_%d", arch)
	t.Backend, t.CUDA, t.Vendor = plans.CUDA, arch, 0x10de
	t.Wave, t.Workgroup, t.Shared, t.Rows = 32, 1024, 48<<10, 2048
	t.Matrix, t.Fragments, t.Dot, t.Permute, t.Brief, t.Chunks = device.MatrixShape{Rows: 16, Cols: 16, Depth: 16}, true, true, true, true, true
	return &t
}
