package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
)

// gemvTile is what a lane keeps in its loop over the units of some rows of the
// weights.
type gemvTile struct {
	b       *kernel.Builder
	a       *linearArgs
	p       *projectArgs
	columns []kernel.Value    // where they begin in x, in vec4
	rows    [][]kernel.Value  // by matrix
	sums    [][][]*kernel.Var // by matrix, row, column
	squares []*kernel.Var     // by column
}

// load loads unit u of the rows of the matrices of a pass: by matrix, row, run.
func (t *gemvTile) load(u kernel.Value, pass []int) [][][]weight.Run {
	var loaded [][][]weight.Run
	for _, m := range pass {
		var rows [][]weight.Run
		for _, row := range t.rows[m] {
			rows = append(rows, t.p.matrices[m].Format.Load(t.b, t.p.matrices[m], row, u))
		}
		loaded = append(loaded, rows)
	}
	return loaded
}

// unit adds the products of unit u, which load has loaded, with the columns. The
// first pass sums up the squares for the norm.
func (t *gemvTile) unit(u kernel.Value, loaded [][][]weight.Run, pass []int, first bool) {
	f := t.p.matrices[pass[0]].Format
	begin := t.b.Div(f.Begin(t.b, u), 4)
	for i := range f.Runs() {
		at := t.b.Add(begin, f.At(i*f.Run/4)/4)
		t.run(at, func(m, r int) weight.Run { return loaded[m][r][i] }, pass, first)
	}
}

// unitsAhead is load and unit of all of a lane's n units. So many are loaded before the first is needed.
func (t *gemvTile) unitsAhead(n, ahead int, at func(j int) kernel.Value, pass []int) {
	var loaded [][][][]weight.Run
	for j := range n {
		for len(loaded) < min(n, j+ahead) {
			loaded = append(loaded, t.load(at(len(loaded)), pass))
		}
		t.unit(at(j), loaded[j], pass, true)
	}
}

// unitInLoop is load and unit with a loop over the runs. Less code is faster where
// there are many columns: a workgroup passes through it once only.
func (t *gemvTile) unitInLoop(u kernel.Value, pass []int, first bool) {
	b := t.b
	f := t.p.matrices[pass[0]].Format
	parts := make([][]func(i kernel.Value) weight.Run, len(pass))
	for m, matrix := range pass {
		for _, row := range t.rows[matrix] {
			words := f.Fetch(b, t.p.matrices[matrix], row, u)
			parts[m] = append(parts[m], f.DecodeOne(b, words, u))
		}
	}
	begin := b.Div(f.Begin(b, u), 4)
	b.For(0, f.Runs(), 1, func(i kernel.Value) {
		t.run(b.Add(begin, b.Mul(i, f.Stride/4)), func(m, r int) weight.Run { return parts[m][r](i) }, pass, first)
	})
}

// run adds the products of one run of each row, which begins at x's vec4 at.
func (t *gemvTile) run(at kernel.Value, of func(m, r int) weight.Run, pass []int, first bool) {
	b, f := t.b, t.p.matrices[pass[0]].Format
	runs, part := make([][]weight.Run, len(pass)), make([][][]lane.Partial, len(pass))
	for m := range part {
		for r := range t.rows[pass[m]] {
			runs[m] = append(runs[m], of(m, r))
			part[m] = append(part[m], make([]lane.Partial, len(t.columns)))
		}
	}
	total := make([]lane.Partial, len(t.columns)) // sums of x
	for v := range f.Run / 4 {
		x := t.elements(b.Add(at, v), first)
		if f.Sums() {
			for c := range x {
				for _, e := range x[c] {
					total[c].Add(b, e)
				}
			}
		}
		for m := range pass {
			for r := range runs[m] {
				codes := runs[m][r].Codes(v)
				for e := range 4 {
					q := b.Elem(codes, e)
					for c := range x {
						part[m][r][c].Product(b, q, x[c][e])
					}
				}
			}
		}
	}
	for m, matrix := range pass {
		for r := range runs[m] {
			for c, sum := range t.sums[matrix][r] {
				sum.Set(into(part[m][r][c], b, f, sum.Get(), runs[m][r], total[c].Sum))
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
		gain = t.a.gain.Load(lane.F32x4, at)
	}
	x := make([][4]kernel.Value, len(t.columns))
	for c, column := range t.columns {
		v := t.a.x.Load(lane.F32x4, b.Add(column, at))
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

// into adds the run's sum, which is one of codes times x, to a sum of values. total
// is the sum of x over the run.
func into(p lane.Partial, b *kernel.Builder, f *weight.Format, sum kernel.Value, r weight.Run, total kernel.Value) kernel.Value {
	if f.Scaled {
		sum = b.FMA(r.Scale, p.Sum, sum)
	} else {
		sum = b.Add(sum, p.Sum)
	}
	if f.Sums() {
		sum = b.FMA(r.Shift(b, f), total, sum)
	}
	return sum
}
