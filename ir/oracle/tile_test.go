package oracle

import (
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestTile puts rows into tiles of two orders and takes them out again.
func TestTile(t *testing.T) {
	checkOp(t, func(t *opTest) {
		const k, attrs = 512, `{rows=256, lanes="13 12"}`
		m := t.machine(8, 1, nil, "step @x : f32[T, 512]", "%0 = half @x : io f16[T, 512]\n%1 = tile %0 "+attrs+" : io f16[256, 1024]\n%2 = untile %1 "+attrs+" : io f16[T, 512]")
		x := t.floats(t.n * k)
		m.setFloats("x", x...)
		run(t, m)
		ops := m.prog.Funcs[0].Ops()
		half, tiles := m.Floats(ops[0].Result), m.Floats(ops[1].Result)
		near(t, "untile", m.Floats(ops[2].Result)[:t.n*k], widened(half[:t.n*k]), 0)
		for i, lanes := range [][2]int{{1, 3}, {1, 2}} {
			for r := range 128 {
				for q := range k / 8 {
					for e := range 8 {
						want := float32(0)
						if r < t.n {
							want = half[r*k+q/32*256+ir.TileElement(lanes, q%32, e)]
						}
						if got := tiles[(i*k/8+q)*1024+r*8+e]; got != want {
							t.Fatalf("order %d, row %d, piece %d, element %d: %v, want %v", i, r, q, e, got, want)
						}
					}
				}
			}
		}
	})
}

func widened(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
