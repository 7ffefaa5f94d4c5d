package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// maxColumns is how many rows of x gemv takes. In gemv a row of the weights is
// called a row, a row of x a column.
const maxColumns = 8

// maxGrid is the smallest limit of a grid's axis among the devices we know.
const maxGrid = 65535

// gemv computes a linear group for few rows of x: every subgroup computes a few
// rows of the weights times all columns, its lanes taking turns at the units of a
// row. Per column the order of all sums depends on the format and the subgroup
// size only, so that entries of every width give the same bits.
type gemv struct {
	*linearGroup
	perSubgroup int // rows of the weights
}

func gemvCandidates(s *Site) []Candidate {
	g := matchLinear(s)
	if g == nil || !g.allF32() || g.rows > maxColumns {
		return nil
	}
	var list []Candidate
	for _, shape := range gemvShapes(g, s.Target) {
		list = append(list, gemv{g, shape.perSubgroup}.candidate(s.Target, shape.workgroup))
	}
	return list
}

type gemvShape struct{ perSubgroup, workgroup int }

// gemvShapes returns shapes, best guess first. More rows a subgroup load x less
// often; more workgroups keep all units of the device busy.
func gemvShapes(g *linearGroup, t *target.Target) []gemvShape {
	matrices := 1
	for _, p := range g.projects {
		matrices = max(matrices, len(p.matrices))
	}
	// Accumulators and what they are made of stay in registers.
	most := max(1, min(4, 16/(g.rows*matrices)))
	workgroup := 128
	for g.tiles(workgroup/t.Wave*most) > maxGrid && workgroup < t.Workgroup {
		workgroup *= 2
	}
	best := most
	for best > 1 && g.tiles(workgroup/t.Wave*best) < 2*t.Units {
		best /= 2
	}
	list := []gemvShape{{best, workgroup}}
	if best < most {
		list = append(list, gemvShape{2 * best, workgroup})
	}
	if best > 1 {
		list = append(list, gemvShape{best / 2, workgroup})
	}
	return list
}

func (k gemv) candidate(t *target.Target, workgroup int) Candidate {
	tile := workgroup / t.Wave * k.perSubgroup
	c := Candidate{
		Kernel:   fmt.Sprintf("gemv %s cols=%d r=%d", k.key(), k.rows, k.perSubgroup),
		Build:    k.build,
		Operands: k.operands(k.last),
		Grid:     [3]int{k.tiles(tile), 1, 1},
		Consts:   append(k.consts(k.firsts(tile)), ir.Const{Name: "wave", Value: uint32(t.Wave)}, ir.Const{Name: "workgroup", Value: uint32(workgroup)}),
	}
	for i, p := range k.projects {
		c.Cover = append(c.Cover, plans.Cover{
			Arg:  fmt.Sprint("y", i),
			Dims: []int{k.rows, p.width}, Tile: []int{k.rows, tile},
			Axis: []int{-1, 0}, First: []int{0, k.firsts(tile)[i]},
		})
	}
	return c
}

func (k gemv) build() (*kernel.Func, error) {
	return kernel.Build("gemv", func(b *kernel.Builder) {
		a := k.declare(b, k.last)
		wave := b.SpecU32("wave", 32)
		workgroup := b.SpecU32("workgroup", 128)
		b.Workgroup(workgroup)
		a.each(b, b.WorkgroupID(0), func(p *projectArgs, at kernel.Value) {
			subgroup := b.Add(b.Mul(at, b.Div(workgroup, wave)), b.SubgroupID())
			row := b.Mul(subgroup, k.perSubgroup)
			b.If(b.Lt(row, p.width), func() { k.rowsOf(b, a, p, wave, row) })
		})
	})
}

// rowsOf emits perSubgroup rows of p from row on, times all columns.
func (k gemv) rowsOf(b *kernel.Builder, a *linearArgs, p *projectArgs, wave, row kernel.Value) {
	var columns []kernel.Value
	for c := range k.rows {
		columns = append(columns, b.Mul(b.Div(a.k, 4), c))
	}
	if k.last {
		columns[0] = b.Mul(b.Sub(a.n.Load(kernel.U32, 0), 1), b.Div(a.k, 4))
	}
	k.products(&gemvTile{b: b, a: a, p: p, columns: columns}, wave, row)
}

// products emits perSubgroup rows of t.p from row on, times t.columns.
func (k gemv) products(t *gemvTile, wave, row kernel.Value) {
	b, a, p := t.b, t.a, t.p
	t.squares = k.vars(b)
	for j := range p.matrices {
		var rows []kernel.Value
		var sums [][]*kernel.Var
		for r := range k.perSubgroup {
			rows = append(rows, p.row(b, j, b.Min(b.Add(row, r), b.Sub(p.width, 1))))
			sums = append(sums, k.vars(b))
		}
		t.rows, t.sums = append(t.rows, rows), append(t.sums, sums)
	}
	lane := b.SubgroupLane()
	for i, pass := range p.spec.passes() {
		b.For(lane, b.Div(a.k, p.matrices[pass[0]].format.unit), wave, func(u kernel.Value) {
			t.unit(u, t.load(u, pass), pass, i == 0)
		})
	}
	k.finish(t, lane, row)
}

// vars returns a sum for every column.
func (k gemv) vars(b *kernel.Builder) []*kernel.Var {
	v := make([]*kernel.Var, k.rows)
	for c := range v {
		v[c] = b.Var(kernel.F32, 0.0)
	}
	return v
}

// gemvTile is what a lane keeps in its loop over the units.
type gemvTile struct {
	b       *kernel.Builder
	a       *linearArgs
	p       *projectArgs
	columns []kernel.Value    // where they begin in x, in vec4
	result  *kernel.Value     // the row of the result of column 0; nil for 0
	rows    [][]kernel.Value  // by matrix
	sums    [][][]*kernel.Var // by matrix, row, column
	squares []*kernel.Var     // by column
}

// load loads unit u of the rows of the matrices of a pass: by matrix, row, run.
func (t *gemvTile) load(u kernel.Value, pass []int) [][][]run {
	var loaded [][][]run
	for _, m := range pass {
		var rows [][]run
		for _, row := range t.rows[m] {
			rows = append(rows, t.p.matrices[m].format.load(t.b, t.p.matrices[m], row, u))
		}
		loaded = append(loaded, rows)
	}
	return loaded
}

// unit adds the products of unit u, which load has loaded, with the columns. The
// first pass sums up the squares for the norm.
func (t *gemvTile) unit(u kernel.Value, loaded [][][]run, pass []int, first bool) {
	b := t.b
	f := t.p.matrices[pass[0]].format
	begin := b.Div(f.begin(b, u), 4)
	for i := range f.runs() {
		part := make([][][]partial, len(pass))
		for m := range part {
			part[m] = make([][]partial, len(t.rows[0]))
			for r := range part[m] {
				part[m][r] = make([]partial, len(t.columns))
			}
		}
		total := make([]partial, len(t.columns)) // sums of x, for the offset
		for v := range f.run / 4 {
			x := t.elements(b.Add(begin, f.at(i*f.run/4+v)/4), first)
			if f.sums() {
				for c := range x {
					for _, e := range x[c] {
						total[c].add(b, e)
					}
				}
			}
			for m := range pass {
				for r := range t.rows[0] {
					codes := loaded[m][r][i].codes(v)
					for e := range 4 {
						q := b.Elem(codes, e)
						for c := range x {
							part[m][r][c].product(b, q, x[c][e])
						}
					}
				}
			}
		}
		for m, matrix := range pass {
			for r := range t.rows[0] {
				for c, sum := range t.sums[matrix][r] {
					part[m][r][c].into(b, f, sum, loaded[m][r][i], total[c])
				}
			}
		}
	}
}

// elements loads one vec4 of every column, times the gain if there is a norm.
func (t *gemvTile) elements(at kernel.Value, first bool) [][4]kernel.Value {
	b := t.b
	norm := t.a.group.gain != nil
	var gain kernel.Value
	if norm {
		gain = t.a.gain.Load(f32x4, at)
	}
	x := make([][4]kernel.Value, len(t.columns))
	for c, column := range t.columns {
		v := t.a.x.Load(f32x4, b.Add(column, at))
		if norm && first {
			for e := range 4 {
				s := b.Elem(v, e)
				t.squares[c].Set(b.FMA(s, s, t.squares[c].Get()))
			}
		}
		if norm {
			v = b.Mul(v, gain)
		}
		for e := range x[c] {
			x[c][e] = b.Elem(v, e)
		}
	}
	return x
}

// partial is a sum over a run; it begins with its first term.
type partial struct {
	sum  kernel.Value
	some bool
}

func (p *partial) add(b *kernel.Builder, x kernel.Value) {
	if p.some {
		x = b.Add(p.sum, x)
	}
	*p = partial{x, true}
}

func (p *partial) product(b *kernel.Builder, q, x kernel.Value) {
	if p.some {
		*p = partial{b.FMA(q, x, p.sum), true}
	} else {
		*p = partial{b.Mul(q, x), true}
	}
}

// into adds the run's sum, which is one of codes times x, to a sum of values.
func (p *partial) into(b *kernel.Builder, f *format, sum *kernel.Var, r run, total partial) {
	s := sum.Get()
	if f.scaled {
		s = b.FMA(r.scale, p.sum, s)
	} else {
		s = b.Add(s, p.sum)
	}
	if f.sums() {
		s = b.FMA(r.shift(b, f), total.sum, s)
	}
	sum.Set(s)
}

// finish adds up the lanes and stores: result i = row*columns + column is lane
// i mod 8's, for a subgroup has 8 lanes at least.
func (k gemv) finish(t *gemvTile, lane, row kernel.Value) {
	b := t.b
	var squares []kernel.Value
	if k.gain != nil {
		for _, s := range t.squares {
			squares = append(squares, b.SubgroupAdd(s.Get()))
		}
	}
	sums := make([][]kernel.Value, len(t.sums)) // by matrix, result
	for m := range sums {
		for r := range t.rows[0] {
			for _, s := range t.sums[m][r] {
				sums[m] = append(sums[m], b.SubgroupAdd(s.Get()))
			}
		}
	}
	const lanes = 8
	results := k.perSubgroup * k.rows
	for from := 0; from < results; from += lanes {
		count := min(lanes, results-from)
		own := make([]kernel.Value, len(sums))
		for m := range own {
			own[m] = pick(b, lane, sums[m][from:from+count])
		}
		index := b.Add(lane, from)
		column := b.Mod(index, k.rows)
		n := b.Add(row, b.Div(index, k.rows))
		b.If(b.And(b.Lt(lane, count), b.Lt(n, t.p.width)), func() {
			var rstd *kernel.Value
			if k.gain != nil {
				r := t.a.rstd(b, pick(b, column, squares))
				rstd = &r
			}
			at := column
			if t.result != nil {
				at = *t.result
			}
			t.p.store(b, own, rstd, at, n)
		})
	}
}

// pick returns element i of a list, the first if i is out of range.
func pick(b *kernel.Builder, i kernel.Value, list []kernel.Value) kernel.Value {
	v := list[0]
	for j := 1; j < len(list); j++ {
		v = b.Select(b.Eq(i, j), list[j], v)
	}
	return v
}
