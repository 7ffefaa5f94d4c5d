package strategy_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/codegen/target/device"
	"github.com/zincc-dev/zincc/ir"
)

// TestCurves: what was fitted to an H200 ranks and predicts for the targets of that device, and for no other.
func TestCurves(t *testing.T) {
	for _, on := range target.All() {
		if has := on.Curve != nil; has != (on.Name == "sm_90" || on.Name == "sm_90-cuda") {
			t.Errorf("%s has a curve: %t", on.Name, has)
		}
		if on.IsHost() {
			continue
		}
		list := strategy.Candidates(linears(t, on.Name, 512, 4096, 1, 4096))
		if len(list) == 0 || list[0].Tiling == nil {
			continue
		}
		_, why := strategy.Choose("", list, len(list), on)
		if honest := strings.Contains(why, "roofline"); honest != (on.Curve == nil) {
			t.Errorf("%s: %s", on.Name, why)
		}
		if _, is := strategy.Seconds(&list[0], on, 512); is != (on.Curve != nil) {
			t.Errorf("%s: predicted by a curve: %t", on.Name, is)
		}
	}
}

// TestThresholds holds that what an H200 decided is of its targets alone, that rules decide for the others, and that a
// plan says so where several candidates were ranked.
func TestThresholds(t *testing.T) {
	for _, on := range target.All() {
		is := on.Thresholds.Device != ""
		if is != (on.Name == "sm_90" || on.Name == "sm_90-cuda") {
			t.Errorf("%s: thresholds of %q", on.Name, on.Thresholds.Device)
		}
		other := on.Thresholds
		if other.BarrierSubgroups = 0; !is && other != (device.Thresholds{}) {
			t.Errorf("%s has thresholds of no device: %+v", on.Name, other)
		}
		for rows, want := range map[int][2]bool{15: {true, false}, 16: {true, true}, 32: {true, true}, 33: {!is, true}, 35: {!is, true}, 36: {false, true}} {
			if have := [2]bool{on.SharesX(rows), on.TakesFour(rows)}; have != want {
				t.Errorf("%s: %d rows of a team share x, and are taken by fours: %v, want %v", on.Name, rows, have, want)
			}
		}
		for of := 1; of < 3; of++ {
			_, why := strategy.Choose("", make([]kernels.Candidate, of), of, on)
			if says := strings.Contains(why, "by rules"); says != (!is && of > 1) {
				t.Errorf("%s: of %d candidates %s", on.Name, of, why)
			}
		}
	}
}

// tiled ranks tiles of gemm_coop for a device of ten units without a curve, which does 1,000 operations and reads 100
// bytes a second in each unit.
func tiled(rows int, tiles ...kernels.Tiling) (names []string) {
	on := &target.Target{Units: 10, Bandwidth: 1000, MatrixFLOPs: 10000, Stage: 1}
	s := &kernels.Site{Func: &ir.Func{Rows: rows}, Group: &ir.Group{}, Target: on}
	var list []kernels.Candidate
	for i := range tiles {
		list = append(list, kernels.Candidate{Family: "gemm_coop", Tiling: &tiles[i]})
	}
	for _, c := range strategy.Rank(s, list) {
		names = append(names, c.Tiling.Name)
	}
	return names
}

// TestTilesByRoofline: of tiles for a device without a curve the first is the one whose rounds of workgroups are over
// first.
func TestTilesByRoofline(t *testing.T) {
	for _, c := range []struct {
		name  string
		rows  int
		tiles []kernels.Tiling
		want  string
	}{
		// 10 workgroups that each read 2*64*(32+32) bytes; 40 in four rounds that read half of it
		{"larger tiles read less", 64, []kernels.Tiling{
			{Name: "16x16", K: 64, Rows: 16, Outputs: 16, Across: 10}, {Name: "32x32", K: 64, Rows: 32, Outputs: 32, Across: 5}}, "32x32 16x16"},
		// two workgroups for ten units
		{"units without work", 64, []kernels.Tiling{
			{Name: "64x80", K: 64, Rows: 64, Outputs: 80, Across: 2}, {Name: "32x32", K: 64, Rows: 32, Outputs: 32, Across: 5}}, "32x32 64x80"},
		// eleven workgroups are two rounds, ten somewhat larger ones are one
		{"whole rounds", 32, []kernels.Tiling{
			{Name: "32x30", K: 64, Rows: 32, Outputs: 30, Across: 11}, {Name: "32x33", K: 64, Rows: 32, Outputs: 33, Across: 10}}, "32x33 32x30"},
		{"code for fewer rows", 20, []kernels.Tiling{
			{Name: "32", K: 64, Rows: 32, Outputs: 32, Across: 5}, {Name: "24 of 32", K: 64, Rows: 32, Cases: []int{24, 32}, Outputs: 32, Across: 5}}, "24 of 32 32"},
	} {
		if have := strings.Join(tiled(c.rows, c.tiles...), " "); have != c.want {
			t.Errorf("%s: %s, want %s", c.name, have, c.want)
		}
	}
}

// TestRooflineGrows: more elements of a row take no less, and the order of two tiles that differ in nothing else is
// theirs.
func TestRooflineGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tile := kernels.Tiling{Name: "short", K: rapid.IntRange(1, 1<<14).Draw(t, "k"), Rows: rapid.IntRange(1, 256).Draw(t, "rows of a tile"),
			Outputs: rapid.IntRange(1, 256).Draw(t, "outputs"), Across: rapid.IntRange(1, 1000).Draw(t, "across"), Splits: rapid.IntRange(1, 8).Draw(t, "splits")}
		long := tile
		long.Name, long.K = "long", 2*tile.K
		if have := tiled(rapid.IntRange(1, 4096).Draw(t, "rows"), long, tile); have[0] != "short" {
			t.Errorf("%+v: of twice as many elements is first", tile)
		}
	})
}
