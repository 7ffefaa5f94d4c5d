package target

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target/hopper"
	"github.com/zincc-dev/zincc/plans"
)

// WithCUDA ends the names of targets through NVIDIA's driver.
const WithCUDA = "-cuda"

// The targets through CUDA. Units, memory, bandwidth and operations are of the data sheet of the
// card that is named first; f16 products are those that add in f32. Of sm_90 they are what an H200
// reached: 4.6 TB/s read, and 790 TFLOP/s. A stage is that of a graph without overlap, 1.3 us on an
// H200; on others it was not measured.
var cuda = []*Target{
	cudaTarget(90, "NVIDIA Hopper (H100, H200)", Target{Units: 132, Memory: 80e9, Bandwidth: 4.6e12, FLOPs: 67e12, MatrixFLOPs: 790e12, Stage: 1.3e-6}),
	cudaTarget(100, "NVIDIA Blackwell (B200)", Target{Units: 148, Memory: 180e9, Bandwidth: 8e12, FLOPs: 75e12, MatrixFLOPs: 2250e12, Stage: 1.3e-6}),
	cudaTarget(120, "NVIDIA Blackwell (RTX 5090, 5080, 5070)", Target{Units: 170, Memory: 32e9, Bandwidth: 1.79e12, FLOPs: 105e12, MatrixFLOPs: 209e12, Stage: 1.3e-6}),
	cudaTarget(89, "NVIDIA Ada (RTX 4090, 4080, L40S, L4)", Target{Units: 128, Memory: 24e9, Bandwidth: 1.01e12, FLOPs: 83e12, MatrixFLOPs: 165e12, Stage: 1.5e-6}),
	cudaTarget(86, "NVIDIA Ampere (RTX 3090, 3080, A40, A10)", Target{Units: 82, Memory: 24e9, Bandwidth: 936e9, FLOPs: 36e12, MatrixFLOPs: 71e12, Stage: 1.5e-6}),
	cudaTarget(80, "NVIDIA Ampere (A100)", Target{Units: 108, Memory: 40e9, Bandwidth: 1.56e12, FLOPs: 19e12, MatrixFLOPs: 312e12, Stage: 1.5e-6}),
	cudaTarget(75, "NVIDIA Turing (RTX 2080 Ti, T4)", Target{Units: 68, Memory: 11e9, Bandwidth: 616e9, FLOPs: 13e12, MatrixFLOPs: 54e12, Stage: 1.5e-6}),
}

// cudaTarget adds to a card's figures what all have alike: PTX says which lane holds which element
// of a matrix, dp4a multiplies bytes, and prmt chooses some.
func cudaTarget(arch int, doc string, t Target) *Target {
	t.Name, t.Doc = fmt.Sprintf("sm_%d%s", arch, WithCUDA), doc+" through CUDA"
	t.Arch = fmt.Sprintf("sm_%d", arch)
	t.Backend, t.CUDA, t.Vendor = plans.CUDA, arch, 0x10de
	t.Wave, t.Workgroup, t.Shared, t.Rows = 32, 1024, 48<<10, 2048
	t.Matrix, t.Fragments, t.Dot, t.Permute, t.Brief, t.Chunks = MatrixShape{16, 16, 16}, true, true, true, true, true
	if arch == 90 {
		t.Groups, t.Asked = true, 227<<10
		t.Curve = hopper.Curve
		t.SharedFast = 196 << 10                                               // 15 to 27 us a dispatch above it: docs/lab/batched-decoding.md
		t.EightHeadsFrom = 32 << 10                                            // docs/lab/cuda.md
		t.Fit = Fit{Ramp: 2e-6, Share: 0.82, Attention: 0.55, Overlap: 3.4e-6} // docs/estimates.md
	}
	return &t
}
