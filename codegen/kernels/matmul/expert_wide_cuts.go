package matmul

import (
	"fmt"
	"math/bits"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/fragment"
)

// A line can be cut, so that workers get equal shares: of some of its tiles, several subgroups multiply a part of the
// blocks each. What they add comes together in shared memory, in the order in which a subgroup alone adds it.

// few reports whether experts have few rows on average: then most panels have no more than byteColumns rows, and shares
// few lines. With more, neither pays.
func (k *expertWide) few() bool { return k.rows*k.expertGroup.slots < byteColumns*k.experts }

// cuts is how many parts a line can have: as many as a row has pairs of blocks, if these are added in pairs.
func (k *expertWide) cuts() int {
	if n := k.blocks() / 2; k.few() && k.blocks()%2 == 0 && (n == 2 || n == 4) {
		return n
	}
	return 1
}

func (k *expertWide) cutsKey() string {
	if k.cuts() == 1 {
		return ""
	}
	return fmt.Sprintf(" cuts=%d", k.cuts())
}

// cutsOfPanel is the cuts of all lines of an expert.
func (k *expertWide) cutsOfPanel() int { return k.lines() * k.cuts() }

// stepsOfCut is how many blocks a subgroup multiplies for a cut.
func (k *expertWide) stepsOfCut() int { return k.blocks() / k.cuts() }

// partials is the pairs of sums of subgroups that have parts of rows.
func (k *expertWide) partials() int {
	if k.cuts() == 1 {
		return 0
	}
	return k.matrices() * k.groups() * fragment.Lanes
}

// byteShare is what a worker multiplies, counted through all panels. Of a cut, each subgroup multiplies stepsOfCut
// blocks, which are steps.
type byteShare struct {
	panels
	from, to kernel.Value // cuts
}

// bytePiece is cuts of a line that are multiplied together: all of it, half of it, or one.
type bytePiece struct {
	cut    kernel.Value // the first one
	log    kernel.Value // how many they are, as a logarithm
	steps  kernel.Value // blocks that a subgroup multiplies
	tile   kernel.Value // of the expert, which the subgroup has
	member kernel.Value // of the subgroups that have it; none if that is one
	block  kernel.Value // the first one that the subgroup multiplies
}

// pieceAt returns the largest piece of the share that has a cut.
func (r *expertWideTask) pieceAt(s byteShare, cut kernel.Value) bytePiece {
	b, k := r.b, r.kernel
	in := func(cut kernel.Value) kernel.Value { return b.Mul(b.Mod(cut, k.cutsOfPanel()), k.groups()/k.cuts()) }
	if k.cuts() == 1 {
		return bytePiece{cut: cut, steps: b.U32(uint32(k.blocks())), tile: b.Add(in(cut), r.group), block: b.U32(0)}
	}
	p := bytePiece{cut: cut, log: b.U32(0)}
	for log := 1; 1<<log <= k.cuts(); log++ {
		first := b.And(cut, ^uint32(1<<log-1))
		fits := b.And(b.Ge(first, s.from), b.Le(b.Add(first, 1<<log), s.to))
		p.cut, p.log = b.Select(fits, first, p.cut), b.Select(fits, b.U32(uint32(log)), p.log)
	}
	tiles := b.Add(p.log, bits.Len(uint(k.groups()/k.cuts()))-1) // as a logarithm
	p.member = b.Shr(r.group, tiles)
	p.tile = b.Add(in(p.cut), b.Sub(r.group, b.Shl(p.member, tiles)))
	p.steps = b.Shl(b.U32(uint32(k.stepsOfCut())), p.log)
	p.block = b.Mul(p.member, p.steps)
	return p
}

// tileCol is the first output of each matrix of the subgroup's tile.
func (r *expertWideTask) tileCol(p bytePiece) kernel.Value { return r.b.Mul(p.tile, r.kernel.each()) }

// chunkSum adds the sums of a row's blocks as gemm_fixed does: those of a chunk in pairs, then chunks one after
// the other.
type chunkSum struct{ pair, all *kernel.Var }

// addBlocks returns the lane's sums of the subgroup's part of a piece, by matrix of columns and row.
func (r *expertWideTask) addBlocks(s byteShare, piece bytePiece) (sums [][2]kernel.Value) {
	b, k := r.b, r.kernel
	vars := make([][2]chunkSum, r.sets)
	for i := range vars {
		for h := range vars[i] {
			vars[i][h] = chunkSum{b.Var(kernel.F32, minusZero), b.Var(kernel.F32, minusZero)}
		}
	}
	// add adds what come of block, and of the next one if two: the first of its chunk, or the third.
	add := func(block kernel.Value, parts [][2]kernel.Value) {
		third := b.Ne(b.And(block, 2), 0)
		for i := range vars {
			for h, v := range vars[i] {
				chunk := b.Select(third, b.Add(v.pair.Get(), parts[i][h]), parts[i][h])
				v.pair.Set(chunk)
				if k.blocks() > fixedChunk {
					chunk = b.Select(b.Lt(block, fixedChunk), chunk, b.Add(v.all.Get(), chunk))
					last := b.Or(third, b.Ge(b.Add(block, 2), k.blocks()))
					chunk = b.Select(last, chunk, v.all.Get())
				}
				v.all.Set(chunk)
			}
		}
	}
	steps := piece.steps
	if k.cuts() == 1 {
		steps = b.U32(uint32(k.blocks() / 2 * 2))
	}
	b.ForRolled(0, steps, 2, func(i kernel.Value) {
		parts := r.stepSums(s, piece, i)
		for i, second := range r.stepSums(s, piece, b.Add(i, 1)) {
			for h := range second {
				parts[i][h] = b.Add(parts[i][h], second[h])
			}
		}
		add(b.Add(piece.block, i), parts)
	})
	if k.blocks()%2 > 0 {
		block := b.U32(uint32(k.blocks() - 1))
		add(block, r.stepSums(s, piece, block))
	}
	for _, of := range vars {
		var own [2]kernel.Value
		for h, v := range of {
			if own[h] = v.all.Get(); k.cuts() > 2 { // a pair alone is no chunk
				own[h] = b.Select(b.Eq(piece.log, 0), v.pair.Get(), own[h])
			}
		}
		sums = append(sums, own)
	}
	return sums
}

// joined returns the sums of whole rows, in the first of the subgroups that share a tile.
func (r *expertWideTask) joined(piece bytePiece, sums [][2]kernel.Value) [][2]kernel.Value {
	b, k := r.b, r.kernel
	if k.cuts() == 1 {
		return sums
	}
	vars := make([][2]*kernel.Var, len(sums))
	for i, own := range sums {
		for h, v := range own {
			vars[i][h] = b.Var(kernel.F32, v)
		}
	}
	at := func(i int, group kernel.Value) kernel.Value {
		return b.Add(b.Mul(b.Add(group, i*k.groups()), fragment.Lanes), r.lane)
	}
	b.If(b.Lt(piece.log, bits.Len(uint(k.cuts()))-1), func() {
		for i, own := range sums {
			r.bytes.partials.Store(at(i, r.group), b.Vec(own[0], own[1]))
		}
		b.Barrier()
		for members := 2; members <= k.cuts(); members *= 2 {
			b.If(b.And(b.Eq(piece.member, 0), b.Eq(piece.log, bits.Len(uint(k.cuts()/members))-1)), func() {
				for i, own := range sums {
					parts := []kernel.Value{b.Vec(own[0], own[1])}
					for m := 1; m < members; m++ {
						parts = append(parts, r.bytes.partials.Load(at(i, b.Add(r.group, m*k.groups()/members))))
					}
					sum := pairwise(b, parts)
					for h, v := range vars[i] {
						v.Set(b.Elem(sum, h))
					}
				}
			})
		}
		b.Barrier() // all have read the sums, in whose place others come
	})
	all := make([][2]kernel.Value, len(sums))
	for i, own := range vars {
		all[i] = [2]kernel.Value{own[0].Get(), own[1].Get()}
	}
	return all
}

// finishPiece stores the results of the lane's columns of a tile.
func (r *expertWideTask) finishPiece(piece bytePiece, sums [][2]kernel.Value, scales []*kernel.Value) {
	b := r.b
	for i, own := range sums {
		column := b.Add(r.quad, i*byteColumns)
		mine := b.Lt(column, r.columns)
		if r.kernel.cuts() > 1 {
			mine = b.And(mine, b.Eq(piece.member, 0))
		}
		b.If(mine, func() { r.finishTile(piece, r.result(column), own, scales[i]) })
	}
}

// finishTile stores the results of a row of a tile.
func (r *expertWideTask) finishTile(piece bytePiece, row kernel.Value, sums [2]kernel.Value, scale *kernel.Value) {
	b, each := r.b, r.kernel.each()
	for half := 0; half < each; half += fixedSide / 2 {
		var own []kernel.Value
		for m := range r.p.matrices {
			own = append(own, sums[(m*each+half)/8])
		}
		out := b.Add(r.tileCol(piece), half, r.place)
		store := func() { r.p.store(b, own, scale, nil, row, out) }
		if r.whole {
			store()
		} else {
			b.If(b.Lt(out, r.p.width), store)
		}
	}
}
