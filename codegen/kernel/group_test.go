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
// has k+c/32 in row k. With inMemory A lies in lines, B in lines by rows, and sums are set. without leaves out parts.
func groups(inMemory bool, without string) (*kernel.Func, error) {
	return kernel.Build("groups", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write) // x by columns, or by rows
		b.Workgroup(128)
		const left, stride = 128, 16
		memory := b.Shared(kernel.U32.Vec(4), left+64*8)
		sum := kernel.F32.Matrix(16, 8, kernel.Accumulator)
		inLine := func(line, e kernel.Value) kernel.Value { return b.Add(b.Mul(line, 8), b.Xor(e, b.Mod(line, 8))) }
		var sums []*kernel.Var
		for range 2 {
			first := float32(0)
			if inMemory {
				first = 7
			}
			sums = append(sums, b.Var(sum, b.MatFill(sum, first)))
		}
		b.If(b.Lt(b.LocalID(), 32), func() {
			line, half := b.Div(b.LocalID(), 2), b.Mod(b.LocalID(), 2)
			at := b.Add(line, b.Mul(half, stride))
			if inMemory {
				at = inLine(line, half)
			}
			memory.Store(at, x.Load(kernel.U32.Vec(4), b.LocalID()))
		})
		lane := b.SubgroupLane()
		place, pair := b.Div(lane, 4), b.Mul(b.Mod(lane, 4), 2)
		element := func(row, col kernel.Value) kernel.Value { // of A
			return b.Select(b.Eq(col, b.Mod(row, 16)), b.Convert(kernel.F32, b.Add(row, 1)), 0.0)
		}
		two := func(row, first kernel.Value) kernel.Value {
			return b.PackHalf(b.Vec(element(row, first), element(row, b.Add(first, 1))))
		}
		if inMemory {
			row, half := b.Div(b.LocalID(), 2), b.Mod(b.LocalID(), 2)
			first := b.Mul(half, 8)
			eight := b.Vec(two(row, first), two(row, b.Add(first, 2)), two(row, b.Add(first, 4)), two(row, b.Add(first, 6)))
			memory.Store(b.Add(inLine(row, half), left), eight)
		}
		if without != "barrier" {
			b.Barrier()
		}
		if inMemory {
			p := kernel.GroupProduct{Rows: b.U32(left), At: b.U32(0)}
			b.MatGroup(sums, true, memory, kernel.GroupLines{ByRow: true, Left: true}, p, p)
		} else {
			words := make([]kernel.Operand, 4)
			for i := range words { // two pairs of a row, then those of the row 8 below
				words[i] = two(b.Add(place, i/2*8, b.Mul(b.SubgroupID(), 16)), b.Add(pair, i%2*8))
			}
			p := kernel.GroupProduct{A: b.MatPairs(kernel.F16.Matrix(16, 16, kernel.MatrixA), words...), At: b.U32(0)}
			b.MatGroupAdd(sums, memory, stride, p, p)
		}
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
	for _, inMemory := range []bool{false, true} {
		f, err := groups(inMemory, "")
		if err != nil {
			t.Fatal(err)
		}
		var x []byte
		for i := range 256 {
			k, c := i%16, i/16
			if inMemory {
				k, c = c, k
			}
			x = binary.LittleEndian.AppendUint16(x, gguf.F32ToF16(float32(k)+float32(c)/32))
		}
		y := make([]byte, 4*64*16)
		if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			t.Fatal(err)
		}
		for r := range 64 {
			for c := range 16 {
				got := math.Float32frombits(binary.LittleEndian.Uint32(y[4*(16*r+c):]))
				if want := 2 * float32(r+1) * (float32(r%16) + float32(c)/32); got != want {
					t.Fatalf("in memory %v: row %d, column %d: %v, want %v", inMemory, r, c, got, want)
				}
			}
		}
		for without, want := range map[string]string{"barrier": "race on word", "wait": "are not waited for", "order": "race on word"} {
			wrong, err := groups(inMemory, without)
			if err != nil {
				t.Fatal(err)
			}
			if err := wrong.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("in memory %v, without %s: %v, want %q", inMemory, without, err, want)
			}
		}
		text, err := ptx.Lower(f, ptx.Options{Arch: 90})
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_90a", text)
		golden(t, filepath.Join("ptx", map[bool]string{false: "groups", true: "groups_in_memory"}[inMemory]), f, "ptx", text)
	}
	f, err := groups(false, "")
	if err != nil {
		t.Fatal(err)
	}
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
