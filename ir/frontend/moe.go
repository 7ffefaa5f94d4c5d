package frontend

import (
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// expertParams are the hyperparameters of an FFN that is a mixture of experts.
type expertParams struct {
	count  int // 0 for a dense FFN
	used   int // experts chosen for a token
	ff     int // FFN width of an expert
	shared int // FFN width of the expert that every token uses, 0 for none
	latent int // width of what the chosen experts read and make, 0 for that of the residual stream
	// Experts are chosen in the usedGroups best groups alone, if there are groups.
	groups, usedGroups int
	gating             string
	norm               bool // the chosen experts' weights are brought to a sum of 1
	scale              float64
}

// moe is what an architecture's FFN of experts does where the file does not say it. An
// architecture without gating has no experts.
type moe struct {
	gating   string // see op route
	norm     bool
	optional bool // files without experts have dense layers
	beside   bool // experts are beside a dense FFN, see besideDense
	// gatingOf is the gating of a file that does not say it, if that is not always the same.
	gatingOf func(r *metadata, usual string) string
	whole    bool // feed_forward_length is the width of an expert, not of those of a token together
}

// gatings are the values of expert_gating_func from 1 on; 0 is the architecture's own.
var gatings = []string{"softmax", "sigmoid", "topk_softmax"}

func readExperts(r *metadata, row moe) expertParams {
	e := expertParams{
		count:  r.int("expert_count", 0),
		used:   r.int("expert_used_count", 0),
		ff:     r.count("expert_feed_forward_length"),
		shared: r.count("expert_shared_feed_forward_length"),
		latent: r.count("moe_latent_size"),
		gating: row.gating,
		norm:   r.bool("expert_weights_norm", row.norm),
		scale:  r.float("expert_weights_scale", 0, 0, 1e6),
	}
	if g := r.count("expert_gating_func"); g > len(gatings) {
		r.fail(ir.Unsupported("metadata %sexpert_gating_func: %d is not supported", r.prefix, g))
	} else if g > 0 {
		e.gating = gatings[g-1]
	} else if row.gatingOf != nil {
		e.gating = row.gatingOf(r, row.gating)
	}
	if n := r.count("expert_group_count"); n > 1 {
		e.groups, e.usedGroups = n, r.int("expert_group_used_count", 0)
	}
	e.check(r, row)
	e.derive(r, row)
	return e
}

// check fails where numbers of experts do not fit each other.
func (e *expertParams) check(r *metadata, row moe) {
	if n := e.groups; r.err == nil && n > 0 && (n > 64 || e.usedGroups > n || e.count%n != 0 || e.count/n < 2 || e.used > e.count/n*e.usedGroups) {
		r.fail(fmt.Errorf("metadata %sexpert_group_used_count: %d of %d groups of %d experts, of which %d are chosen", r.prefix, e.usedGroups, n, e.count, e.used))
	}
	if e.latent > 0 && r.err == nil && (e.latent > 1<<16 || row.gating == "") {
		r.fail(fmt.Errorf("metadata %smoe_latent_size: %d is out of range", r.prefix, e.latent))
	}
	if r.err == nil && (e.used > e.count || e.count > 1<<16) {
		r.fail(fmt.Errorf("metadata %sexpert_used_count: %d of %d experts", r.prefix, e.used, e.count))
	}
}

// derive sets what a file leaves to be found.
func (e *expertParams) derive(r *metadata, row moe) {
	if r.err == nil && e.ff == 0 {
		e.ff = r.int("feed_forward_length", 0)
		if !row.whole {
			e.ff /= e.used
		}
	}
	if n := r.count("expert_shared_count"); e.shared == 0 && n > 0 && n <= 1<<10 {
		e.shared = n * e.ff
	}
	if e.shared == 0 { // early files of Qwen1.5-MoE do not say it
		e.shared = r.rowsOf("ffn_up_shexp.weight")
	}
	if e.scale == 0 {
		e.scale = 1
	}
}

// rowsOf is how many rows a matrix of this name has in the first layer that has one; 0 if none has.
func (r *metadata) rowsOf(name string) int {
	for _, t := range r.f.Tensors {
		if strings.HasPrefix(t.Name, "blk.") && strings.HasSuffix(t.Name, "."+name) && len(t.Shape) == 2 && t.Shape[1] <= 1<<24 {
			return int(t.Shape[1])
		}
	}
	return 0
}

// mixture is the mixture of experts on the normed rows h, plus the shared expert, if there
// is one, which may have a gate of its own.
func (l *layer) mixture(h *ir.Value) *ir.Value {
	return l.routed(h, l.linear(h, l.blk+"ffn_gate_inp", l.embd, l.experts.count))
}

// routed is the mixture of experts on the normed rows h, chosen by these scores.
func (l *layer) routed(h, scores *ir.Value) *ir.Value {
	m, e, blk := l.model, l.experts, l.blk
	var sharedGate *ir.Value
	if e.shared > 0 && l.has("ffn_gate_inp_shexp.weight") {
		// The file holds the one row as a vector.
		sharedGate = m.linear(h, blk+"ffn_gate_inp_shexp", m.embd, 1)
	}
	ids := l.choose(scores)
	in, width := h, m.embd
	if e.latent > 0 {
		width = e.latent
		in = m.linear(h, blk+"ffn_latent_down", m.embd, width)
	}
	var act *ir.Value
	if l.row.act == ungated {
		up := l.expertLinear(in, m.weight(blk+"ffn_up_exps.weight", e.count, e.ff, width), "ffn_up_exps", ids, 0, e.ff)
		act = m.op(ungated, nil, up)
	} else {
		act = m.glu(l.expertGateUp(in, ids))
	}
	var sharedAct *ir.Value
	if e.shared > 0 {
		sharedAct = l.activated(h, "_shexp", e.shared)
	}
	weights := l.route(scores, ids)
	down := l.expertLinear(act, m.weight(blk+"ffn_down_exps.weight", e.count, width, e.ff), "ffn_down_exps", ids, 0, width)
	y := m.op("expert_sum", nil, down, weights)
	if e.latent > 0 {
		y = m.linear(y, blk+"ffn_latent_up", width, m.embd)
	}
	if e.shared > 0 {
		d := m.linear(sharedAct, blk+"ffn_down_shexp", e.shared, m.embd)
		if sharedGate != nil {
			d = m.op("gate_rows", nil, d, sharedGate)
		}
		y = m.op("add", nil, y, d)
	}
	return y
}

// choose returns the experts of every row. A bias of the file counts for the choice alone. Groups of experts are chosen
// first, by the sum of the two largest weights of each (DeepSeek-V3, arXiv 2412.19437, has a bias there; others have
// none).
func (l *layer) choose(scores *ir.Value) *ir.Value {
	args, attrs := []*ir.Value{scores}, ir.Attrs{{Name: "k", Value: int64(l.experts.used)}}
	e := l.experts
	bias := l.optional(l.blk+"exp_probs_b.bias", e.count)
	if bias != nil || e.groups > 0 {
		if e.gating == "topk_softmax" && l.err == nil {
			l.err = ir.Unsupported("metadata %s.expert_gating_func: %s with groups of experts or a bias of the choice is not supported", l.arch, e.gating)
		}
		attrs = append(attrs, ir.Attr{Name: "gating", Value: e.gating})
	}
	if bias != nil {
		args = append(args, bias)
	}
	if e.groups > 0 {
		attrs = append(attrs, ir.Attr{Name: "groups", Value: int64(e.groups)}, ir.Attr{Name: "used_groups", Value: int64(e.usedGroups)})
	}
	return l.op("topk", attrs, args...)
}

// route returns the weights of the chosen experts. A scale of each expert's result is part
// of its weight.
func (l *layer) route(scores, ids *ir.Value) *ir.Value {
	e, norm := l.experts, 0
	if e.norm {
		norm = 1
	}
	args := []*ir.Value{scores, ids}
	if scales := l.optional(l.blk+"ffn_down_exps.scale", e.count); scales != nil {
		if l.has("ffn_down_exps.bias") && l.err == nil {
			l.err = ir.Unsupported("tensor %q beside %sffn_down_exps.bias is not supported", l.blk+"ffn_down_exps.scale", l.blk)
		}
		args = append(args, scales)
	}
	return l.op("route", ir.Attrs{
		{Name: "gating", Value: e.gating}, {Name: "norm", Value: int64(norm)}, {Name: "scale", Value: e.scale},
	}, args...)
}

// expertGateUp returns the gate and up projections of the chosen experts, of two
// tensors or of one that has an expert's gate rows before its up rows.
func (l *layer) expertGateUp(h, ids *ir.Value) (gate, up *ir.Value) {
	m, e, blk := l.model, l.experts, l.blk
	if w := m.optional(blk+"ffn_gate_up_exps.weight", e.count, 2*e.ff, m.embd); w != nil {
		both := func(first int) *ir.Value {
			return l.expertScale(l.expertLinear(h, w, "", ids, first, e.ff), "ffn_gate_up_exps", ids)
		}
		return both(0), both(e.ff)
	}
	gate = l.expertLinear(h, m.weight(blk+"ffn_gate_exps.weight", e.count, e.ff, m.embd), "ffn_gate_exps", ids, 0, e.ff)
	return gate, l.expertLinear(h, m.weight(blk+"ffn_up_exps.weight", e.count, e.ff, m.embd), "ffn_up_exps", ids, 0, e.ff)
}

// expertLinear applies rows [first, first+rows) of every chosen expert's matrix, and adds the
// scale or the bias of that name if the file has one. The scale of the down projection is in the experts' weights.
func (l *layer) expertLinear(x, w *ir.Value, name string, ids *ir.Value, first, rows int) *ir.Value {
	y := l.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "rows", Value: int64(rows)}}, x, w, ids)
	if name == "" {
		return y
	}
	if name != "ffn_down_exps" {
		y = l.expertScale(y, name, ids)
	}
	if !l.has(name + ".bias") {
		return y
	}
	return l.op("expert_bias", nil, y, l.weight(l.blk+name+".bias", l.experts.count, rows), ids)
}

// expertScale multiplies what the chosen experts' matrices of a name make by their numbers, which files have beside
// matrices of NVFP4.
func (l *layer) expertScale(y *ir.Value, name string, ids *ir.Value) *ir.Value {
	scales := l.optional(l.blk+name+".scale", l.experts.count)
	if scales == nil {
		return y
	}
	return l.op("expert_scale", nil, y, scales, ids)
}
