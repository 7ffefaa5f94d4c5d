package kernels

import "github.com/zincc-dev/zincc/codegen/kernel"

// dealtRun is the kernel of one projection while it is built.
type dealtRun struct {
	gemmDealt
	rowTile
	d      *coopDecoder
	a      *linearArgs
	deal   dealing
	shared *kernel.Array
	group  kernel.Value
	place  kernel.Value // of the lane's row of a matrix: 0 to 7
	quad   kernel.Value // the lane of those that share a row
	col    kernel.Value // first output of each matrix of the workgroup
	x      dealtX
	sums   [][]*kernel.Var // by 16 outputs and 8 rows
}

// dealtX brings x: octet o of step p of a block of 8 rows.
type dealtX interface {
	// start loads what the first block needs.
	start(block kernel.Value)
	// step makes step p of a block ready, behind which comes block next.
	step(block, next kernel.Value, p int) func(o, rows int) kernel.Value
}

// emit emits the kernel behind what finds the tile of rows. workgroup counts the tiles of outputs.
func (k gemmDealt) emit(b *kernel.Builder, a *linearArgs, series, workgroup kernel.Value, tile rowTile) {
	shared := b.Shared(u32x4, k.shared())
	a.each(b, workgroup, func(p *projectArgs, at kernel.Value) {
		tile.b, tile.p = b, p
		t := &dealtRun{gemmDealt: k, rowTile: tile, a: a, shared: shared, d: newCoopDecoder(b, tile.rows)}
		t.deal = dealings[p.spec.dealing()]
		t.group, t.place, t.quad = b.SubgroupID(), b.Shr(b.SubgroupLane(), 2), b.And(b.SubgroupLane(), 3)
		t.col = b.Mul(at, b.Mul(series, k.each()))
		if k.staged {
			t.x = t.stageX()
		} else {
			t.x = &keptX{dealtRun: t}
		}
		t.run(series)
	})
}

// items are the rows of weights whose parts a lane holds: of each 16 outputs of the
// subgroup two. live is whether they count: if not, all lanes load the same word.
func (t *dealtRun) items(col kernel.Value, live *kernel.Value) [][2]dealtItem {
	b := t.b
	d := *t.d
	d.live = live
	list := make([][2]dealtItem, t.outputs/dealtSide)
	for i := range list {
		for h := range 2 {
			n := i*dealtSide + h*dealtSide/2
			m := n / t.each()
			w := t.p.matrices[m]
			row := b.Add(col, t.place, n%t.each())
			list[i][h] = dealtFormatOf(w.format.layout).open(&d, w, t.p.row(b, m, b.Min(row, b.Sub(t.p.width, 1))), t.quad)
		}
	}
	return list
}

// dealtWords are what a lane has loaded of a block: by item and row, step.
type dealtWords [][2][][]kernel.Value

func (t *dealtRun) load(items [][2]dealtItem, block kernel.Value) dealtWords {
	var w dealtWords
	for _, pair := range items {
		w = append(w, [2][][]kernel.Value{pair[0].load(block), pair[1].load(block)})
	}
	return w
}

// held are variables for such words.
func (w dealtWords) held(b *kernel.Builder) [][2][][]*kernel.Var {
	var list [][2][][]*kernel.Var
	for _, pair := range w {
		list = append(list, [2][][]*kernel.Var{vars(b, pair[0]), vars(b, pair[1])})
	}
	return list
}

func (t *dealtRun) run(series kernel.Value) {
	b := t.b
	blocks := b.Div(t.a.k, dealtBlock*t.groups) // of a group
	items := t.items(t.col, nil)
	words := t.load(items, t.group)
	t.x.start(t.group)
	held := words.held(b)
	turn := func(next dealtWords) dealtWords {
		for i := range words {
			for h := range words[i] {
				words[i][h] = getVars(held[i][h])
				setVars(held[i][h], next[i][h])
			}
		}
		return words
	}
	t.clear()
	if t.staged {
		b.ForRolled(0, blocks, 1, func(i kernel.Value) {
			more := b.Lt(b.Add(i, 1), blocks)
			at := b.Add(b.Mul(i, t.groups), t.group)
			next := b.Select(more, b.Add(at, t.groups), at)
			t.multiply(items, turn(t.load(t.items(t.col, &more), next)), at, next)
		})
		t.store(t.col, b.U32(0))
		return
	}
	// The last workgroup of a projection may have fewer tiles.
	left := b.Sub(t.p.width, t.col)
	series = b.Min(series, b.Div(b.Add(left, t.each()-1), t.each()))
	b.ForRolled(0, series, 1, func(i kernel.Value) {
		col := b.Add(t.col, b.Mul(i, t.each()))
		more := b.Lt(b.Add(i, 1), series)
		t.clear()
		next := t.load(t.items(b.Add(col, t.each()), &more), t.group)
		t.multiply(items, turn(next), t.group, t.group)
		t.store(col, i)
	})
}

// clear sets the sums to zero.
func (t *dealtRun) clear() {
	b := t.b
	sum := kernel.F32.Matrix(dealtSide, dealtRows, kernel.Accumulator)
	fresh := t.sums == nil
	for i := range t.outputs / dealtSide {
		if fresh {
			t.sums = append(t.sums, nil)
		}
		for c := range t.tileRows() / dealtRows {
			if fresh {
				t.sums[i] = append(t.sums[i], b.Var(sum, b.MatFill(sum, 0)))
			} else {
				t.sums[i][c].Set(b.MatFill(sum, 0))
			}
		}
	}
}

// multiply adds the products of a block.
func (t *dealtRun) multiply(items [][2]dealtItem, words dealtWords, block, next kernel.Value) {
	b := t.b
	ws := kernel.F16.Matrix(dealtSide, dealtSide, kernel.MatrixA)
	xs := kernel.F16.Matrix(dealtSide, dealtRows, kernel.MatrixB)
	var scales [][2][]kernel.Value
	for i, pair := range items {
		var s [2][]kernel.Value
		for h := range pair {
			s[h] = pair[h].scales(words[i][h][dealtSteps])
		}
		scales = append(scales, s)
	}
	for p := range dealtSteps {
		x := t.x.step(block, next, p)
		octets := make([][2][]kernel.Value, len(items))
		for i, pair := range items {
			for h := range pair {
				octets[i][h] = pair[h].octets(scales[i][h], words[i][h][p], p)
			}
		}
		for o := range 4 {
			var a [2][]kernel.Value
			for e := range a {
				for i := range octets {
					lo, hi := octets[i][0][o], octets[i][1][o]
					a[e] = append(a[e], b.MatWords(ws, b.Elem(lo, 2*e), b.Elem(lo, 2*e+1), b.Elem(hi, 2*e), b.Elem(hi, 2*e+1)))
				}
			}
			var v []kernel.Value
			for c := range t.tileRows() / dealtRows {
				v = append(v, x(o, c))
			}
			for e := range a {
				for c := range v {
					q := b.MatWords(xs, b.Elem(v[c], 2*e), b.Elem(v[c], 2*e+1))
					for i := range octets {
						sum := t.sums[i][c]
						sum.Set(b.MatMulAdd(a[e][i], q, sum.Get()))
					}
				}
			}
		}
	}
}

// store finishes and writes the tile whose first output of each matrix is col, the
// i-th of the workgroup: subgroups put their sums into shared memory, where lanes find 4
// neighbours each, of all matrices and groups.
func (t *dealtRun) store(col, i kernel.Value) {
	b := t.b
	slot := t.tileRows() * t.stride()
	// Tiles take turns, so that one is finished while the next is multiplied.
	base := b.Mul(b.Mod(i, t.turns()), t.region())
	mine := b.Add(base, b.Mul(b.SubgroupID(), slot))
	if t.staged {
		b.Barrier() // there is x
	}
	for m := range t.sums {
		for c, sum := range t.sums[m] {
			t.shared.StoreMatrix(b.Add(mine, c*dealtRows*t.stride()+m*dealtSide/4), t.stride(), kernel.ColumnMajor, sum.Get())
		}
	}
	b.Barrier()
	n, threads := t.tileRows()*t.each()/4, t.groups*t.wave
	for from := 0; from < n; from += threads {
		i := b.Add(b.LocalID(), from)
		b.If(b.Lt(i, n), func() {
			row, x := b.Div(i, t.each()/4), b.Mod(i, t.each()/4)
			var v []kernel.Value
			for m := range t.p.matrices {
				at := b.Add(base, b.Mul(row, t.stride()), x, m*t.each()/4)
				sum := b.Bitcast(f32x4, t.shared.Load(at))
				for g := 1; g < t.groups; g++ {
					sum = b.Add(sum, b.Bitcast(f32x4, t.shared.Load(b.Add(at, g*slot))))
				}
				v = append(v, sum)
			}
			t.finish(v, b.Add(t.row, row), b.Add(b.Div(col, 4), x), b.Bool(true))()
		})
	}
}
