package matmul

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
)

// Where copies to shared memory need no registers, the weights of several tiles are in flight while one is multiplied:
// each subgroup has a staging buffer with copies of its block in the 16 rows of a tile. The four lanes that hold parts
// of a row copy it, so that a barrier of the subgroup is enough.

// stagedTiles are the numbers of tiles that a staging buffer may have.
var stagedTiles = []int{2, 3, 4, 6, 8}

// stagings returns the staging buffers that fit in shared memory; none if weights are not copied.
func (k gemmFixed) stagings(t *target.Target) (list []*site.Staging) {
	if !t.Copies() {
		return nil
	}
	for _, p := range k.projects {
		if p.matrices[0].format.Fixed.Spans == nil {
			return nil
		}
	}
	for _, n := range stagedTiles {
		r := &site.Staging{Tiles: n, Bytes: k.groups * k.stagedRow() * fixedSide, Besides: k.sharedSizes().bytes(), Subgroups: k.groups}
		if r.Besides+r.Tiles*r.Bytes <= t.SharedOptIn {
			list = append(list, r)
		}
	}
	return list
}

// stagedVecs is the vec4 of a row in the staging buffer, for the formats that are copied: 2 more than a multiple of 4,
// so that lanes of neighbouring rows read different banks.
func (k gemmFixed) stagedVecs() int {
	most := 0
	for _, p := range k.projects {
		n := 0
		for _, count := range p.matrices[0].format.Fixed.Spans {
			n += count
		}
		most = max(most, n)
	}
	return site.CeilDiv(most-2, 4)*4 + 2
}

// stagedRest is the other words of a row there.
func (k gemmFixed) stagedRest() int {
	most := 0
	for _, p := range k.projects {
		most = max(most, p.matrices[0].format.Fixed.Rest)
	}
	return most
}

// stagedRow is the bytes of a row there.
func (k gemmFixed) stagedRow() int { return 16*k.stagedVecs() + 4*k.stagedRest() }

// fixedStaging is the staging buffer.
type fixedStaging struct {
	pairs *kernel.Array // of words: by stage, subgroup, row
	rest  *kernel.Array // words: by stage, subgroup, row; nil if there are none
}

func newFixedStaging(b *kernel.Builder, k gemmFixed) *fixedStaging {
	if k.stages == 0 {
		return nil
	}
	rows := k.stages * k.groups * fixedSide
	r := &fixedStaging{pairs: b.Shared(lane.U32x2, rows*2*k.stagedVecs())}
	if n := k.stagedRest(); n > 0 {
		r.rest = b.Shared(kernel.U32, rows*n)
	}
	return r
}

// stagedAt is the row in the staging buffer that the lane's rows of the i-th tile begin at.
func (r *fixedTask) stagedAt(i kernel.Operand) kernel.Value {
	b := r.b
	return b.Add(b.Mul(b.Add(b.Mul(b.Mod(i, r.stages), r.groups), r.group), fixedSide), r.place)
}

// stagedPairs is the pair of words in the staging buffer that the lane's first row of the i-th tile begins at.
func (r *fixedTask) stagedPairs(i kernel.Operand) kernel.Value {
	b, row := r.b, 2*r.stagedVecs()
	own := b.Mul(b.Add(b.Mul(r.group, fixedSide), r.place), row)
	return b.Add(b.Mul(b.Mod(i, r.stages), r.groups*fixedSide*row), own)
}

// copyTile begins to copy the lane's part of the block's rows in the i-th tile.
func (r *fixedTask) copyTile(block, i kernel.Value) {
	r.copyBlock(r.b.Add(r.col, r.b.Mul(i, r.each())), block, i)
}

// copyBlock begins to copy the lane's part of a block of the tile whose first output of each matrix is col, to the
// place of the buffer's i-th tile.
func (r *fixedTask) copyBlock(col, block, i kernel.Value) {
	b := r.b
	own := b.Add(r.stagedPairs(i), b.Mul(r.quad, 2))
	var some [4][]func() // copies of the first lanes of four alone, by their number; those of all at 0
	for h, row := range r.rowsAt(col, nil) {
		buf, below := r.p.matrices[h*fixedSide/2/r.each()].Buf, h*fixedSide/2
		spans, rest := row.Spans(block)
		n := 0
		for s, count := range r.format.Spans {
			before := n
			for k := 0; k < count; k += 4 {
				lanes := min(count-k, 4) % 4
				some[lanes] = append(some[lanes], func() {
					to, from := b.Add(own, 2*(below*r.stagedVecs()+before+k)), b.Add(spans[s], r.quad, k)
					if r.along {
						buf.CopyLine(lane.U32x4, r.staging.pairs, to, from)
					} else {
						buf.Copy(lane.U32x4, r.staging.pairs, to, from)
					}
				})
			}
			n += count
		}
		for k, word := range rest {
			some[1] = append(some[1], func() {
				buf.Copy(kernel.U32, r.staging.rest, b.Add(b.Mul(b.Add(r.stagedAt(i), below), r.stagedRest()), k), word)
			})
		}
	}
	for lanes, copies := range some {
		all := func() {
			for _, do := range copies {
				do()
			}
		}
		switch {
		case lanes == 0:
			all()
		case len(copies) > 0:
			b.If(b.Lt(r.quad, lanes), all)
		}
	}
}

// fillStaging begins to copy the first tiles, but for its last one: before x, which is nearer.
func (r *fixedTask) fillStaging(block, series kernel.Value) {
	b := r.b
	for i := range r.stages - 1 {
		do := func() { r.copyTile(block, b.U32(uint32(i))) }
		if i == 0 {
			do()
		} else {
			b.If(b.Gt(series, i), do)
		}
		b.CopyGroup()
	}
}

// turnStaging begins to copy the tile that is all of the buffer ahead of the i-th, in the place of the one before it,
// which all lanes of the subgroup have read, and returns the lane's words of the i-th one.
func (r *fixedTask) turnStaging(rows fixedRows, block, i, series kernel.Value) (words [2][]kernel.Value) {
	b := r.b
	ahead := b.Add(i, r.stages-1)
	b.If(b.Lt(ahead, series), func() { r.copyTile(block, ahead) })
	b.CopyGroup()
	b.CopyWait(r.stages - 1)
	b.SubgroupBarrier()
	return r.copied(rows, block, i)
}

// copied returns the lane's words of the i-th tile, which have come.
func (r *fixedTask) copied(rows fixedRows, block, i kernel.Value) (words [2][]kernel.Value) {
	b, first := r.b, r.stagedPairs(i)
	at := [2]kernel.Value{first, b.Add(first, fixedSide*r.stagedVecs())}
	return r.wordsIn(r.staging.pairs, at, rows, block, func(h int, at kernel.Value) kernel.Value {
		return r.staging.rest.Load(b.Add(b.Mul(b.Add(r.stagedAt(i), h*fixedSide/2), r.stagedRest()), at))
	})
}

// wordsIn returns the lane's words of a block that pairs has at some places by row, and its other words.
func (r *fixedTask) wordsIn(pairs *kernel.Array, at [2]kernel.Value, rows fixedRows, block kernel.Value, rest func(h int, at kernel.Value) kernel.Value) (words [2][]kernel.Value) {
	b := r.b
	for h, row := range rows {
		from := at[h]
		pair := func(i kernel.Value) []kernel.Value { return lane.Elements(b, pairs.Load(b.Add(from, i))) }
		for _, w := range row.Load(block) {
			if w.Apart {
				own := func(half int) kernel.Value {
					at := b.Add(from, w.At(), b.And(r.quad, 1), 2*half)
					return pairs.LoadElem(at, b.Shr(r.quad, 1))
				}
				words[h] = append(words[h], b.Vec(own(0), own(1)))
				continue
			}
			switch w.Of {
			case lane.U32x4:
				i := b.Mul(w.At(), 2)
				words[h] = append(words[h], b.Vec(operands(append(pair(i), pair(b.Add(i, 1))...))...))
			case lane.U32x2:
				words[h] = append(words[h], b.Vec(operands(pair(w.At()))...))
			case kernel.U32:
				words[h] = append(words[h], rest(h, w.At()))
			default:
				words[h] = append(words[h], w.Load())
			}
		}
	}
	return
}

func operands(list []kernel.Value) []kernel.Operand {
	all := make([]kernel.Operand, len(list))
	for i, v := range list {
		all[i] = v
	}
	return all
}
