package kernel_test

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// groups multiplies by 16 columns: row r of A, of 64, has the elements r+1 in column r%16, and column c of B
// has k+c/32 in row k. without leaves out parts.
func groups(without string) (*kernel.Func, error) {
	return kernel.Build("groups", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write) // x by columns
		b.Workgroup(128)
		memory := b.Shared(kernel.U32.Vec(4), 64)
		sum := kernel.F32.Matrix(16, 8, kernel.Accumulator)
		sums := []*kernel.Var{b.Var(sum, b.MatFill(sum, 0)), b.Var(sum, b.MatFill(sum, 0))}
		b.If(b.Lt(b.LocalID(), 32), func() {
			column, half := b.Div(b.LocalID(), 2), b.Mod(b.LocalID(), 2)
			memory.Store(b.Add(column, b.Mul(half, 16)), x.Load(kernel.U32.Vec(4), b.LocalID()))
		})
		if without != "barrier" {
			b.Barrier()
		}
		lane := b.SubgroupLane()
		place, pair := b.Div(lane, 4), b.Mul(b.Mod(lane, 4), 2)
		words := make([]kernel.Operand, 4)
		for i := range words { // two pairs of a row, then those of the row 8 below
			row, first := b.Add(place, i/2*8), b.Add(pair, i%2*8)
			v := b.Convert(kernel.F32, b.Add(row, b.Mul(b.SubgroupID(), 16), 1))
			of := func(col kernel.Value) kernel.Value { return b.Select(b.Eq(col, row), v, 0.0) }
			words[i] = b.PackHalf(b.Vec(of(first), of(b.Add(first, 1))))
		}
		a := b.MatPairs(kernel.F16.Matrix(16, 16, kernel.MatrixA), words...)
		b.MatGroupAdd(sums, memory, 16, kernel.GroupProduct{A: a, At: b.U32(0)}, kernel.GroupProduct{A: a, At: b.U32(0)})
		switch without {
		case "wait":
		case "order":
			memory.Store(b.LocalID(), x.Load(kernel.U32.Vec(4), 0))
			fallthrough
		default:
			b.MatGroupWait(0)
		}
		for i, v := range sums {
			for e := range 4 {
				row := b.Add(place, e/2*8, b.Mul(b.SubgroupID(), 16))
				y.Store(b.Add(b.Mul(row, 16), pair, i*8+e%2), v.Elem(e))
			}
		}
	})
}

// TestGroups holds what products of four subgroups give, what of a kernel is found wrong, and who has none.
func TestGroups(t *testing.T) {
	f, err := groups("")
	if err != nil {
		t.Fatal(err)
	}
	var x []byte
	for c := range 16 {
		for k := range 16 {
			x = binary.LittleEndian.AppendUint16(x, gguf.F32ToF16(float32(k)+float32(c)/32))
		}
	}
	y := make([]byte, 4*64*16)
	if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
		t.Fatal(err)
	}
	for r := range 64 {
		for c := range 16 {
			got := math.Float32frombits(binary.LittleEndian.Uint32(y[4*(16*r+c):]))
			if want := 2 * float32(r+1) * (float32(r%16) + float32(c)/32); got != want {
				t.Fatalf("row %d, column %d: %v, want %v", r, c, got, want)
			}
		}
	}
	for without, want := range map[string]string{"barrier": "race on word", "wait": "are not waited for", "order": "race on word"} {
		wrong, err := groups(without)
		if err != nil {
			t.Fatal(err)
		}
		if err := wrong.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: %v, want %q", without, err, want)
		}
	}
	text, err := ptx.Lower(f, ptx.Options{Arch: 90})
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_90a", text)
	golden(t, filepath.Join("ptx", "groups"), f, "ptx", text)
	for _, arch := range []int{80, 100} {
		if _, err := ptx.Lower(f, ptx.Options{Arch: arch}); err == nil || !strings.Contains(err.Error(), "only sm_90a") {
			t.Errorf("sm_%d: %v", arch, err)
		}
	}
	if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "no products of four subgroups") {
		t.Errorf("SPIR-V: %v", err)
	}
	if _, err := llvm.Lower(f, nil, llvm.Machines[0]); err == nil || !strings.Contains(err.Error(), "processors take one subgroup") {
		t.Errorf("LLVM: %v", err)
	}
}
