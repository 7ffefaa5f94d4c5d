package verify

import (
	"math"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// nudge is how far noteScores moves elements of q, as a share: so much that the roundings of the oracle do not count,
// and so little that what follows is nearly a line.
const nudge = 1.0 / (1 << 12)

// noteScores keeps what errors of attention, and of what the group makes of it, are measured by beside the result's own
// size. A score is a sum of products of q and k and is rounded as they are, however small the sum is; its error is a
// share of the position's weight. So an error of the result has the size of scores times what positions add to the
// result, which with large scores is more than the result. To find it, the oracle computes the result again with each
// element of q a little more or less.
func (d *dispatch) noteScores(op *ir.Op) error {
	other := map[*ir.Value][]float32{} // operands
	if name := op.Kind.Name; name == "attention" || name == "attention_split" {
		other[op.Args[0]] = nudged(d.held(op.Args[0]))
	}
	for _, a := range op.Args {
		if x := d.nudged[a]; x != nil {
			other[a] = x
		}
	}
	if len(other) == 0 || op.Result == nil || op.Result.Type.DType == ir.I32 || len(op.Kind.Writes) > 0 {
		return nil
	}
	swap := func() {
		for v, x := range other {
			held := d.held(v)
			for i := range held {
				held[i], x[i] = x[i], held[i]
			}
		}
	}
	result := d.held(op.Result)
	first := slices.Clone(result)
	swap()
	err := d.machine.Again(d.fn, op)
	swap()
	again := slices.Clone(result)
	copy(result, first)
	if err != nil {
		return err
	}
	if d.products == nil {
		d.products = map[*ir.Value][]float32{}
	}
	if d.nudged == nil {
		d.nudged = map[*ir.Value][]float32{}
	}
	d.nudged[op.Result], d.products[op.Result] = again, moved(runs(op.Result), first, again, d.products[op.Result])
	return nil
}

// nudged returns x with each element a little more or less.
func nudged(x []float32) []float32 {
	x = slices.Clone(x)
	for i := range x {
		by := float32(nudge)
		if uint32(i)*0x9e3779b1>>31 == 1 { // as good as at random
			by = -by
		}
		x[i] += by * x[i]
	}
	return x
}

// moved returns how far elements have moved by a nudge of all: by run, since one may move little by chance, and least
// or more.
func moved(list []run, first, again, least []float32) []float32 {
	m := make([]float32, len(first))
	for at, i := 0, 0; at < len(m); i++ {
		end := min(len(m), at+list[i%len(list)].length)
		most := 0.0
		for j := at; j < end; j++ {
			most = max(most, math.Abs(float64(again[j]-first[j]))/nudge)
		}
		for ; at < end; at++ {
			m[at] = float32(most)
			if least != nil {
				m[at] = max(m[at], least[at])
			}
		}
	}
	return m
}
