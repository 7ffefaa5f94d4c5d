package strategy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// h200 has as many units.
var h200 = &target.Target{Units: 132}

// TestNear holds which candidate a site without a row gets: that which is like the best one of a near
// site, with rows as large a share of all, subgroups of as many elements, and registers for as many workgroups.
func TestNear(t *testing.T) {
	site := func(entry, dtype string, rows, cols int) string {
		return fmt.Sprintf("%s: fixed12 f32[T, %d]; linear %s[%d, %d]; add f32[T, %d]", entry, cols, dtype, rows, cols, rows)
	}
	row := func(site, driver, best string) tuning.Row {
		return tuning.Row{Site: site, Device: "NVIDIA H200", Driver: driver, Best: best, Micros: 1, Of: 4, When: time.Unix(1, 0)}
	}
	predicted := row(site("decode/1", "q4_k", 5120, 5120), "CUDA 13.0", "fixed w32/5x32, 1 of 20 rows, 3 teams")
	predicted.Predicted, predicted.Site = true, site("decode/1", "q4_k", 5120, 5121)
	table := tuning.NewTable([]tuning.Row{
		row(site("decode/1", "q4_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 2 of 32 rows, 4 teams, room for 1024"),
		row(site("decode/1", "q6_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 1 of 16 rows, 4 teams"),
		row(site("decode/1", "q4_k", 1024, 1024), "CUDA 13.0", "fixed w32/1x32, 1 of 4 rows, 4 teams"),
		row(site("decode/1", "q8_0", 5120, 5120), "580.159", "fixed w32/5x32, 1 of 20 rows, 3 teams"),
		row(site("decode/1", "q5_k", 5120, 5120), "CUDA 13.0", "gone w32/5x32, 1 of 20 rows, 3 teams"),
		row(site("decode/8", "q4_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 2 of 64 rows, 4 teams"),
		row(site("decode/1", "q4_k", 5120, 14336), "CUDA 13.0", "fixed w32/14x32, 2 of 20 rows"),
		row(site("decode/1", "q5_0", 4096, 8192), "CUDA 13.0", "fixed w32/matrices, groups=8"),
		row(site("decode/1", "iq3_s", 4096, 1536), "CUDA 13.0", "fixed w32/tile 16"),
		row(site("decode/1", "q5_0", 4096, 16384), "CUDA 13.0", "fixed w32/16x32, 4 of 8 rows, room for 1024"),
		row(site("decode/1", "q3_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 2 of 32 rows, 4 teams, 4 MiB ahead, 4 MiB after"),
		row(site("decode/1", "q2_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 2 of 32 rows, 4 teams, 4 MiB after"),
		predicted,
	})
	candidates := func(subgroups int, shapes ...string) (list []kernels.Candidate) {
		for _, shape := range shapes {
			for _, form := range []string{"", ", room for 512", ", room for 1024", ", 4 MiB ahead", ", 4 MiB after", ", 4 MiB ahead, 4 MiB after"} {
				list = append(list, kernels.Candidate{Order: "fixed w32", Shape: fmt.Sprintf("%dx32, %s%s", subgroups, shape, form)})
			}
		}
		return
	}
	wide := candidates(5, "1 of 20 rows, 3 teams", "2 of 40 rows, 3 teams", "2 of 80 rows, 3 teams")
	long := append(candidates(9, "2 of 20 rows", "4 of 20 rows"), candidates(17, "4 of 40 rows", "2 of 40 rows")...)
	for _, c := range []struct {
		name, site string
		list       []kernels.Candidate
		want, why  string
	}{
		{"the same type", site("decode/1", "q4_k", 5120, 5120), wide, "5x32, 2 of 40 rows, 3 teams, room for 1024", "like fixed w32/4x32, 2 of 32 rows, 4 teams, room for 1024"},
		{"the same type, wider", site("decode/1", "q4_k", 10240, 5120), wide, "5x32, 2 of 80 rows, 3 teams, room for 1024", "like"},
		{"another type", site("decode/1", "q6_k", 5120, 5120), wide, "5x32, 1 of 20 rows, 3 teams", "like fixed w32/4x32, 1 of 16 rows, 4 teams"},
		{"a type with rows of another driver, and another order", site("decode/1", "q5_k", 5120, 5120), wide, "5x32, 1 of 20 rows, 3 teams", "like fixed w32/4x32, 1 of 16"},
		{"prefetching at both places", site("decode/1", "q3_k", 5120, 5120), wide, "5x32, 2 of 40 rows, 3 teams, 4 MiB ahead, 4 MiB after", "like fixed w32/4x32, 2 of 32 rows, 4 teams, 4 MiB ahead, 4 MiB after"},
		{"prefetching behind its weights", site("decode/1", "q2_k", 5120, 5120), wide, "5x32, 2 of 40 rows, 3 teams, 4 MiB after", "like fixed w32/4x32, 2 of 32 rows, 4 teams, 4 MiB after"},
		{"another entry", site("decode/8", "q4_k", 5120, 5120), wide, "5x32, 2 of 80 rows, 3 teams", "like fixed w32/4x32, 2 of 64"},
		{"as many subgroups as rows are longer", site("decode/1", "q4_k", 5120, 17408), long, "17x32, 2 of 40 rows", "like fixed w32/14x32, 2 of 20 rows"},
		{"the nearest has other words", site("decode/1", "q5_0", 5120, 8704), long, "9x32, 4 of 20 rows, room for 1024", "like fixed w32/16x32, 4 of 8 rows, room for 1024"},
		{"a tile of as large a share", site("decode/1", "iq3_s", 2048, 768), []kernels.Candidate{{Order: "fixed w32", Shape: "tile 16"}, {Order: "fixed w32", Shape: "tile 8"}}, "tile 8", "like fixed w32/tile 16"},
		{"nothing near", site("decode/1", "q4_k", 512, 262144), wide, "5x32, 1 of 20 rows, 3 teams", "best guess"},
		{"an entry without rows", site("decode/2", "q4_k", 4096, 4096), wide, "5x32, 1 of 20 rows, 3 teams", "best guess"},
		{"no decode entry", site("prefill/64", "q4_k", 4096, 4096), wide, "5x32, 1 of 20 rows, 3 teams", "best guess"},
		{"other ops", "decode/1: linear q4_k[4096, 4096]", wide, "5x32, 1 of 20 rows, 3 teams", "best guess"},
	} {
		got, why := strategy.Choose(c.site, c.list, len(c.list), h200, nil, table)
		if got.Shape != c.want || !strings.HasPrefix(why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Shape, why, c.want, c.why)
		}
	}
}

// TestNearFillsRounds takes of candidates that are as much like the best of a near site the one whose workgroups fill
// whole rounds.
func TestNearFillsRounds(t *testing.T) {
	site := func(rows int) string { return fmt.Sprintf("decode/1: linear q6_k[%d, 4096]", rows) }
	table := tuning.NewTable([]tuning.Row{{Site: site(128256), Device: "NVIDIA H200", Driver: "CUDA 13.0", Best: "fixed w32/4x32, 4 of 128 rows", Micros: 1, Of: 4, When: time.Unix(1, 0)}})
	var list []kernels.Candidate
	for _, tile := range []int{192, 96, 48} {
		list = append(list, kernels.Candidate{Order: "fixed w32", Shape: fmt.Sprintf("4x32, 4 of %d rows", tile), Lanes: 128, Grid: [3]int{(151936 + tile - 1) / tile, 1, 1}})
	}
	// 528 workgroups at once: 1.5, 3.0 and 6.0 rounds.
	if got, why := strategy.Choose(site(151936), list, len(list), h200, table); got.Shape != "4x32, 4 of 96 rows" {
		t.Errorf("%s (%s)", got.Shape, why)
	}
}

// TestNearHasAsManyLanes takes of candidates whose rows are about as large a share the one with as many lanes as the
// best of a near site.
func TestNearHasAsManyLanes(t *testing.T) {
	site := func(rows int) string { return fmt.Sprintf("decode/1: linear q4_k[%d, 5120]", rows) }
	table := tuning.NewTable([]tuning.Row{{Site: site(18432), Device: "NVIDIA H200", Driver: "CUDA 13.0", Best: "fixed w32/5x32, 2 of 144 rows, 4 teams", Micros: 1, Of: 4, When: time.Unix(1, 0)}})
	list := []kernels.Candidate{
		{Order: "fixed w32", Shape: "5x32, 2 of 132 rows, 3 teams", Lanes: 480, Grid: [3]int{132, 1, 1}},
		{Order: "fixed w32", Shape: "5x32, 2 of 136 rows, 4 teams", Lanes: 640, Grid: [3]int{128, 1, 1}},
	}
	if got, why := strategy.Choose(site(17408), list, len(list), h200, table); got.Shape != list[1].Shape {
		t.Errorf("%s (%s)", got.Shape, why)
	}
}

// TestNearIsOne holds that what is nearest is the same each time: what names differ by are sums of floats.
func TestNearIsOne(t *testing.T) {
	site := func(rows int) string { return fmt.Sprintf("decode/1: linear q4_k[%d, 4096]", rows) }
	table := tuning.NewTable([]tuning.Row{{Site: site(4096), Device: "NVIDIA H200", Driver: "CUDA 13.0", Best: "fixed w32/4x32, 2 of 80 rows, 8 teams, room for 1024", Micros: 1, Of: 4, When: time.Unix(1, 0)}})
	list := []kernels.Candidate{{Order: "fixed w32", Shape: "8x32, 4 of 96 rows, 5 teams"}, {Order: "fixed w32", Shape: "2x32, 4 of 96 rows, 5 teams"}}
	first, _ := strategy.Choose(site(5120), list, len(list), h200, table)
	for range 1000 {
		if got, _ := strategy.Choose(site(5120), list, len(list), h200, table); got.Shape != first.Shape {
			t.Fatalf("%s, and %s before", got.Shape, first.Shape)
		}
	}
}
