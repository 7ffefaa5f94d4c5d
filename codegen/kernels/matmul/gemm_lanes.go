package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
)

// lanesTile says how gemm_lanes computes a site. A subgroup has rows times outputs sums;
// its lanes share the row's elements. A workgroup's subgroups are side by side in
// down rows and across outputs, and split the elements, too.
type lanesTile struct {
	rows, outputs       int
	down, across, split int
}

// lanesTiles are for few rows, where there are few tiles, and for many, where small tiles
// read too often what they have in common.
var lanesTiles = []lanesTile{
	{rows: 4, outputs: 4, down: 1, across: 1, split: 4},
	{rows: 8, outputs: 4, down: 2, across: 4, split: 1},
}

// lanesGemm computes a linear group of f32 weights, such as a router, for many rows of x.
// Such weights have few rows, and tiles of the result are too few for a device: here the
// lanes of a subgroup share the elements of a row. They load both operands as they are
// used, so nothing goes through shared memory. An element's sum runs over every
// wave-th vec4 in each lane, then over lanes, then over the subgroups that split it.
type lanesGemm struct {
	*linearGroup
	lanesTile
	from stepRows
	wave int
}

func GemmLanesCandidates(s *site.Site, g *Group) []site.Candidate {
	step, ok := g.floats(s)
	if !ok {
		return nil
	}
	var list []site.Candidate
	for _, t := range lanesTiles {
		if g.k%(4*s.Target.Wave*t.split) == 0 {
			list = append(list, lanesGemm{g, t, step, s.Target.Wave}.candidate())
		}
	}
	return list
}

func (k lanesGemm) tileRows() int { return k.lanesTile.rows * k.down }

func (k lanesGemm) tileOutputs() int { return k.outputs * k.across }

func (k lanesGemm) candidate() site.Candidate {
	return product{family: "gemm_lanes", from: k.from, rows: k.tileRows(), outputs: each(k.tileOutputs()),
		code:   fmt.Sprintf("tile=%dx%d subgroups=%dx%dx%d w=%d", k.lanesTile.rows, k.outputs, k.down, k.across, k.split, k.wave),
		shape:  fmt.Sprintf("%dx%d subgroups %dx%dx%d", k.lanesTile.rows, k.outputs, k.down, k.across, k.split),
		sums:   fmt.Sprintf("split=%d", k.split),
		tiling: &site.Tiling{Name: "lanes", K: k.k, Width: k.tiles(1), Rows: k.tileRows(), Across: k.tiles(k.tileOutputs())},
		kernel: k.kernel,
	}.candidate()
}

func (k lanesGemm) kernel(s *site.Signature) func(b *kernel.Builder) {
	a, find := k.declare(s, false, k.firsts(k.tileOutputs())), k.from.declareRows(s)
	return func(b *kernel.Builder) {
		b.Workgroup(k.down * k.across * k.split * k.wave)
		rows := find(b, a)
		id := b.SubgroupID()
		tile := rows(k.tileRows())
		row := b.Add(tile.row, b.Mul(b.Mod(b.Div(id, k.across), k.down), k.lanesTile.rows))
		b.ReturnIf(b.Ge(b.Mul(b.WorkgroupID(0), k.tileRows()), tile.rows))
		parts := b.Shared(kernel.F32, k.split*k.lanesTile.rows*k.outputs*k.down*k.across)
		a.each(b, b.WorkgroupID(1), func(p *projectArgs, at kernel.Value) {
			col := b.Add(b.Mul(at, k.tileOutputs()), b.Mul(b.Mod(id, k.across), k.outputs))
			sums := k.products(b, a, p, tile.rows, row, col)
			k.store(b, p, sums, parts, tile.rows, row, col)
		})
	}
}

// products returns the lane's sums by row and output. Rows and outputs beyond the last
// repeat it.
func (k lanesGemm) products(b *kernel.Builder, a *linearArgs, p *projectArgs, rows, row, col kernel.Value) [][]*kernel.Var {
	length := b.Div(a.k, 4) // of rows, in vec4
	place := func(i, last kernel.Value) kernel.Value {
		return b.Add(b.Mul(b.Min(i, b.Sub(last, 1)), length), b.SubgroupLane())
	}
	var xs, ws []kernel.Value
	for r := range k.lanesTile.rows {
		xs = append(xs, place(b.Add(row, r), rows))
	}
	for c := range k.outputs {
		ws = append(ws, place(b.Add(col, c), p.width))
	}
	load := func(i kernel.Value) (list []kernel.Value) {
		for _, at := range xs {
			list = append(list, a.x.Load(lane.F32x4, b.Add(at, i)))
		}
		for _, at := range ws {
			list = append(list, p.matrices[0].Buf.Load(lane.F32x4, b.Add(at, i)))
		}
		return list
	}
	var sums [][]*kernel.Var
	for range xs {
		var list []*kernel.Var
		for range ws {
			list = append(list, b.Var(kernel.F32, 0.0))
		}
		sums = append(sums, list)
	}
	stride := k.wave * k.split
	first := b.Mul(b.Div(b.SubgroupID(), k.down*k.across), k.wave)
	var ahead []*kernel.Var
	for _, v := range load(first) {
		ahead = append(ahead, b.Var(lane.F32x4, v))
	}
	b.For(first, length, stride, func(i kernel.Value) {
		now := gets(ahead)
		next := b.Add(i, stride)
		sets(ahead, load(b.Select(b.Lt(next, length), next, i)))
		for r, list := range sums {
			for c, sum := range list {
				v := sum.Get()
				for e := range 4 {
					v = b.FMA(b.Elem(now[r], e), b.Elem(now[len(xs)+c], e), v)
				}
				sum.Set(v)
			}
		}
	})
	return sums
}

// store adds the sums of the lanes and of the subgroups that split them, and writes
// the results: a lane one, or several.
func (k lanesGemm) store(b *kernel.Builder, p *projectArgs, sums [][]*kernel.Var, parts *kernel.Array, rows, row, col kernel.Value) {
	each := k.lanesTile.rows * k.outputs
	tiles := k.down * k.across
	at := b.Mul(b.SubgroupID(), each)
	for r, list := range sums {
		for c, sum := range list {
			v := b.SubgroupAdd(sum.Get())
			b.If(b.SubgroupElect(), func() { parts.Store(b.Add(at, r*k.outputs+c), v) })
		}
	}
	b.Barrier()
	first := b.Mul(b.Mod(b.SubgroupID(), tiles), each)
	// The subgroups that split a tile share its results.
	laneID := b.Add(b.Mul(b.Div(b.SubgroupID(), tiles), k.wave), b.SubgroupLane())
	for from := 0; from < each; from += k.wave * k.split {
		i := b.Add(laneID, from)
		r, n := b.Add(row, b.Div(i, k.outputs)), b.Add(col, b.Mod(i, k.outputs))
		b.If(b.And(b.Lt(i, each), b.And(b.Lt(r, rows), b.Lt(n, p.width))), func() {
			v := parts.Load(b.Add(first, i))
			for s := 1; s < k.split; s++ {
				v = b.Add(v, parts.Load(b.Add(first, i, s*tiles*each)))
			}
			p.store(b, []kernel.Value{v}, nil, p.loadResiduals(b, r, n), r, n)
		})
	}
}
