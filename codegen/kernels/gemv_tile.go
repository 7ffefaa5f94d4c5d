package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

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
	f := t.p.matrices[pass[0]].format
	begin := t.b.Div(f.begin(t.b, u), 4)
	for i := range f.runs() {
		at := t.b.Add(begin, f.at(i*f.run/4)/4)
		t.run(at, func(m, r int) run { return loaded[m][r][i] }, pass, first)
	}
}

// unitInLoop is load and unit with a loop over the runs. Less code is faster where
// there are many columns: a workgroup passes through it once only.
func (t *gemvTile) unitInLoop(u kernel.Value, pass []int, first bool) {
	b := t.b
	f := t.p.matrices[pass[0]].format
	parts := make([][]func(i kernel.Value) run, len(pass))
	for m, matrix := range pass {
		for _, row := range t.rows[matrix] {
			words := f.fetch(b, t.p.matrices[matrix], row, u)
			parts[m] = append(parts[m], f.decodeOne(b, words, u))
		}
	}
	begin := b.Div(f.begin(b, u), 4)
	b.For(0, f.runs(), 1, func(i kernel.Value) {
		t.run(b.Add(begin, b.Mul(i, f.stride/4)), func(m, r int) run { return parts[m][r](i) }, pass, first)
	})
}

// run adds the products of one run of each row, which begins at x's vec4 at.
func (t *gemvTile) run(at kernel.Value, of func(m, r int) run, pass []int, first bool) {
	b, f := t.b, t.p.matrices[pass[0]].format
	runs, part := make([][]run, len(pass)), make([][][]partial, len(pass))
	for m := range part {
		for r := range t.rows[pass[m]] {
			runs[m] = append(runs[m], of(m, r))
			part[m] = append(part[m], make([]partial, len(t.columns)))
		}
	}
	total := make([]partial, len(t.columns)) // sums of x
	for v := range f.run / 4 {
		x := t.elements(b.Add(at, v), first)
		if f.sums() {
			for c := range x {
				for _, e := range x[c] {
					total[c].add(b, e)
				}
			}
		}
		for m := range pass {
			for r := range runs[m] {
				codes := runs[m][r].codes(v)
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
		for r := range runs[m] {
			for c, sum := range t.sums[matrix][r] {
				sum.Set(part[m][r][c].into(b, f, sum.Get(), runs[m][r], total[c].sum))
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

// into adds the run's sum, which is one of codes times x, to a sum of values. total
// is the sum of x over the run.
func (p *partial) into(b *kernel.Builder, f *format, sum kernel.Value, r run, total kernel.Value) kernel.Value {
	if f.scaled {
		sum = b.FMA(r.scale, p.sum, sum)
	} else {
		sum = b.Add(sum, p.sum)
	}
	if f.sums() {
		sum = b.FMA(r.shift(b, f), total, sum)
	}
	return sum
}
