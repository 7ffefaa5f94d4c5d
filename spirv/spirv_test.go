package spirv_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/spirv"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// module has one of everything that is hard to print: numbers of all widths,
// strings, masks with parameters, a switch, operations on constants.
func module(t testing.TB) []uint32 {
	t.Helper()
	b := spirv.NewBuilder()
	for _, c := range []spirv.Capability{
		spirv.CapabilityShader, spirv.CapabilityInt64, spirv.CapabilityInt8, spirv.CapabilityFloat16,
		spirv.CapabilityFloat64, spirv.CapabilityShader,
	} {
		b.Capability(c)
	}
	glsl := b.ExtInstImport("GLSL.std.450")
	b.MemoryModel(spirv.AddressingModelLogical, spirv.MemoryModelGLSL450)

	boolean := b.Type(spirv.OpTypeBool)
	i32, u32 := b.Type(spirv.OpTypeInt, 32, 1), b.Type(spirv.OpTypeInt, 32, 0)
	f32 := b.Type(spirv.OpTypeFloat, 32)
	for _, x := range []float32{0, 1.5, -1e-30, math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), 1e-45, float32(math.Copysign(0, -1))} {
		b.Constant(spirv.OpConstant, f32, math.Float32bits(x))
	}
	b.Constant(spirv.OpConstant, f32, 0x7fc00000)
	b.Constant(spirv.OpConstant, f32, 0xff812345)
	f16 := b.Type(spirv.OpTypeFloat, 16)
	for _, h := range []uint32{0x3c00, 0xbc01, 0x7bff, 0x0001, 0x7c00, 0xfe00} {
		b.Constant(spirv.OpConstant, f16, h)
	}
	f64 := b.Type(spirv.OpTypeFloat, 64)
	for _, x := range []float64{math.Pi, math.Inf(-1), 5e-324} {
		bits := math.Float64bits(x)
		b.Constant(spirv.OpConstant, f64, uint32(bits), uint32(bits>>32))
	}
	i64, u64 := b.Type(spirv.OpTypeInt, 64, 1), b.Type(spirv.OpTypeInt, 64, 0)
	b.Constant(spirv.OpConstant, i64, 0xfffffffe, 0xffffffff)
	b.Constant(spirv.OpConstant, u64, 1, 1)
	b.Constant(spirv.OpConstant, i32, 0xffffffff)
	b.Constant(spirv.OpConstant, b.Type(spirv.OpTypeInt, 8, 1), 0xfffffffd)

	n := b.SpecConstant(u32, 3, 40)
	b.Name(n, `name "n" \ of`)
	twin := b.SpecConstant(u32, 4, 7)
	b.Name(twin, `name "n" \ of`)
	sum := b.Constant(spirv.OpSpecConstantOp, u32, uint32(spirv.OpIAdd), n, twin)
	less := b.Constant(spirv.OpSpecConstantOp, boolean, uint32(spirv.OpULessThan), n, twin)
	b.Constant(spirv.OpSpecConstantOp, u32, uint32(spirv.OpSelect), less, n, sum)
	v2 := b.Type(spirv.OpTypeVector, u32, 2)
	b.Constant(spirv.OpSpecConstantComposite, v2, n, sum)

	void := b.Type(spirv.OpTypeVoid)
	array := b.Type(spirv.OpTypeArray, f32, sum)
	shared := b.Variable(b.Type(spirv.OpTypePointer, spirv.StorageClassWorkgroup, array), spirv.StorageClassWorkgroup)
	main := b.Function(void, b.Type(spirv.OpTypeFunction, void))
	local := b.Local(b.Type(spirv.OpTypePointer, spirv.StorageClassFunction, f32))
	element := b.Type(spirv.OpTypePointer, spirv.StorageClassWorkgroup, f32)
	x := b.Emit(spirv.OpLoad, f32, b.Emit(spirv.OpAccessChain, element, shared, n),
		spirv.MemoryAccessVolatile|spirv.MemoryAccessAligned, 4)
	x = b.Emit(spirv.OpExtInst, f32, glsl, spirv.GLSLFma, x, x, x)
	b.Decorate(x, spirv.DecorationNoContraction)
	b.Do(spirv.OpStore, local, x)
	one, two, merge := b.NewID(), b.NewID(), b.NewID()
	b.Do(spirv.OpSelectionMerge, merge, spirv.SelectionControlNone)
	b.Do(spirv.OpSwitch, n, merge, 1, one, 2, two)
	for _, l := range []spirv.ID{one, two} {
		b.Do(spirv.OpLabel, l)
		b.Do(spirv.OpBranch, merge)
	}
	b.Do(spirv.OpLabel, merge)
	b.Do(spirv.OpReturn)
	b.EndFunction()
	b.EntryPoint(spirv.ExecutionModelGLCompute, main, "main", shared)
	b.ExecutionMode(main, spirv.ExecutionModeLocalSize, 8, 1, 1)
	words, err := b.Words()
	if err != nil {
		t.Fatal(err)
	}
	return words
}

func TestModuleIsValid(t *testing.T) {
	words := module(t)
	if err := spirv.Validate(words, spirv.Vulkan12); err != nil {
		t.Error(err)
	}
	if !slices.Equal(words, module(t)) {
		t.Error("the same calls gave other words")
	}
}

func TestDisassembleGolden(t *testing.T) {
	got, err := spirv.Disassemble(module(t))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "module.spvasm")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the text differs from %s; -update rewrites it:\n%s", path, got)
	}
}

// TestDisassemblyAssembles holds that spirv-as reads the text: the text of what
// it makes is the same again.
func TestDisassemblyAssembles(t *testing.T) {
	text, err := spirv.Disassemble(module(t))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("spirv-as", "--target-env", "spv1.5", "--preserve-numeric-ids", "-o", "-", "-")
	cmd.Stdin = strings.NewReader(text)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, problem.String())
	}
	words, err := spirv.Words(out)
	if err != nil {
		t.Fatal(err)
	}
	again, err := spirv.Disassemble(words)
	if err != nil {
		t.Fatal(err)
	}
	// The comments before the first instruction name generator and bound.
	_, again, _ = strings.Cut(again, "Schema")
	if _, want, _ := strings.Cut(text, "Schema"); again != want {
		t.Errorf("spirv-as makes another module:\n%s", again)
	}
}

func TestParseRefuses(t *testing.T) {
	good := module(t)
	change := func(at int, w uint32) []uint32 {
		bad := slices.Clone(good)
		bad[at] = w
		return bad
	}
	last := len(good) - 1 // OpFunctionEnd
	for _, c := range []struct {
		name  string
		words []uint32
		want  string
	}{
		{"empty", nil, "not a SPIR-V module"},
		{"header", good[:4], "not a SPIR-V module"},
		{"magic", change(0, 0x03022307), "not a SPIR-V module"},
		{"no words", change(last, 56), "instruction of 0 words"},
		{"cut", change(last, 2<<16|56), "instruction of 2 words, 1 are left"},
		{"opcode", change(last, 1<<16|0xffff), "unknown opcode"},
		{"missing", change(last, 1<<16|uint32(spirv.OpLabel)), "an operand is missing"},
		{"bound", change(3, 5), "is not below the bound"},
		{"capability", change(6, 0xfffff), "operand value 1048575 is unknown"},
		{"too many", append(slices.Clone(good), 2<<16|uint32(spirv.OpReturn), 1), "1 words too many"},
		{"twice", append(slices.Clone(good), 2<<16|uint32(spirv.OpTypeVoid), 1), "%1 is defined twice"},
		{"mask", append(slices.Clone(good), 4<<16|uint32(spirv.OpStore), 1, 2, 1<<31), "operand bit 0x80000000 is unknown"},
		{"string", append(slices.Clone(good), 2<<16|uint32(spirv.OpExtension), 0x41414141), "a string does not end"},
		{"literal", append(slices.Clone(good), 4<<16|uint32(spirv.OpConstant), 1, good[3]-1, 0), "a literal of no known number type"},
		{"nested", append(slices.Clone(good), 4<<16|uint32(spirv.OpSpecConstantOp), 1, good[3]-1, uint32(spirv.OpSpecConstantOp)), "operation 52 on constants"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := spirv.Parse(c.words)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestWordsRefusesHalfWords(t *testing.T) {
	if _, err := spirv.Words(make([]byte, 7)); err == nil {
		t.Error("no error")
	}
}

func TestInstructionTooLong(t *testing.T) {
	b := spirv.NewBuilder()
	b.Name(1, strings.Repeat("x", 1<<18))
	if _, err := b.Words(); err == nil {
		t.Error("no error")
	}
}

func TestToolMissing(t *testing.T) {
	t.Setenv("PATH", "")
	if err := spirv.Validate(module(t), spirv.Vulkan12); !errors.Is(err, spirv.ErrNoTool) {
		t.Errorf("Validate: %v", err)
	}
}

func TestValidateRefuses(t *testing.T) {
	b := spirv.NewBuilder()
	b.MemoryModel(spirv.AddressingModelLogical, spirv.MemoryModelGLSL450)
	words, err := b.Words()
	if err != nil {
		t.Fatal(err)
	}
	if err := spirv.Validate(words, spirv.Vulkan12); err == nil || !strings.Contains(err.Error(), "Shader") {
		t.Errorf("error %v, want one about the capability Shader", err)
	}
}

// folded is a module whose last constants are op of the spec constants 0, 1 (and
// for OpSelect, whether 0 is below 1 before them).
func folded(t testing.TB, op spirv.Op, operands int, boolean bool) []uint32 {
	t.Helper()
	b := spirv.NewBuilder()
	b.Capability(spirv.CapabilityShader)
	b.Capability(spirv.CapabilityLinkage) // there is no entry point
	b.MemoryModel(spirv.AddressingModelLogical, spirv.MemoryModelGLSL450)
	u32, truth := b.Type(spirv.OpTypeInt, 32, 0), b.Type(spirv.OpTypeBool)
	ids := []spirv.ID{b.SpecConstant(u32, 0, 9), b.SpecConstant(u32, 1, 4)}
	typ := u32
	if boolean {
		typ = truth
	}
	if operands == 3 {
		less := b.Constant(spirv.OpSpecConstantOp, truth, uint32(spirv.OpULessThan), ids[0], ids[1])
		ids = append([]spirv.ID{less}, ids...)
	}
	id := b.Constant(spirv.OpSpecConstantOp, typ, append([]uint32{uint32(op)}, ids[:operands]...)...)
	b.Name(id, "result")
	words, err := b.Words()
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// TestSpecializeAgreesWithTool compares the arithmetic on constants with that
// of spirv-opt.
func TestSpecializeAgreesWithTool(t *testing.T) {
	for _, c := range []struct {
		op       spirv.Op
		operands int
		boolean  bool
	}{
		{spirv.OpIAdd, 2, false}, {spirv.OpISub, 2, false}, {spirv.OpIMul, 2, false}, {spirv.OpUDiv, 2, false},
		{spirv.OpUMod, 2, false}, {spirv.OpShiftLeftLogical, 2, false}, {spirv.OpShiftRightLogical, 2, false},
		{spirv.OpShiftRightArithmetic, 2, false}, {spirv.OpBitwiseAnd, 2, false}, {spirv.OpBitwiseOr, 2, false},
		{spirv.OpBitwiseXor, 2, false}, {spirv.OpNot, 1, false}, {spirv.OpSelect, 3, false},
		{spirv.OpIEqual, 2, true}, {spirv.OpINotEqual, 2, true},
		{spirv.OpULessThan, 2, true}, {spirv.OpULessThanEqual, 2, true}, {spirv.OpUGreaterThan, 2, true},
		{spirv.OpUGreaterThanEqual, 2, true}, {spirv.OpSLessThan, 2, true}, {spirv.OpSLessThanEqual, 2, true},
		{spirv.OpSGreaterThan, 2, true}, {spirv.OpSGreaterThanEqual, 2, true},
	} {
		t.Run(c.op.String(), func(t *testing.T) {
			t.Parallel()
			words := folded(t, c.op, c.operands, c.boolean)
			for _, v := range [][2]uint32{{9, 4}, {0xfffffff0, 3}, {3, 31}, {7, 7}} {
				frozen, err := spirv.Specialize(words, map[uint32]uint32{0: v[0], 1: v[1]})
				if err != nil {
					t.Fatal(err)
				}
				want := toolFreeze(t, words, v)
				if got := resultOf(t, frozen); got != want {
					t.Errorf("%v of %#x and %#x: %q, spirv-opt has %q", c.op, v[0], v[1], got, want)
				}
			}
		})
	}
}

// toolFreeze returns what spirv-opt makes of the constant named result.
func toolFreeze(t *testing.T, words []uint32, v [2]uint32) string {
	t.Helper()
	cmd := exec.Command("spirv-opt", "--set-spec-const-default-value", fmt.Sprintf("0:%d 1:%d", v[0], v[1]),
		"--freeze-spec-const", "--fold-spec-const-op-composite", "-", "-o", "-")
	cmd.Stdin = bytes.NewReader(spirv.Bytes(words))
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err, problem.String())
	}
	frozen, err := spirv.Words(out)
	if err != nil {
		t.Fatal(err)
	}
	return resultOf(t, frozen)
}

// resultOf returns the right side of the constant named result.
func resultOf(t *testing.T, words []uint32) string {
	t.Helper()
	text, err := spirv.Disassemble(words)
	if err != nil {
		t.Fatal(err)
	}
	_, right, ok := strings.Cut(text, "%result = ")
	if !ok {
		t.Fatalf("no result in\n%s", text)
	}
	right, _, _ = strings.Cut(right, "\n")
	return right
}

func TestSpecialize(t *testing.T) {
	specs, err := spirv.SpecConstants(module(t))
	if err != nil {
		t.Fatal(err)
	}
	name := `name "n" \ of`
	if want := []spirv.SpecConstant{{SpecID: 3, Name: name, Default: 40}, {SpecID: 4, Name: name, Default: 7}}; !slices.Equal(specs, want) {
		t.Errorf("spec constants %+v, want %+v", specs, want)
	}
	frozen, err := spirv.Specialize(module(t), map[uint32]uint32{3: 5})
	if err != nil {
		t.Fatal(err)
	}
	if err := spirv.Validate(frozen, spirv.Vulkan12); err != nil {
		t.Error(err)
	}
	if specs, err = spirv.SpecConstants(frozen); err != nil || len(specs) > 0 {
		t.Errorf("left after Specialize: %+v, %v", specs, err)
	}
	text, err := spirv.Disassemble(frozen)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"= OpConstant %uint 5\n", "= OpConstant %uint 7\n", "= OpConstant %uint 12\n", "= OpConstantTrue %bool\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "SpecId") || strings.Contains(text, "OpSpec") {
		t.Errorf("specialization is left in\n%s", text)
	}
}

func TestSpecializeRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		words []uint32
		spec  map[uint32]uint32
		want  string
	}{
		{"unknown id", module(t), map[uint32]uint32{9: 1, 3: 1, 8: 0}, "no specialization constants [8 9]"},
		{"by zero", folded(t, spirv.OpUDiv, 2, false), map[uint32]uint32{1: 0}, "OpUDiv of 9 and 0 is undefined"},
		{"wide shift", folded(t, spirv.OpShiftLeftLogical, 2, false), map[uint32]uint32{1: 32}, "of 9 and 32 is undefined"},
		{"unknown operation", folded(t, spirv.OpSMod, 2, false), nil, "OpSMod is not computed here"},
		{"operands", folded(t, spirv.OpNot, 2, false), nil, "1 words too many"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := spirv.Specialize(c.words, c.spec)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// TestWordsAndBytes is the property that Words undoes Bytes.
func TestWordsAndBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOf(rapid.Uint32()).Draw(t, "words")
		back, err := spirv.Words(spirv.Bytes(words))
		if err != nil || !slices.Equal(back, words) {
			t.Fatalf("%v, %v", back, err)
		}
	})
}

// FuzzParse holds that no words make Parse, the printer or Specialize panic, and
// that what is printed is not larger than the module warrants.
func FuzzParse(f *testing.F) {
	f.Add(spirv.Bytes(module(f)))
	f.Add(spirv.Bytes(folded(f, spirv.OpSelect, 3, false)))
	f.Fuzz(func(t *testing.T, b []byte) {
		words, err := spirv.Words(b)
		if err != nil {
			return
		}
		text, err := spirv.Disassemble(words)
		if err != nil {
			return
		}
		if len(text) > 1000+200*len(words) {
			t.Errorf("%d words print as %d bytes", len(words), len(text))
		}
		// Neither needs to succeed.
		_, _ = spirv.SpecConstants(words)
		_, _ = spirv.ReadInterface(words, nil)
		if frozen, err := spirv.Specialize(words, nil); err == nil {
			if _, err := spirv.Parse(frozen); err != nil {
				t.Errorf("a specialized module: %v", err)
			}
		}
	})
}
