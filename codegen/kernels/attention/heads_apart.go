package attention

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
)

// apart reports whether the partners of an access's elements lie in two accesses: the half of what turns is no whole
// number of accesses, as in heads of 80 of which 18 turn.
func (h *headsGroup) apart() bool {
	return h.rope != nil && h.rope.Attrs.Str("kind") == "neox" && h.rope.Attrs.Int("n_rot")/2%h.vec != 0
}

// accessApart is access for heads that turn apart, or 0 if they do not turn so.
func (h *headsGroup) accessApart() int {
	if h.rope == nil || h.rope.Attrs.Str("kind") != "neox" {
		return 0
	}
	v := 2
	if slices.ContainsFunc(h.chains, (*headChain).inBlocks) {
		v = 4
	}
	if h.headDim%v != 0 {
		return 0
	}
	return v
}

// rotateApart is rotate for heads that turn apart: it loads every element's partner and angles by themselves.
func (k *headMaker) rotateApart(v kernel.Value, x *kernel.Buffer, from kernel.Value, gain *kernel.Buffer, scale kernel.Value, j kernel.Value) kernel.Value {
	b, nRot := k.b, k.rope.Attrs.Int("n_rot")
	half := nRot / 2
	head, row := b.Mul(from, k.vec), b.Mul(k.at, nRot)
	var out []kernel.Operand
	for e, own := range lane.Elements(b, v) {
		i := b.Add(b.Mul(j, k.vec), e)
		turns, low := b.Lt(i, nRot), b.Lt(i, half)
		partner := b.Select(turns, b.Select(low, b.Add(i, half), b.Sub(i, half)), 0)
		pair := b.Mul(b.Select(low, i, partner), 2)
		other := x.Load(kernel.F32, b.Add(head, partner))
		if scale != (kernel.Value{}) {
			other = b.Mul(other, scale)
			if gain != nil {
				other = b.Mul(other, gain.Load(kernel.F32, partner))
			}
		}
		cos, sin := k.cosSin.Load(kernel.F32, b.Add(row, pair)), k.cosSin.Load(kernel.F32, b.Add(b.Add(row, pair), 1))
		turned := b.Add(b.Mul(own, cos), b.Mul(b.Select(low, b.Neg(other), other), sin))
		out = append(out, b.Select(turns, turned, own))
	}
	return b.Vec(out...)
}
