package spirv_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/spirv"
)

// product is a module that multiplies matrices of f16. The first is loaded in that
// layout, the second in the other one.
func product(layout uint32) []uint32 {
	b := spirv.NewBuilder()
	for _, c := range []spirv.Capability{
		spirv.CapabilityShader, spirv.CapabilityVulkanMemoryModel, spirv.CapabilityFloat16, spirv.CapabilityCooperativeMatrixKHR,
	} {
		b.Capability(c)
	}
	b.Extension("SPV_KHR_cooperative_matrix")
	b.MemoryModel(spirv.AddressingModelLogical, spirv.MemoryModelVulkan)
	u32, f16, f32 := b.Type(spirv.OpTypeInt, 32, 0), b.Type(spirv.OpTypeFloat, 16), b.Type(spirv.OpTypeFloat, 32)
	uint := func(x uint32) spirv.ID { return b.Constant(spirv.OpConstant, u32, x) }
	matrix := func(elem spirv.ID, use uint32) spirv.ID {
		return b.Type(spirv.OpTypeCooperativeMatrixKHR, elem, uint(spirv.ScopeSubgroup), uint(16), uint(16), uint(use))
	}
	x, w, sum := matrix(f16, 0), matrix(f16, 1), matrix(f32, 2)
	shared := b.Variable(b.Type(spirv.OpTypePointer, spirv.StorageClassWorkgroup, b.Type(spirv.OpTypeArray, u32, uint(256))), spirv.StorageClassWorkgroup)
	void := b.Type(spirv.OpTypeVoid)
	main := b.Function(void, b.Type(spirv.OpTypeFunction, void))
	at := b.Emit(spirv.OpAccessChain, b.Type(spirv.OpTypePointer, spirv.StorageClassWorkgroup, u32), shared, uint(0))
	const private = spirv.MemoryAccessNonPrivatePointer
	p := b.Emit(spirv.OpCooperativeMatrixLoadKHR, x, at, uint(layout), uint(8), private)
	q := b.Emit(spirv.OpCooperativeMatrixLoadKHR, w, at, uint(1-layout), uint(8), private)
	zero := b.Emit(spirv.OpCompositeConstruct, sum, b.Constant(spirv.OpConstant, f32, 0))
	r := b.Emit(spirv.OpCooperativeMatrixMulAddKHR, sum, p, q, zero, spirv.CooperativeMatrixOperandsNoneKHR)
	r = b.Emit(spirv.OpFMul, sum, r, r)
	b.Emit(spirv.OpCooperativeMatrixLengthKHR, u32, sum)
	b.Do(spirv.OpCooperativeMatrixStoreKHR, at, r, uint(layout), uint(16), private)
	b.Do(spirv.OpReturn)
	b.EndFunction()
	b.EntryPoint(spirv.ExecutionModelGLCompute, main, "main", shared)
	b.ExecutionMode(main, spirv.ExecutionModeLocalSize, 32, 1, 1)
	words, err := b.Words()
	if err != nil {
		panic(err)
	}
	return words
}

func TestValidateCooperativeMatrices(t *testing.T) {
	for _, layout := range []uint32{spirv.CooperativeMatrixLayoutRowMajorKHR, spirv.CooperativeMatrixLayoutColumnMajorKHR} {
		words := product(layout)
		if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
			t.Errorf("layout %d: %v", layout, err)
		}
		text, err := spirv.Disassemble(words)
		if err != nil || !strings.Contains(text, "OpCooperativeMatrixMulAddKHR") {
			t.Errorf("%v, %s", err, text)
		}
	}
	// What spirv-val finds in the twin is wrong in the module.
	broken := product(0)
	for i, w := range broken {
		if w == 7<<16|uint32(spirv.OpCooperativeMatrixMulAddKHR) {
			broken[i+3] = broken[i+1] // the type of the sums, which is no matrix
		}
	}
	if err := spirv.Validate(broken, spirv.Vulkan12); err == nil {
		t.Error("a product of a type is valid")
	}
}
