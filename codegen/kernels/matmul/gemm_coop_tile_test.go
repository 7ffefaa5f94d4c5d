package matmul

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/target"
)

// TestCoopTiles holds which tile projections of an 8B model take: one whose workgroups
// fill whole rounds of an H200's SMs.
func TestCoopTiles(t *testing.T) {
	for _, c := range []struct {
		target            string
		rows, k, matrices int
		widths            []int
		want              string
	}{
		{"sm_90", 512, 4096, 2, []int{12288}, "tile=128x192 "},
		{"sm_90", 512, 4096, 1, []int{4096, 1024, 1024}, "tile=128x96 "},
		{"sm_90", 512, 4096, 1, []int{4096}, "tile=128x128 "},
		{"sm_90", 512, 12288, 1, []int{4096}, "tile=128x128 "},
		{"sm_90", 48, 4096, 2, []int{12288}, "tile=48x64 "},
		{"gfx1100", 512, 4096, 2, []int{12288}, "tile=128x128 "},
		{"gfx1100", 512, 4096, 1, []int{4096, 1024, 1024}, "tile=128x128 "},
	} {
		on, err := target.Lookup(c.target)
		if err != nil {
			t.Fatal(err)
		}
		got := bestTile(on, c.rows, c.k, c.matrices, c.widths...)
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s, %d rows of %d to %v: %s, want %s", c.target, c.rows, c.k, c.widths, got, c.want)
		}
	}
}

// bestTile names the best tile for projections of so many outputs from rows of k.
func bestTile(t *target.Target, rows, k, matrices int, widths ...int) string {
	g := &linearGroup{rows: rows, k: k}
	for _, w := range widths {
		g.projects = append(g.projects, &projection{width: w, matrices: make([]*weights, matrices)})
	}
	return coopTiles(g, t)[0].name()
}
