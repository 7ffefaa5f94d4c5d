package strategy_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// TestNear holds which candidate a site without a row gets: that whose words are those of the best one of the nearest
// site, with rows as large a share of all, and subgroups of as many elements.
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
		row(site("decode/1", "q4_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 2 of 32 rows, 4 teams, room for 768"),
		row(site("decode/1", "q6_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 1 of 16 rows, 4 teams"),
		row(site("decode/1", "q4_k", 1024, 1024), "CUDA 13.0", "fixed w32/1x32, 1 of 4 rows, 4 teams"),
		row(site("decode/1", "q8_0", 5120, 5120), "580.159", "fixed w32/5x32, 1 of 20 rows, 3 teams"),
		row(site("decode/1", "q5_k", 5120, 5120), "CUDA 13.0", "gone w32/5x32, 1 of 20 rows, 3 teams"),
		row(site("decode/8", "q4_k", 4096, 4096), "CUDA 13.0", "fixed w32/4x32, 1 of 64 rows, 4 teams"),
		predicted,
	})
	var list []kernels.Candidate
	for _, shape := range []string{"1 of 20 rows", "2 of 40 rows", "2 of 80 rows"} {
		for _, room := range []string{"", ", room for 512", ", room for 768"} {
			list = append(list, kernels.Candidate{Order: "fixed w32", Shape: "5x32, " + shape + ", 3 teams" + room})
		}
	}
	for _, c := range []struct {
		name, site, want, why string
	}{
		{"the same type", site("decode/1", "q4_k", 5120, 5120), "2 of 40 rows, 3 teams, room for 768", "like fixed w32/4x32, 2 of 32 rows, 4 teams, room for 768"},
		{"the same type, wider", site("decode/1", "q4_k", 10240, 5120), "2 of 80 rows, 3 teams, room for 768", "like"},
		{"another type", site("decode/1", "q6_k", 5120, 5120), "1 of 20 rows, 3 teams", "like fixed w32/4x32, 1 of 16 rows, 4 teams"},
		{"a type with rows of another driver, and another order", site("decode/1", "q5_k", 5120, 5120), "1 of 20 rows, 3 teams", "like fixed w32/4x32, 1 of 16"},
		{"another entry", site("decode/8", "q4_k", 5120, 5120), "2 of 80 rows, 3 teams", "like fixed w32/4x32, 1 of 64"},
		{"nothing near", site("decode/1", "q4_k", 512, 65536), "1 of 20 rows, 3 teams", "best guess"},
		{"an entry without rows", site("decode/2", "q4_k", 4096, 4096), "1 of 20 rows, 3 teams", "best guess"},
		{"no decode entry", site("prefill/64", "q4_k", 4096, 4096), "1 of 20 rows, 3 teams", "best guess"},
		{"other ops", "decode/1: linear q4_k[4096, 4096]", "1 of 20 rows, 3 teams", "best guess"},
	} {
		got, why := strategy.Choose(c.site, list, len(list), nil, table)
		if got.Shape != "5x32, "+c.want || !strings.HasPrefix(why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got.Shape, why, c.want, c.why)
		}
	}
}
