package kernel_test

import (
	"encoding/binary"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

// byteProduct multiplies 16 rows of bytes by 8 columns of bytes, of 16 or 32 elements; y has rows of 8.
func byteProduct(depth int) (*kernel.Func, error) {
	return kernel.Build("byte_product", func(b *kernel.Builder) {
		w, x, y := b.Arg("w", kernel.Read), b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		g, t := b.Div(b.SubgroupLane(), 4), b.Mod(b.SubgroupLane(), 4)
		word := func(buf *kernel.Buffer, row kernel.Value, half int) kernel.Value {
			return buf.Load(kernel.U32, b.Add(b.Mul(row, depth/4), t, 4*half))
		}
		var rows []kernel.Operand
		for row := range 2 {
			for half := range depth / 16 {
				rows = append(rows, word(w, b.Add(g, 8*row), half))
			}
		}
		column := word(x, g, 0)
		if depth == 32 {
			column = b.Vec(column, word(x, g, 1))
		}
		v := b.MatBytes(b.Vec(rows...), column)
		for e := range 4 {
			y.Store(b.Add(b.Mul(b.Add(g, e/2*8), 8), b.Mul(t, 2), e%2), b.Elem(v, e))
		}
	})
}

// TestMatBytes holds that lanes have what MatBytes says of the products of unsigned and signed bytes, and who has no
// such matrices.
func TestMatBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, depth := range []int{16, 32} {
		f, err := byteProduct(depth)
		if err != nil {
			t.Fatal(err)
		}
		w, x, y := make([]byte, 16*depth), make([]byte, 8*depth), make([]byte, 4*16*8)
		for _, list := range [][]byte{w, x} {
			for i := range list {
				list[i] = byte(rng.Uint32())
			}
		}
		if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{w, x, y}); err != nil {
			t.Fatal(err)
		}
		for r := range 16 {
			for c := range 8 {
				want := 0
				for k := range depth {
					want += int(w[depth*r+k]) * int(int8(x[depth*c+k]))
				}
				if got := int(int32(binary.LittleEndian.Uint32(y[4*(8*r+c):]))); got != want {
					t.Errorf("depth %d, row %d, column %d: %d, want %d", depth, r, c, got, want)
				}
			}
		}
		text, err := ptx.Lower(f, ptx.Options{Arch: 80})
		if err != nil {
			t.Fatal(err)
		}
		assemble(t, "sm_80", text)
		if want := map[int]string{16: "m16n8k16", 32: "m16n8k32"}[depth] + ".row.col.s32.u8.s8.s32"; !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
		if _, err := ptx.Lower(f, ptx.Options{Arch: 75}); err == nil || !strings.Contains(err.Error(), "no matrix of bytes") {
			t.Errorf("sm_75: %v", err)
		}
		if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "SPIR-V has no matrices of bytes") {
			t.Errorf("SPIR-V: %v", err)
		}
		if err := f.Run(nil, 64, [3]int{1, 1, 1}, [][]byte{w, x, y}); err == nil {
			t.Error("subgroups of 64 multiply")
		}
	}
	if _, err := kernel.Build("odd", func(b *kernel.Builder) {
		b.Workgroup(32)
		b.MatBytes(b.Vec(b.U32(0), 0), b.Vec(b.U32(0), 0))
	}); err == nil || !strings.Contains(err.Error(), "mat_bytes") {
		t.Errorf("words that do not fit: %v", err)
	}
}
