package rowwise

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// normTile is the op tile at the end of a norm's group. A workgroup then has several rows, of each some whole blocks.
// It puts them, rounded, into shared memory, and from there writes pieces of neighbouring rows.
type normTile struct {
	op     *ir.Op // nil where there is none
	orders [][2]int
	lines  int // rows of a workgroup
}

const (
	// normTileLane is how many accesses a lane has of a run, at most.
	normTileLane = 8
	// normTileLanes is the lanes of a workgroup beside which there is room for others.
	normTileLanes = 512
)

// normLines are the rows that a workgroup may have. Eight of a piece are a line of the cache, two a sector.
var normLines = []int{8, 4, 2}

// tiled returns the candidates of a group that ends in op tile, first those whose workgroups have room beside each
// other and fill most units.
func (k rowNormKernel) tiled(s *site.Site, op *ir.Op) (list []site.Candidate) {
	width, rows := int(op.Args[0].Type.Last()), int(op.Attrs.Int("rows"))
	orders, err := ir.TileOrders(op.Attrs.Str("lanes"))
	if err != nil || rows != k.rows.Max || k.wave != tileLanes || k.loop || !slices.Contains(s.Outputs, op.Result) {
		return nil
	}
	if !slices.Contains(s.Outputs, k.half.Result) {
		k.half = nil
	}
	for k.runs = 1; k.runs*k.group%ir.TileBlock != 0; {
		k.runs *= 2
	}
	columns := k.runs * k.group
	if width%columns != 0 {
		return nil
	}
	k.size = k.tileLanes()
	var others []site.Candidate
	for _, lines := range normLines {
		k.tile = normTile{op: op, orders: orders, lines: lines}
		if k.lanes() > s.Target.Workgroup || 16*lines*(columns/ir.PieceElements+k.tile.pad()) > max(s.Target.Shared, s.Target.SharedOptIn) {
			continue
		}
		grid := [3]int{width / columns, ir.TileRows / lines, rows / ir.TileRows}
		c := site.Implement(site.Candidate{Kernel: k.key(), Sums: k.sums(), Shape: fmt.Sprintf("rows=%d", lines), Grid: grid}, "rownorm", k.kernel)
		for _, o := range c.Operands {
			cover := plans.Cover{Arg: o.Name, Dims: []int{grid[2], ir.TileRows, width}, Tile: []int{1, lines, columns}, Axis: []int{2, 1, 0}}
			if o.Value == op.Result {
				cover = plans.Cover{Arg: o.Name, Dims: []int{grid[2], len(orders), width / ir.PieceElements, ir.TileRows, ir.PieceElements},
					Tile: []int{1, len(orders), columns / ir.PieceElements, lines, ir.PieceElements}, Axis: []int{2, -1, 0, 1, -1}}
			}
			if o.Access == kernel.Write {
				c.Cover = append(c.Cover, cover)
			}
		}
		if k.lanes() <= normTileLanes && 2*grid[0]*grid[1]*grid[2] > s.Target.Units {
			list = append(list, c)
		} else {
			others = slices.Insert(others, 0, c)
		}
	}
	return append(list, others...)
}

// tileLanes is the lanes of a run: the fewest that have little enough each, or somewhat more, of which all have as
// much.
func (k rowNormKernel) tileLanes() int {
	least := site.CeilDiv(k.group/k.vec, normTileLane*k.wave) * k.wave
	for k.size = least; k.size < 2*least; k.size += k.wave {
		if k.even() {
			return k.size
		}
	}
	return least
}

func (t normTile) key() string {
	if t.op == nil {
		return ""
	}
	return fmt.Sprintf("+tile %s of %d", t.op.Attrs.Str("lanes"), t.lines)
}

// pad is the vec4 of shared memory behind each row, so that neighbouring lanes, which load from all rows, find octets
// in different banks.
func (t normTile) pad() int { return 8 / t.lines }

// declare declares the tiles, if there are any.
func (t normTile) declare(s *site.Signature) *kernel.Buffer {
	if t.op == nil {
		return nil
	}
	return s.Write("tiles", t.op.Result)
}

// normStage is the rows of a workgroup in shared memory: of each row, the octets of the workgroup's columns.
type normStage struct {
	b       *kernel.Builder
	k       rowNormKernel
	tiler   weight.Tiler
	memory  *kernel.Array
	columns kernel.Value // elements
	stride  kernel.Value // vec4 from row to row
	line    kernel.Value // row of the lane's run in the workgroup
	run     kernel.Value // vec4 of the row before the run
	lane    kernel.Value // of the run
}

// stage makes room for the rows of a workgroup. Rows have width elements, and runs group.
func (k rowNormKernel) stage(b *kernel.Builder, tiles *kernel.Buffer, width, group kernel.Value) *normStage {
	team := b.Div(b.SubgroupID(), k.size/k.wave)
	m := &normStage{b: b, k: k, columns: b.Mul(group, k.runs), line: b.Div(team, k.runs), run: b.Mul(b.Mod(team, k.runs), b.Div(group, k.vec)),
		lane: b.Sub(b.LocalID(), b.Mul(team, k.size)), tiler: weight.Tiler{Builder: b, Y: tiles, Orders: k.tile.orders, Width: width, Tile: b.WorkgroupID(2)}}
	m.stride = b.Add(b.Div(m.columns, ir.PieceElements), k.tile.pad())
	m.memory = b.Shared(lane.U32x4, b.Mul(m.stride, k.tile.lines))
	return m
}

// rowOf returns the row in its tile of a line of the workgroup.
func (m *normStage) rowOf(line kernel.Value) kernel.Value {
	return m.b.Add(m.b.Mul(m.b.WorkgroupID(1), m.k.tile.lines), line)
}

// put stores vec4 i of the lane's run, as four f16.
func (m *normStage) put(i, halves kernel.Value) {
	b := m.b
	i = b.Add(m.run, i)
	at := b.Add(b.Mul(m.line, m.stride), b.Div(i, 2))
	for e := range 2 {
		m.memory.StoreElem(at, b.Add(b.Mul(b.And(i, 1), 2), e), b.Elem(halves, e))
	}
}

// write writes the pieces. Neighbouring lanes have neighbouring rows.
func (m *normStage) write() {
	b, lines := m.b, m.k.tile.lines
	b.Barrier()
	b.For(b.LocalID(), b.Mul(b.Div(m.columns, 4*ir.PieceElements), lines), m.k.lanes(), func(i kernel.Value) {
		line, four := b.Mod(i, lines), b.Div(i, lines)
		block := b.Div(four, weight.BlockPieces/4)
		from := b.Add(b.Mul(line, m.stride), b.Mul(block, ir.TileBlock/8))
		block = b.Add(b.Mul(b.WorkgroupID(0), b.Div(m.columns, ir.TileBlock)), block)
		m.tiler.Store(m.rowOf(line), block, b.Mod(four, weight.BlockPieces/4), func(first kernel.Value, more int) kernel.Value {
			return m.memory.Load(b.Add(from, first, more))
		})
	})
}
