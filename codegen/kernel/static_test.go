package kernel_test

import (
	"math"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/spirv"
	"pgregory.net/rapid"
)

// expression draws an expression of specialization constants, as U32. Divisors
// and shifts stay in range, and all of it is forced positive at the end.
func expression(t *rapid.T, b *kernel.Builder, leaves []kernel.Value, depth int) kernel.Value {
	if depth == 0 {
		return rapid.SampledFrom(leaves).Draw(t, "leaf")
	}
	x := expression(t, b, leaves, depth-1)
	y := expression(t, b, leaves, depth-1)
	switch rapid.IntRange(0, 14).Draw(t, "operation") {
	case 0:
		return b.Add(x, y)
	case 1:
		return b.Sub(x, y)
	case 2:
		return b.Mul(x, y)
	case 3:
		return b.Div(x, b.Or(y, 1))
	case 4:
		return b.Mod(x, b.Or(y, 1))
	case 5:
		return b.Shl(x, b.And(y, 31))
	case 6:
		return b.Shr(x, b.And(y, 31))
	case 7:
		return b.And(x, y)
	case 8:
		return b.Or(x, y)
	case 9:
		return b.Xor(x, y)
	case 10:
		return b.Not(x)
	case 11:
		return b.Min(x, y)
	case 12:
		return b.Max(x, y)
	case 13:
		both := b.And(b.Or(b.Lt(x, y), b.Ge(x, 7)), b.Not(b.Eq(x, y)))
		return b.Select(both, x, y)
	}
	return b.Select(b.Or(b.Le(x, y), b.Gt(y, x), b.Ne(x, 3)), y, x)
}

// TestStaticExpressions is the property that the kernel and its module agree on
// what is computed from specialization constants.
func TestStaticExpressions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f, err := kernel.Build("k", func(b *kernel.Builder) {
			b.Arg("x", kernel.Read)
			leaves := []kernel.Value{
				b.SpecU32("n", 1), b.SpecU32("m", 1),
				b.U32(uint32(rapid.IntRange(0, 40).Draw(t, "constant"))), b.U32(math.MaxUint32),
			}
			// Whatever the literals say, it depends on a constant and is not 0.
			x := b.Xor(expression(t, b, leaves, 3), leaves[0])
			b.Workgroup(b.Max(x, b.Select(b.Eq(leaves[0], 0), b.U32(2), b.U32(1))))
		})
		if err != nil {
			t.Fatal(err)
		}
		words, err := kernelspirv.Lower(f)
		if err != nil {
			t.Fatal(err)
		}
		spec := map[uint32]uint32{0: rapid.Uint32().Draw(t, "n"), 1: rapid.Uint32Range(0, 100).Draw(t, "m")}
		want, err := f.WorkgroupSize(spec)
		if err != nil {
			t.Fatal(err)
		}
		frozen, err := spirv.Specialize(words, spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := workgroupSize(t, frozen); got != want {
			t.Fatalf("workgroup size %d in the module, %d in the kernel", got, want)
		}
	})
}

// workgroupSize returns the first element of the constant that is decorated as
// the workgroup size.
func workgroupSize(t *rapid.T, words []uint32) uint32 {
	m, err := spirv.Parse(words)
	if err != nil {
		t.Fatal(err)
	}
	var size spirv.ID
	values := map[spirv.ID]uint32{}
	for _, in := range m.Insts {
		switch {
		case in.Op == spirv.OpDecorate && in.Words[1] == spirv.DecorationBuiltIn && in.Words[2] == spirv.BuiltInWorkgroupSize:
			size = in.Words[0]
		case in.Op == spirv.OpConstant:
			values[in.Result] = in.Words[2]
		case in.Op == spirv.OpConstantComposite && in.Result == size:
			return values[in.Words[2]]
		}
	}
	t.Fatal("the module has no workgroup size")
	return 0
}
