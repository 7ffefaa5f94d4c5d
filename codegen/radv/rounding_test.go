package radv

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

// halves is a kernel that rounds to f16 in both ways that kernels have.
func halves(t *testing.T) Kernel {
	t.Helper()
	f, err := kernel.Build("halves", func(b *kernel.Builder) {
		x := b.Arg("x", kernel.Read)
		y := b.Arg("y", kernel.Write)
		b.Workgroup(64)
		pair := b.PackHalf(x.Load(kernel.F32.Vec(2), b.LocalID()))
		y.Store(b.LocalID(), b.FMAHalf(pair, pair, pair))
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{Name: "halves", Words: words, Wave: 32, Full: true}
}

// TestRounding: AMD's compiler rounds to f16 to nearest, by its instructions and by the mode that waves start in.
func TestRounding(t *testing.T) {
	k := halves(t)
	for _, family := range []string{"GFX1201", "NAVI31"} {
		c := open(t, family)
		texts, err := c.Assembly(t.Context(), []Kernel{k})
		if err != nil {
			t.Fatal(err)
		}
		if code := texts[0]; !strings.Contains(code, "v_cvt_f16_f32") || strings.Contains(code, "rtz") {
			t.Errorf("%s rounds to f16 by other instructions:\n%s", family, code)
		}
		machines, err := c.Machines(t.Context(), []Kernel{k})
		if err != nil {
			t.Fatal(err)
		}
		// Bits 2 and 3 are how f16 and f64 are rounded, 0 to nearest even; bits 6 and 7 keep their denormals, 4 and 5
		// those of f32.
		if mode := machines[0].Rsrc1 >> 12 & 0xff; mode != 0xc0 {
			t.Errorf("%s: waves start in float mode %#x", family, mode)
		}
	}
}
