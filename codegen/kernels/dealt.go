package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

const (
	dealtSide = 16 // outputs of a matrix of weights, and its depth
	dealtRows = 8  // rows of x of a matrix
	// dealtLanes is the lanes among which matrices are dealt: 8 places for rows, 4 lanes each.
	dealtLanes = 32
	// dealtSums is the elements of a matrix of sums that a lane holds.
	dealtSums = dealtSide * dealtRows / dealtLanes
	// DealtFew is the rows up to which a workgroup takes few outputs, and more rows cost little;
	// DealtTall the most that one takes: of more, its lanes cannot keep the sums.
	DealtFew, DealtTall = 16, 128
	// tallLoads bounds dealtFormat.loads where many sums leave few registers.
	tallLoads = 2
)

// gemmDealt computes a linear group with cooperative matrices, as
// gemm_coop does, on devices of which it is known which elements of a matrix each lane
// holds. Lanes put what they load of the weights right into what they hold: weights
// never go through shared memory.
//
// A matrix of weights is 16 outputs and 16 elements, one of x 16 elements of 8 rows.
// Which elements of a row make up the 16 is free, as long as it is the same for both: each
// lane takes those that lie together where the weights are.
type gemmDealt struct {
	*linearGroup
	dealtTile
	step extent
	wave int
	most int // rows that are multiplied
	// counts is where workgroups meet, nil if they do not.
	counts *ir.Value
}

func gemmDealtCandidates(s *Site) []Candidate {
	g := matchDealt(s)
	if g == nil || !g.half {
		return nil
	}
	step, ok := extentOf(s, g.projects[0].result)
	if !ok {
		return nil
	}
	k := gemmDealt{g, dealtTileOf(s, g), step, s.Target.Wave, g.rows, nil}
	if !k.pays(s) {
		return nil
	}
	k.most = k.dealtTile.rows
	room := 0
	if g.room != nil {
		room = int(g.room.Type.Last())
	}
	if room != k.roomWidth() {
		return nil
	}
	if k.splits > 1 {
		k.counts = arrivals(s, k.rowTiles()*k.tiles(k.outputsOf()))
	}
	return []Candidate{k.candidate(s.Target)}
}

// matchDealt returns the site's group if gemm_dealt computes it but for the type of x.
func matchDealt(s *Site) *linearGroup {
	g := matchRoomy(s)
	if g == nil || g.gain != nil || g.fixed != nil || g.rows <= ir.DecodeRows || !g.fitsDealt(s.Target) {
		return nil
	}
	return g
}

// roomForDealt is what gemm_dealt wants of RoomToSplit.
func roomForDealt(s *Site) int {
	g := matchDealt(s)
	if g == nil || !g.half {
		return 0
	}
	k := gemmDealt{linearGroup: g, dealtTile: dealtTileOf(s, g)}
	if !k.pays(s) {
		return 0
	}
	return k.roomWidth()
}

// partSteps is how much longer than gemm_coop gemm_dealt may take for a full step of one tile of many
// rows: it has code for fewer rows, and most steps are not full. Tuning, with full steps, would not see that. More
// would take projections of q8_0 from gemm_coop, with which it was not measured.
const partSteps = 1.05

// pays reports whether gemm_dealt is expected to be faster than gemm_coop, which of few rows it
// always is.
func (k gemmDealt) pays(s *Site) bool {
	rows := k.linearGroup.rows
	if rows <= dealtLow || !k.inMatrices(s.Target) {
		return true
	}
	coop := gemmCoop{linearGroup: k.linearGroup, coopTile: coopTiles(k.linearGroup, s.Target)[0]}.seconds(rows, s.Target.Units)
	if rows <= DealtTall {
		coop *= partSteps
	}
	return k.seconds(rows, s.Target.Units) < coop
}

// aloneDealt reports whether gemm_dealt takes the site's steps of one tile of many rows.
func aloneDealt(s *Site) bool {
	g := matchDealt(s)
	return g != nil && g.rows > dealtLow && g.rows <= DealtTall && gemmDealt{linearGroup: g, dealtTile: dealtTileOf(s, g)}.pays(s)
}

// roomWidth is the sums of a row that the workgroups of all splits leave for each other.
func (k gemmDealt) roomWidth() int {
	if k.splits == 1 {
		return 0
	}
	return k.splits * k.tiles(k.outputsOf()) * k.outputsOf()
}

// fitsDealt reports whether gemm_dealt has what the group needs besides what it does
// before its projections.
func (g *linearGroup) fitsDealt(t *target.Target) bool {
	if !t.Dealt || t.Wave != dealtLanes || g.last || g.k%dealtBlock != 0 || !g.alike() {
		return false
	}
	for _, p := range g.projects {
		if p.width%4 != 0 {
			return false
		}
		for _, w := range p.matrices {
			f := dealtFormatOf(w.format.layout)
			if f == nil || f.dealing != p.dealing() || g.rows > dealtLow && f.loads > tallLoads {
				return false
			}
		}
	}
	return true
}

// dealing is that of the projection's first matrix.
func (p *projection) dealing() string { return dealtFormatOf(p.matrices[0].format.layout).dealing }

// each is the outputs of each matrix of a subgroup.
func (k gemmDealt) each() int { return k.outputs / len(k.projects[0].matrices) }

// tile is the outputs of each matrix of a tile.
func (k gemmDealt) tile() int { return k.across * k.each() }

// outputsOf is the outputs of each matrix of a workgroup.
func (k gemmDealt) outputsOf() int { return k.series * k.tile() }

// tileRows is the rows of x of a workgroup, in whole matrices.
func (k gemmDealt) tileRows() int { return ceilDiv(k.most, dealtRows) * dealtRows }

// rowTiles is how many tiles the rows of a step are.
func (k gemmDealt) rowTiles() int { return ceilDiv(k.linearGroup.rows, k.dealtTile.rows) }

// rowsKey says how many rows a workgroup takes, and whether there are others.
func (k gemmDealt) rowsKey() string {
	if k.rowTiles() > 1 {
		return fmt.Sprint(k.tileRows(), " each")
	}
	return fmt.Sprint(k.tileRows())
}

func (k gemmDealt) threads() int { return k.groups * k.across * k.wave }

func (k gemmDealt) candidate(t *target.Target) Candidate {
	firsts := k.firsts(k.outputsOf())
	c := Candidate{
		Kernel:   fmt.Sprintf("gemm_dealt %s%s rows=%s %s", k.key(), k.step.key(), k.rowsKey(), k.name()),
		Shape:    k.name(),
		Build:    k.build,
		Operands: append(k.operands(false), k.step.operands()...),
		Grid:     [3]int{k.rowTiles(), k.tiles(k.outputsOf()), 1},
		Consts:   append(append(k.consts(firsts), ir.Const{Name: "series", Value: uint32(k.series)}), k.step.consts()...),
		Seconds:  func(rows int) float64 { return k.seconds(rows, t.Units) },
	}
	for i, p := range k.projects {
		y := plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.linearGroup.rows, p.width}, Tile: []int{k.tileRows(), k.outputsOf()},
			Axis: []int{0, 1}, First: []int{0, firsts[i]},
		}
		if k.splits > 1 {
			y.Meet = []int{2}
		}
		c.Cover = append(c.Cover, y)
	}
	if k.splits > 1 {
		c.Grid[2] = k.splits
		tiles := k.tiles(k.outputsOf())
		c.Cover = append(c.Cover, plans.Cover{Arg: "partial", Dims: []int{k.linearGroup.rows, k.splits, tiles, k.outputsOf()},
			Tile: []int{k.tileRows(), 1, 1, k.outputsOf()}, Axis: []int{0, 2, 1, -1}})
		c.Consts = append(c.Consts, ir.Const{Name: "tiles", Value: uint32(tiles)})
		c.Operands = append(c.Operands, Operand{"partial", k.room, kernel.ReadWrite}, Operand{"arrivals", k.counts, kernel.ReadWrite})
	}
	return c
}

// stride is the vec4 from row to row of the sums in shared memory.
func (k gemmDealt) stride() int { return k.across*k.outputs/4 + 1 }

// part is the rows of sums that are in shared memory at once.
func (k gemmDealt) part() int {
	part := k.tileRows()
	if k.where == pooled {
		for part > dealtRows && (k.tileRows()%part != 0 || k.groups*part*k.stride() > k.space()) {
			part -= dealtRows
		}
	}
	return part
}

// region is the vec4 of the sums of a tile.
func (k gemmDealt) region() int { return k.groups * k.part() * k.stride() }

// shared is the vec4 of shared memory: x, later sums; of tiles in series those of two.
func (k gemmDealt) shared() int {
	switch k.where {
	case staged:
		return max(k.groups*dealtSteps*k.regionX(), k.region())
	case pooled:
		size := 0
		for _, k.most = range k.cases() {
			size = max(size, 2*k.xBuffer())
			if !k.direct() {
				size = max(size, k.region())
			}
		}
		return size
	}
	return k.turns() * k.region()
}

func (k gemmDealt) build() (*kernel.Func, error) {
	return kernel.Build("gemm_dealt", func(b *kernel.Builder) {
		a, series, rows := k.declare(b, false), b.SpecU32("series", 1), k.step.bound(b)
		b.Workgroup(k.threads())
		a.join(b, b.WorkgroupID(1))
		tile := rowTile{rows: rows, row: b.Mul(b.WorkgroupID(0), k.tileRows())}
		if k.rowTiles() > 1 {
			b.ReturnIf(b.Ge(tile.row, rows))
		}
		if k.splits > 1 {
			k.emitSplits(b, a, series, tile)
			return
		}
		k.emit(b, a, series, b.WorkgroupID(1), tile, nil)
	})
}
