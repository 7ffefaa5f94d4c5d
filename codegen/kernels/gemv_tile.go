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
					sum.Set(part[m][r][c].into(b, f, sum.Get(), loaded[m][r][i], total[c].sum))
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
