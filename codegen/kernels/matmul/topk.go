package matmul

import (
	"fmt"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// scoreRow is a row of a router's scores in the lanes of a subgroup: each lane has
// perLane consecutive ones. All subgroups of a workgroup may hold the same row.
type scoreRow struct {
	b       *kernel.Builder
	first   kernel.Value   // index of the lane's first score
	experts int            // scores of the row
	full    bool           // every lane has as many of them
	scores  []kernel.Value // of the lane, f32; those beyond the row repeat others
}

// loadScores loads row r of the scores.
func loadScores(b *kernel.Builder, buf *kernel.Buffer, r kernel.Value, experts, wave int) *scoreRow {
	perLane := site.CeilDiv(experts, wave)
	vec := site.Widest(perLane)
	for experts%vec != 0 {
		vec /= 2
	}
	s := &scoreRow{b: b, first: b.Mul(b.SubgroupLane(), perLane), experts: experts, full: experts%wave == 0}
	accesses := experts / vec
	row, at := b.Mul(r, accesses), b.Div(s.first, vec)
	for i := range perLane / vec {
		v := buf.Load(kernel.F32.Vec(vec), b.Add(row, b.Min(b.Add(at, i), accesses-1)))
		s.scores = append(s.scores, lane.Elements(b, v)...)
	}
	return s
}

// byWeight reports whether experts are chosen by their weights, which may have a bias, instead of by their scores.
func byWeight(top *ir.Op) bool { return top.Attrs.Str("gating") != "" }

// weighed returns what experts are chosen by where that is their weights. The bias may be nil.
func (s *scoreRow) weighed(top *ir.Op, bias *kernel.Buffer) *scoreRow {
	out, b := *s, s.b
	g := gating{kind: top.Attrs.Str("gating"), scale: 1}
	out.scores = nil
	for i, p := range g.weights(b, s, s.scores) {
		if bias != nil {
			p = b.Add(p, bias.Load(kernel.F32, b.Min(b.Add(s.first, i), s.experts-1)))
		}
		out.scores = append(out.scores, p)
	}
	out.limitGroups(top.Attrs.Int("groups"), top.Attrs.Int("used_groups"))
	return &out
}

// limitGroups leaves the scores of the groups whose two largest have the largest sums, and makes others -Inf.
func (s *scoreRow) limitGroups(groups, used int) {
	if groups == 0 {
		return
	}
	b, n := s.b, s.experts/groups
	lowest := b.F32(float32(math.Inf(-1)))
	sums := make([]kernel.Value, groups) // the same in all lanes
	inside := func(i, g int) kernel.Value {
		at := b.Add(s.first, i)
		return b.And(s.exists(i), b.And(b.Ge(at, g*n), b.Lt(at, (g+1)*n)))
	}
	for g := range sums {
		best, second := lowest, lowest
		for i, x := range s.scores {
			x = b.Select(inside(i, g), x, lowest)
			second = b.Max(second, b.Min(best, x))
			best = b.Max(best, x)
		}
		most := b.SubgroupMax(best)
		// One lane has the largest: the first of those. Its second score comes next.
		holder := b.SubgroupMin(b.Select(b.Eq(best, most), b.SubgroupLane(), uint32(math.MaxInt32)))
		sums[g] = b.Add(most, b.SubgroupMax(b.Select(b.Eq(b.SubgroupLane(), holder), second, best)))
	}
	scores := make([]kernel.Value, len(s.scores))
	copy(scores, s.scores)
	for g, sum := range sums {
		better := b.U32(0)
		for h, other := range sums {
			ahead := b.Gt(other, sum)
			if h < g {
				ahead = b.Ge(other, sum)
			}
			if h != g {
				better = b.Add(better, b.Select(ahead, b.U32(1), 0))
			}
		}
		for i := range scores {
			scores[i] = b.Select(b.And(inside(i, g), b.Ge(better, used)), lowest, scores[i])
		}
	}
	s.scores = scores
}

// weighedKey tells kernels by the weights that experts are chosen by, if they are.
func weighedKey(top *ir.Op) string {
	if !byWeight(top) {
		return ""
	}
	key := " by " + top.Attrs.Str("gating")
	if len(top.Args) > 1 {
		key = " biased " + top.Attrs.Str("gating")
	}
	if n := top.Attrs.Int("groups"); n > 0 {
		key += fmt.Sprintf(" groups=%d/%d", top.Attrs.Int("used_groups"), n)
	}
	return key
}

// exists reports whether the lane's i-th score is one of the row.
func (s *scoreRow) exists(i int) kernel.Value { return s.b.Lt(s.b.Add(s.first, i), s.experts) }

// each emits count rounds, each of which finds the largest score that is left, of
// equal ones the first: body gets the round and the score's index, in all lanes.
// count is the same in all lanes and at most the number of scores, so that every
// index is another one of the row, whatever the scores are.
func (s *scoreRow) each(count kernel.Operand, body func(i, index kernel.Value)) {
	b := s.b
	keys := make([]*kernel.Var, len(s.scores))
	for i, x := range s.scores {
		keys[i] = b.Var(kernel.U32, b.Select(s.exists(i), orderedBits(b, x), 0))
	}
	b.For(0, count, 1, func(round kernel.Value) {
		top, at := s.largest(keys)
		most := b.SubgroupMax(top)
		index := b.SubgroupMin(b.Select(b.Eq(top, most), at, math.MaxInt32))
		for i, k := range keys {
			k.Set(b.Select(b.Eq(b.Add(s.first, i), index), 0, k.Get()))
		}
		body(round, index)
	})
}

// largest returns the largest key of the lane and its index, of equal ones the
// first. Its comparisons are a tree, for a shorter chain of them.
func (s *scoreRow) largest(keys []*kernel.Var) (top, at kernel.Value) {
	if len(keys) == 1 {
		return keys[0].Get(), s.first
	}
	half := &scoreRow{b: s.b, first: s.b.Add(s.first, len(keys)/2)}
	x, i := s.largest(keys[:len(keys)/2])
	y, j := half.largest(keys[len(keys)/2:])
	more := s.b.Gt(y, x)
	return s.b.Select(more, y, x), s.b.Select(more, j, i)
}

// orderedBits returns a U32 above 0 that orders as the floats do: both zeros are
// equal, a NaN is below all numbers.
func orderedBits(b *kernel.Builder, x kernel.Value) kernel.Value {
	bits := b.Bitcast(kernel.U32, b.Select(b.Eq(x, 0.0), 0.0, x))
	bits = b.Select(b.Ge(bits, uint32(1<<31)), b.Not(bits), b.Or(bits, uint32(1<<31)))
	return b.Select(b.IsNaN(x), 1, bits)
}

// slot returns the index of the score of rank i, i the same in all lanes.
func (s *scoreRow) slot(i kernel.Value) kernel.Value {
	found := s.b.Var(kernel.U32, 0)
	s.each(s.b.Add(i, 1), func(_, index kernel.Value) { found.Set(index) })
	return found.Get()
}

// rank returns how many experts come before that one: those with a larger score, of equal ones those before it.
func (s *scoreRow) rank(expert kernel.Value) kernel.Value {
	b, perLane := s.b, len(s.scores)
	own, scores := b.F32(0), slices.Clone(s.scores)
	for i, x := range scores {
		if !s.full {
			scores[i] = b.Select(s.exists(i), x, float32(math.NaN()))
		}
		own = b.Select(b.Eq(b.Mod(expert, perLane), i), x, own)
	}
	own = b.SubgroupShuffle(own, b.Div(expert, perLane))
	const one = 1 << 16 // what counts equal ones, above those that count larger ones
	count := b.U32(0)
	for _, x := range scores {
		count = b.Add(count, b.Select(b.Gt(x, own), b.U32(1), 0), b.Select(b.Eq(x, own), b.U32(one), 0))
	}
	before := b.Var(kernel.U32, b.SubgroupAdd(count))
	b.If(b.Or(b.Lt(before.Get(), one), b.Ge(before.Get(), 2*one)), func() { // others have that score, too, or it is a NaN
		count, key := b.U32(0), orderedBits(b, own)
		for i, x := range s.scores {
			other := b.Select(s.exists(i), orderedBits(b, x), 0)
			ahead := b.Or(b.Gt(other, key), b.And(b.Eq(other, key), b.Lt(b.Add(s.first, i), expert)))
			count = b.Add(count, b.Select(ahead, b.U32(1), 0))
		}
		before.Set(b.SubgroupAdd(count))
	})
	return b.And(before.Get(), one-1)
}
