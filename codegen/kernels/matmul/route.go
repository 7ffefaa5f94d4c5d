package matmul

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/ir"
)

// gating is how op route turns scores into weights.
type gating struct {
	kind  string // softmax, sigmoid or topk_softmax
	norm  bool
	scale float32
	each  bool // weights are multiplied by scales of the chosen
}

// minWeights bounds the sum that weights are divided by: the smallest normal f16.
const minWeights = float32(6.103515625e-05)

func gatingOf(op *ir.Op) gating {
	a := op.Attrs
	return gating{a.Str("gating"), a.Int("norm") != 0, float32(a.Float("scale")), len(op.Args) > 2}
}

func (g gating) key() string {
	key := g.kind
	if g.norm {
		key += "+norm"
	}
	if g.scale != 1 {
		key += fmt.Sprint("*", g.scale)
	}
	if g.each {
		key += "*each"
	}
	return key
}

// all reports whether the weights depend on scores that are not chosen.
func (g gating) all() bool { return g.kind == "softmax" }

// weights returns the weights of the chosen scores, in their order. row is the row
// that they were chosen from; it may be nil unless all.
func (g gating) weights(b *kernel.Builder, row *scoreRow, chosen []kernel.Value) []kernel.Value {
	w := make([]kernel.Value, len(chosen))
	switch g.kind {
	case "softmax":
		top, sum := row.softmax()
		for i, s := range chosen {
			w[i] = b.Div(b.Exp(b.Sub(s, top)), sum)
		}
	case "topk_softmax":
		top := chosen[0]
		for _, s := range chosen[1:] {
			top = b.Max(top, s)
		}
		for i, s := range chosen {
			w[i] = b.Exp(b.Sub(s, top))
		}
		sum := total(b, w)
		for i := range w {
			w[i] = b.Div(w[i], sum)
		}
	case "sigmoid":
		for i, s := range chosen {
			w[i] = lane.Logistic(b, b.F32(1), s)
		}
	}
	if g.norm {
		sum := b.Max(total(b, w), minWeights)
		for i := range w {
			w[i] = b.Div(w[i], sum)
		}
	}
	if g.scale != 1 {
		for i := range w {
			w[i] = b.Mul(w[i], g.scale)
		}
	}
	return w
}

// scaledBy returns weights times scales, or weights if there are no scales.
func scaledBy(b *kernel.Builder, weights, scales []kernel.Value) []kernel.Value {
	for i, s := range scales {
		weights[i] = b.Mul(weights[i], s)
	}
	return weights
}

// total returns the sum of a list, from left to right.
func total(b *kernel.Builder, list []kernel.Value) kernel.Value {
	sum := list[0]
	for _, v := range list[1:] {
		sum = b.Add(sum, v)
	}
	return sum
}

// softmax returns the largest score and the sum of exp(score - largest), in all
// lanes.
func (s *scoreRow) softmax() (top, sum kernel.Value) {
	b := s.b
	top = s.scores[0] // the lane's repeat others where there are none
	for _, x := range s.scores[1:] {
		top = b.Max(top, x)
	}
	top = b.SubgroupMax(top)
	list := make([]kernel.Value, len(s.scores))
	for i, x := range s.scores {
		list[i] = b.Select(s.exists(i), b.Exp(b.Sub(x, top)), 0.0)
	}
	return top, b.SubgroupAdd(total(b, list))
}
