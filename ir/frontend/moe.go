package frontend

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// expertParams are the hyperparameters of an FFN that is a mixture of experts.
type expertParams struct {
	count  int // 0 for a dense FFN
	used   int // experts chosen for a token
	ff     int // FFN width of an expert
	shared int // FFN width of the expert that every token uses, 0 for none
	scale  float64
}

func readExperts(r *metadata) expertParams {
	e := expertParams{
		count:  r.int("expert_count", 0),
		used:   r.int("expert_used_count", 0),
		ff:     r.count("expert_feed_forward_length"),
		shared: r.count("expert_shared_feed_forward_length"),
		scale:  r.float("expert_weights_scale", 0, 0, 1e6),
	}
	const softmax = 1 // the values of expert_gating_func; 0 is the architecture's own
	if g := r.count("expert_gating_func"); g > softmax {
		r.fail(ir.Unsupported("metadata %sexpert_gating_func: %d is not supported", r.prefix, g))
	}
	if r.err == nil && (e.used > e.count || e.count > 1<<16) {
		r.fail(fmt.Errorf("metadata %sexpert_used_count: %d of %d experts", r.prefix, e.used, e.count))
	}
	if r.err == nil && e.ff == 0 {
		e.ff = r.int("feed_forward_length", 0) / e.used
	}
	if e.scale == 0 {
		e.scale = 1
	}
	return e
}

// moe is the mixture of experts on the normed rows h: a softmax over all experts,
// of which the chosen ones' weights are brought to a sum of 1, plus the shared
// expert, if there is one, times a gate of its own.
func moe(m *model, h *ir.Value, blk string) *ir.Value {
	e := m.experts
	scores := m.linear(h, blk+"ffn_gate_inp", m.embd, e.count)
	var sharedGate *ir.Value
	if e.shared > 0 {
		// The file holds the one row as a vector.
		sharedGate = m.linear(h, blk+"ffn_gate_inp_shexp", m.embd, 1)
	}
	ids := m.op("topk", ir.Attrs{{Name: "k", Value: int64(e.used)}}, scores)
	act := m.swiglu(m.expertGateUp(h, ids, blk))
	var sharedAct *ir.Value
	if e.shared > 0 {
		gate := m.linear(h, blk+"ffn_gate_shexp", m.embd, e.shared)
		up := m.linear(h, blk+"ffn_up_shexp", m.embd, e.shared)
		sharedAct = m.swiglu(gate, up)
	}
	weights := m.op("route", ir.Attrs{
		{Name: "gating", Value: "softmax"}, {Name: "norm", Value: int64(1)}, {Name: "scale", Value: e.scale},
	}, scores, ids)
	down := m.expertLinear(act, m.weight(blk+"ffn_down_exps.weight", e.count, m.embd, e.ff), ids, 0, m.embd)
	y := m.op("expert_sum", nil, down, weights)
	if e.shared > 0 {
		d := m.linear(sharedAct, blk+"ffn_down_shexp", e.shared, m.embd)
		y = m.op("add", nil, y, m.op("gate_rows", nil, d, sharedGate))
	}
	return y
}

// expertGateUp returns the gate and up projections of the chosen experts, of two
// tensors or of one that has an expert's gate rows before its up rows.
func (m *model) expertGateUp(h, ids *ir.Value, blk string) (gate, up *ir.Value) {
	e := m.experts
	if w := m.optional(blk+"ffn_gate_up_exps.weight", e.count, 2*e.ff, m.embd); w != nil {
		return m.expertLinear(h, w, ids, 0, e.ff), m.expertLinear(h, w, ids, e.ff, e.ff)
	}
	gate = m.expertLinear(h, m.weight(blk+"ffn_gate_exps.weight", e.count, e.ff, m.embd), ids, 0, e.ff)
	return gate, m.expertLinear(h, m.weight(blk+"ffn_up_exps.weight", e.count, e.ff, m.embd), ids, 0, e.ff)
}

// expertLinear applies rows [first, first+rows) of every chosen expert's matrix.
func (m *model) expertLinear(x, w, ids *ir.Value, first, rows int) *ir.Value {
	return m.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "rows", Value: int64(rows)}}, x, w, ids)
}
