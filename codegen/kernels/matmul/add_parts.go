package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// addParts adds up what gemm_wide makes of parts of rows, and packs a result for the next product if it is the only
// one. A workgroup has 256 elements of eight rows of a result.
type addParts struct {
	*linearGroup
	extent  site.Extent
	packing *packing // nil if nothing is packed
	columns int      // rows on axis 1 of the grid, by eight
	whole   bool     // results are whole vec4
}

func AddPartsCandidates(s *site.Site, g *Group) []site.Candidate {
	rows, ok := site.ExtentOf(s, g.projects[0].result)
	if !ok || !s.Target.Groups || rows.Max%fixedColumns != 0 {
		return nil
	}
	k := addParts{linearGroup: g, extent: rows, columns: rows.Max, whole: true}
	for _, p := range g.projects {
		k.whole = k.whole && p.width%4 == 0
	}
	if len(g.packs) > 0 {
		if k.packing = packingOf(g.packs, rows.Max); k.packing == nil || len(g.projects) > 1 {
			return nil
		}
		k.columns = k.packing.columns
	}
	firsts, workgroups := g.workgroupsBy(func(int) int { return fixedBlock })
	c := site.Candidate{
		Kernel: fmt.Sprintf("add_parts %s parts=%d columns=%d", k.key(), k.parts, k.columns) + rows.Key(),
		Grid:   [3]int{workgroups, k.columns / fixedColumns, rows.Max / k.columns},
	}
	if k.squares != nil {
		c.Kernel += fmt.Sprint(" k=", k.k)
	}
	if !k.whole {
		c.Kernel += " odd"
	}
	for i, p := range g.projects {
		if !p.inner {
			c.Cover = append(c.Cover, plans.Cover{Arg: fmt.Sprint("y", i), Dims: []int{rows.Max / k.columns, k.columns, p.width},
				Tile: []int{1, fixedColumns, fixedBlock}, Axis: []int{2, 1, 0}, First: []int{0, 0, firsts[i]}})
		}
	}
	if k.packing != nil {
		c.Kernel += " " + k.packing.key()
		c.Cover = append(c.Cover, k.packing.covers()...)
	}
	return []site.Candidate{site.Implement(c, "add_parts", func(s *site.Signature) func(b *kernel.Builder) { return k.kernel(s, firsts) })}
}

func (k addParts) kernel(s *site.Signature, firsts []int) func(b *kernel.Builder) {
	extent, a := k.extent.Declare(s), k.declare(s, false, firsts)
	var packs *packArgs
	if k.packing != nil {
		packs = k.packing.declare(s)
	}
	return func(b *kernel.Builder) {
		bound := extent.Load(b)
		b.Workgroup(blockRoom)
		a.join(b, b.WorkgroupID(0))
		l := newBlockLane(b, bound, k.columns)
		var rstd *kernel.Value
		if k.squares != nil {
			v := a.rowScale(b, l.row)
			rstd = &v
		}
		a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
			y := k.add(l, p, rstd, at)
			if p.spec.packs {
				packs.pack(l, at, y)
			}
		})
	}
}

// rowScale is the norm's scale of a row.
func (a *linearArgs) rowScale(b *kernel.Builder, row kernel.Value) kernel.Value {
	var squares []kernel.Value
	n := a.group.k / ir.SquaresEach
	for i := range n {
		squares = append(squares, a.squares.Load(kernel.F32, b.Add(b.Mul(row, n), i)))
	}
	return a.rstd(b, inTurn(b, squares))
}

// add adds up the lane's part of block at of its row, and stores what is made of it.
func (k addParts) add(l blockLane, p *projectArgs, rstd *kernel.Value, at kernel.Value) (y [blockVecs]kernel.Value) {
	b := l.b
	for n := range y {
		col := b.Add(b.Mul(at, fixedBlock), b.Mul(l.vec(n), 4))
		sums := make([]kernel.Value, len(p.matrices))
		for part := range k.parts {
			for m, parts := range p.matrices {
				sums[m] = weight.Plus(b, sums[m], k.load(b, parts.Buf, b.Add(b.Mul(l.row, k.parts), part), p.width, col))
			}
		}
		var residuals []kernel.Value
		for _, r := range p.residuals {
			residuals = append(residuals, k.load(b, r, l.row, p.width, col))
		}
		of := func(list []kernel.Value, e int) (elements []kernel.Value) {
			for _, v := range list {
				elements = append(elements, b.Elem(v, e))
			}
			return elements
		}
		var results []kernel.Operand
		for e := range 4 {
			to := b.Min(b.Add(col, e), b.Sub(p.width, 1))
			y, added := p.result(b, of(sums, e), rstd, of(residuals, e), to)
			for _, r := range added {
				y = b.Add(y, r)
			}
			results = append(results, y)
		}
		y[n] = b.Vec(results...)
		if !p.spec.inner {
			k.store(b, p, l, col, y[n])
		}
	}
	return y
}

// load loads four elements of a row from col on, where there are so many.
func (k addParts) load(b *kernel.Builder, from *kernel.Buffer, row, width, col kernel.Value) kernel.Value {
	first := b.Mul(row, width)
	if k.whole {
		return from.Load(lane.F32x4, b.Div(b.Add(first, b.Min(col, b.Sub(width, 4))), 4))
	}
	var list []kernel.Operand
	for e := range 4 {
		list = append(list, from.Load(kernel.F32, b.Add(first, b.Min(b.Add(col, e), b.Sub(width, 1)))))
	}
	return b.Vec(list...)
}

// store stores four elements of the lane's row from col on, if there are so many.
func (k addParts) store(b *kernel.Builder, p *projectArgs, l blockLane, col, v kernel.Value) {
	at := b.Add(b.Mul(l.row, p.width), col)
	if k.whole {
		b.If(b.And(l.there, b.Lt(col, p.width)), func() { p.out.Store(b.Div(at, 4), v) })
		return
	}
	for e := range 4 {
		b.If(b.And(l.there, b.Lt(b.Add(col, e), p.width)), func() { p.out.Store(b.Add(at, e), b.Elem(v, e)) })
	}
}
