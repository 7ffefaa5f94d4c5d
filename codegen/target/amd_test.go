package target

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/target/rdna"
)

func TestOccupancy(t *testing.T) {
	for _, c := range []struct{ wave, vgprs, workgroup, shared, want int }{
		{32, 24, 128, 0, 16},         // the most that there are
		{32, 96, 128, 0, 16},         // 1536/96
		{32, 97, 128, 0, 12},         // 120 are given
		{32, 256, 128, 0, 5},         // 264
		{64, 48, 128, 0, 16},         // 768/48
		{64, 49, 128, 0, 12},         // 60
		{64, 256, 64, 0, 2},          // 264
		{32, 97, 1024, 0, 8},         // 48 subgroups, 32 a workgroup
		{32, 24, 128, 32 << 10, 4},   // 4 workgroups of 4
		{32, 24, 1024, 64 << 10, 16}, // 2 workgroups of 32
		{32, 24, 32, 64 << 10, 1},    // 2 subgroups on 4 SIMDs
	} {
		if got := rdna.GFX1201.AMD.Occupancy(c.wave, c.vgprs, c.workgroup, c.shared); got != c.want {
			t.Errorf("wave %d, %d registers, workgroups of %d with %d bytes: %d, want %d", c.wave, c.vgprs, c.workgroup, c.shared, got, c.want)
		}
	}
	if n := rdna.GFX1201.AMD.SIMDs(rdna.GFX1201.Units); n != 128 {
		t.Errorf("%d SIMDs, want 128", n)
	}
}

func TestNames(t *testing.T) {
	for _, want := range All() {
		if got, err := Lookup(want.Name); err != nil || got != want {
			t.Errorf("%s: %v, %v", want.Name, got, err)
		}
		got, err := Lookup(want.Name + NoMatrix)
		if has := want.Matrix != (MatrixShape{}); has != (err == nil) {
			t.Errorf("%s without matrices: %v", want.Name, err)
		} else if has && (got.Matrix != (MatrixShape{}) || got.MatrixFLOPs != 0 || got.Dot != want.Dot || got.Name != want.Name+NoMatrix || got.Doc == want.Doc) {
			t.Errorf("%s: without matrices %+v", want.Name, got)
		}
	}
	for _, name := range []string{"gfx9999", NoMatrix} {
		if _, err := Lookup(name); err == nil {
			t.Errorf("%q is found", name)
		}
	}
}
