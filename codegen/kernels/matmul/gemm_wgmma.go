package matmul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// gemm_wgmma is gemm_fragment with products of four subgroups (wgmma of NVIDIA's Hopper): a subgroup has 16 outputs,
// whose weights its lanes make in registers, and four of them multiply with x in shared memory, where copies bring it
// from tiles (op tile). The products are made while the lanes make the next weights.

// GemmWgmmaCandidates returns those of many rows.
func GemmWgmmaCandidates(s *site.Site, g *Group) []site.Candidate {
	if g.tiled.Attrs.Int("rows") != g.rows || !fitsWgmma(s, g) || !g.hasTiles() {
		return nil
	}
	extent, ok := site.ExtentOf(s, g.tiled.Result)
	if !ok {
		return nil
	}
	return g.offers(s, wgmmaTiles(s, g), stepRows{g, extent})
}

// GemmWgmmaWants asks for x in f16, then for it in tiles, and then for a workspace for each tile whose workgroups share
// the elements of a row.
func GemmWgmmaWants(s *site.Site, g *Group) []site.Rewrite {
	if g.workspace != nil || !fitsWgmma(s, g) {
		return nil
	}
	if !g.half {
		return wantHalf(s, g)
	}
	if g.tiled != nil {
		return wantSplits(g, wgmmaTiles(s, g))
	}
	var list []site.Rewrite
	for _, t := range wgmmaTiles(s, g) {
		w := site.Half(s, g.x)[0]
		w.Round, w.Lanes, w.Tiling, w.Sums = "", g.tileOrders(), g.fragment(t).tiling(), t.sumsKey()
		list = append(list, w)
	}
	return list
}

// fitsWgmma reports whether gemm_wgmma can multiply the group's matrices.
func fitsWgmma(s *site.Site, g *linearGroup) bool {
	return g.fitsFragment(s.Target) && s.Target.Groups && g.rows%ir.TileRows == 0 && g.x.Def != nil
}

// hasTiles reports whether x lies in the order of each projection.
func (g *linearGroup) hasTiles() bool {
	lanes := strings.Split(g.tiled.Attrs.Str("lanes"), " ")
	return !slices.ContainsFunc(g.projects, func(p *projection) bool { return !slices.Contains(lanes, p.tileOrder()) })
}

// tileOrders are those of tiles of x that the projections take, each once.
func (g *linearGroup) tileOrders() string {
	var list []string
	for _, p := range g.projects {
		if text := p.tileOrder(); !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return strings.Join(list, " ")
}

func (p *projection) tileOrder() string {
	at := weight.Sharings[p.sharing()].Lanes
	return fmt.Sprintf("%d%d", at[0], at[1])
}

// WgmmaLeast is the elements of the shortest rows of which gemm_wgmma was measured.
const WgmmaLeast = 2048

// wgmmaSplits are how many workgroups may share the elements of a row.
var wgmmaSplits = []int{1, 2, 3, 4}

// wgmmaShapes are subgroups side by side and rows of the tiles. Registers hold the sums, and bound the product of both.
// For 256 rows weights are made half as often.
var wgmmaShapes = []struct{ across, rows int }{{16, ir.TileRows}, {8, ir.TileRows}, {8, groupedRows}}

// wgmmaTiles returns the tiles, each for all splits.
func wgmmaTiles(s *site.Site, g *linearGroup) []fragmentTile {
	var list []fragmentTile
	gate := g.projects[0].result.Def
	beside := len(g.projects) == 1 && gate.Kind.Name == "linear" && GatesRule(s.Func.Uses(), gate)
	for _, splits := range wgmmaSplits {
		for _, shape := range wgmmaShapes {
			if beside && shape.across*shape.rows > 8*ir.TileRows {
				continue // beside the rule's workgroups there is no room for more
			}
			t := fragmentTile{outputs: fragment.Side, across: shape.across, groups: 1, rows: shape.rows, pipe: grouped, series: 1, splits: splits}
			if g.fitsRows(t) && g.canSplit(s, t) && g.canTile(t) {
				list = append(list, t)
				if t.late = g.lateFrom(s, t); t.late > 0 {
					list = append(list, t)
				}
			}
		}
	}
	return list
}

// fitsRows reports whether tiles of so many rows are whole and pay: those of 256 gain nothing for weights whose words
// are not copied ahead (q8_0).
func (g *linearGroup) fitsRows(t fragmentTile) bool {
	return g.rows%t.rows == 0 && (t.rows < groupedRows || g.fragment(t).copies() != [2]int{})
}

// GatesRule reports whether op projects, from rows that gemm_wgmma takes, what gates the result of a chunked delta
// rule, and nothing else.
func GatesRule(uses map[*ir.Value][]*ir.Op, op *ir.Op) bool {
	if op.Kind.Name != "linear" || op.Args[0].Type.Last() < WgmmaLeast || len(uses[op.Result]) != 1 {
		return false
	}
	norm := uses[op.Result][0]
	return norm.Kind.Name == "gated_rmsnorm" && norm.Args[2] == op.Result && norm.Args[0].Def != nil && norm.Args[0].Def.Kind.Name == "deltanet_chunked"
}
