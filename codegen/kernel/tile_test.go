package kernel_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

// tiles multiplies two tiles twice, and adds 16 rows of a matrix that is wider; barrier says whether lanes wait for
// each other.
func tiles(barrier bool) func(b *kernel.Builder) {
	return func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		pairs, sums := b.Shared(kernel.U32, 512), b.Shared(kernel.F32, 16*20)
		b.For(b.LocalID(), 512, 16, func(i kernel.Value) { pairs.Store(i, x.Load(kernel.U32, i)) })
		b.For(b.LocalID(), 16*20, 16, func(i kernel.Value) { sums.Store(i, b.Convert(kernel.F32, i)) })
		if barrier {
			b.Barrier()
		}
		b.TileZero(0)
		b.TileLoad(1, sums, 3, 20)
		b.TileLoad(6, pairs, 0, 16)
		b.TileLoad(7, pairs, 256, 16)
		for range 2 {
			b.TileMulAdd(1, 6, 7)
		}
		b.TileStore(sums, 3, 20, 1)
		b.Barrier()
		b.For(b.LocalID(), 16*20, 16, func(i kernel.Value) { y.Store(i, sums.Load(i)) })
	}
}

// TestTiles runs them in the interpreter, which knows of accesses that no barrier orders.
func TestTiles(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	x, y := make([]byte, 4*512), make([]byte, 4*16*20)
	half := func(at int) float64 { // element of x and of its partner, in the order of bf16
		return float64(math.Float32frombits(uint32(binary.LittleEndian.Uint16(x[2*at:])) << 16))
	}
	for i := range 1024 {
		binary.LittleEndian.PutUint16(x[2*i:], uint16(math.Float32bits(float32(r.NormFloat64()))>>16))
	}
	f, err := kernel.Build("tiles", tiles(true))
	if err == nil {
		err = f.Run(nil, 16, [3]int{1, 1, 1}, [][]byte{x, y})
	}
	if err != nil {
		t.Fatal(err)
	}
	for i := range 16 * 20 {
		row, col := i/20, i%20-3
		want := float64(i)
		for k := range 32 {
			if col >= 0 && col < 16 {
				want += 2 * half(32*row+k) * half(512+32*(k/2)+2*col+k%2)
			}
		}
		if got := float64(math.Float32frombits(binary.LittleEndian.Uint32(y[4*i:]))); math.Abs(got-want) > 1e-3 {
			t.Errorf("element %d is %g, want %g", i, got, want)
		}
	}
	if text := f.String(); !strings.Contains(text, "tile_load 1 tile=1 3 20\n") || !strings.Contains(text, "tile_mul_add 1 6 7\n") {
		t.Errorf("listed as %s", text)
	}
	if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "SPIR-V has no tiles") {
		t.Errorf("SPIR-V: %v", err)
	}
	if f, err = kernel.Build("tiles", tiles(false)); err == nil {
		err = f.Run(nil, 16, [3]int{1, 1, 1}, [][]byte{x, y})
	}
	if err == nil || !strings.Contains(err.Error(), "workgroup (tile_load at ") {
		t.Errorf("without a barrier: %v", err)
	}
}

// TestTileErrors: what all lanes have to come to, and with the same place, within the array.
func TestTileErrors(t *testing.T) {
	for want, body := range map[string]func(b *kernel.Builder, s *kernel.Array){
		"tile 8 of 8":                    func(b *kernel.Builder, s *kernel.Array) { b.TileZero(8) },
		"tile 3 of 8, array of u32x4":    func(b *kernel.Builder, _ *kernel.Array) { b.TileLoad(3, b.Shared(kernel.U32.Vec(4), 64), 0, 4) },
		"element 256 of an array of 256": func(b *kernel.Builder, s *kernel.Array) { b.TileLoad(0, s, 16, 16) },
		"lane 1: element 2, stride 16":   func(b *kernel.Builder, s *kernel.Array) { b.TileLoad(0, s, b.Add(b.LocalID(), 1), 16) },
		"lane 0 does not come to it":     func(b *kernel.Builder, s *kernel.Array) { b.If(b.Eq(b.LocalID(), 3), func() { b.TileZero(0) }) },
	} {
		f, err := kernel.Build("tiles", func(b *kernel.Builder) {
			b.Arg("y", kernel.Write)
			b.Workgroup(16)
			body(b, b.Shared(kernel.U32, 256))
		})
		if err == nil {
			err = f.Run(nil, 16, [3]int{1, 1, 1}, [][]byte{make([]byte, 4)})
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
