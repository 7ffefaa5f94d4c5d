package frontend

import (
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// Only gemma4 has experts beside a dense FFN, embeddings of their own for every layer, and a
// factor on a layer's result.

// besideDense is the FFN of a layer that has both, of x. The router has a norm of its own, whose
// weight is the router's scale; scores are over the root of the width.
func (l *layer) besideDense(x *ir.Value) *ir.Value {
	dense := l.norm(l.dense(l.pre(x, l.row.norms.ffn)), l.blk+"post_ffw_norm_1", l.embd)
	attrs := ir.Attrs{{Name: "eps", Value: l.eps}, {Name: "group", Value: int64(l.embd)}}
	scores := l.linear(l.op("rmsnorm", attrs, x, l.weight(l.blk+"ffn_gate_inp.scale", l.embd)), l.blk+"ffn_gate_inp", l.embd, l.experts.count)
	scores = l.op("scale", ir.Attrs{{Name: "factor", Value: 1 / math.Sqrt(float64(l.embd))}}, scores)
	routed := l.norm(l.routed(l.pre(x, "pre_ffw_norm_2"), scores), l.blk+"post_ffw_norm_2", l.embd)
	return l.op("add", nil, routed, dense)
}

// layerInputs returns, for every layer beside each other, what its embedding of a token and a
// projection of the embedding x add up to; nil if layers have none.
//
// The projection is divided by the root of the width and normed. That is a norm of the undivided
// projection, with a larger eps. The sum is divided by the root of 2, for which the norm in finish takes a larger eps.
func (m *model) layerInputs(x *ir.Value) *ir.Value {
	if m.perLayer == 0 {
		return nil
	}
	width := m.perLayer * m.layers
	own := m.op("embed", ir.Attrs{{Name: "scale", Value: math.Sqrt(float64(m.perLayer))}}, m.token, m.weight("per_layer_token_embd.weight", m.vocab, width))
	projected := m.linear(x, "per_layer_model_proj", m.embd, width)
	return m.op("add", nil, own, m.rmsnorm(projected, "per_layer_proj_norm", m.perLayer, m.eps*float64(m.embd)))
}

// finish adds what a layer makes of its input, and multiplies all by the layer's factor.
func (l *layer) finish(x, inputs *ir.Value) *ir.Value {
	if inputs != nil {
		gate := l.linear(x, l.blk+"inp_gate", l.embd, l.perLayer)
		y := l.linear(l.glu(gate, l.slice(inputs, l.i*l.perLayer, l.perLayer)), l.blk+"proj", l.perLayer, l.embd)
		x = l.op("add", nil, l.rmsnorm(y, l.blk+"post_norm", l.embd, 2*l.eps), x)
	}
	if by := l.optional(l.blk+"layer_output_scale.weight", 1); by != nil {
		x = l.op("scale", ir.Attrs{{Name: "factor", Value: 1.0}}, x, by)
	}
	return x
}
