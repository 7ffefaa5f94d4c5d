package frontend

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// lower builds the graph of a model from its row of the table.
func (m *model) lower() error {
	var other mixer
	if m.row.mixer != nil {
		var err error
		if other, err = m.row.mixer(m); err != nil {
			return err
		}
	}
	tables := m.ropeTables()
	x := m.embed()
	inputs := m.layerInputs(x)
	caches := make([][2]*ir.Value, m.layers)
	for i := range m.layers {
		l := layer{model: m, i: i, blk: fmt.Sprintf("blk.%d.", i), heads: m.attention[i], table: tables[i].keys, query: tables[i].queries, caches: caches}
		mix := l.attend
		if other != nil && other.takes(i) {
			mix = func(x *ir.Value) *ir.Value { return other.build(&l, x) }
		}
		if m.row.onePart {
			if m.ff[i] > 0 {
				mix = l.ffn
			}
			x = l.add(x, mix(x), "")
			continue
		}
		x = l.add(x, mix(x), m.row.norms.postAttn)
		x = l.add(x, l.ffn(x), m.row.norms.postFFN)
		x = l.finish(x, inputs)
	}
	m.head(x)
	return m.err
}

// mixer is what some layers have in place of attention.
type mixer interface {
	// takes reports whether layer i has it.
	takes(i int) bool
	// build returns what the layer adds to x.
	build(l *layer, x *ir.Value) *ir.Value
}

// layer builds one layer of the trunk.
type layer struct {
	*model
	i     int
	blk   string // prefix of its tensors
	heads headParams
	table *ir.Value // of its rotation
	query *ir.Value // the same of queries, where another

	caches [][2]*ir.Value // of keys and values, by layer
}

// headParams are the heads of a layer's attention.
type headParams struct {
	query, kv int
	dim       int
	window    int // positions that a row sees; 0 for all
	cache     int // the layer whose caches it attends to, an earlier one or itself
}

// pre is the norm of that name before a part of the layer; x itself if there is none.
func (l *layer) pre(x *ir.Value, name string) *ir.Value {
	if name == "" {
		return x
	}
	return l.rmsnorm(x, l.blk+name, l.embd, l.streamEps)
}

// add adds what a part of the layer has made of x, behind the norm of that name.
func (l *layer) add(x, y *ir.Value, post string) *ir.Value {
	if post != "" {
		eps := l.eps
		if l.row.postEps > 0 {
			eps = l.row.postEps
		}
		y = l.rmsnorm(y, l.blk+post, l.embd, eps)
	}
	return l.op("add", nil, y, x)
}

// attend is the attention of a layer with its projections.
func (l *layer) attend(x *ir.Value) *ir.Value {
	n, blk := l.heads, l.blk
	h := l.pre(x, l.row.norms.attn)
	parts := 1
	if l.row.gated {
		parts = 2 // per head: query, gate
	}
	both := l.linear(h, blk+"attn_q", l.embd, parts*n.query*n.dim)
	var k, v *ir.Value // none if the layer attends to another's
	if n.cache == l.i {
		k = l.linear(h, blk+"attn_k", l.embd, n.kv*n.dim)
		if v = k; !l.row.valueNorm || l.has("attn_v.weight") {
			v = l.linear(h, blk+"attn_v", l.embd, n.kv*n.dim)
		}
	}
	q, gate := both, (*ir.Value)(nil)
	if l.row.gateBeside {
		gate = l.linear(h, blk+"attn_gate", l.embd, n.query*n.dim)
	}
	if l.row.gated {
		q = l.headSlice(both, n.dim, parts, 0)
	}
	switch {
	case l.row.qk == eachHead, l.row.qk == eachHeadIfAny && l.has("attn_q_norm.weight"):
		q = l.norm(q, blk+"attn_q_norm", n.dim)
		if k != nil {
			k = l.norm(k, blk+"attn_k_norm", n.dim)
		}
	case l.row.qk == wholeRow:
		q = l.norm(q, blk+"attn_q_norm", n.query*n.dim)
		k = l.norm(k, blk+"attn_k_norm", n.kv*n.dim)
	}
	if l.row.valueNorm && v != nil {
		v = l.unit(v, n.dim)
	}
	if l.row.gated {
		gate = l.headSlice(both, n.dim, parts, 1)
	}
	a := l.attention(q, k, v)
	if gate != nil {
		a = l.op("gate", nil, a, gate)
	}
	return l.linear(a, blk+"attn_output", n.query*n.dim, l.embd)
}

// attention rotates q and k, appends k and v to the layer's KV cache and lets every
// query head attend.
func (l *layer) attention(q, k, v *ir.Value) *ir.Value {
	n := l.heads
	q = l.rotate(q, l.query)
	if k != nil {
		k = l.rotate(k, l.table)
	}
	if l.row.qk == behindRope {
		q = l.norm(q, l.blk+"attn_q_norm", n.dim)
		k = l.norm(k, l.blk+"attn_k_norm", n.dim)
	}
	q, k = l.spread(q), l.spread(k)
	if l.err == nil && n.dim%l.kv.Block() != 0 {
		l.err = ir.Unsupported("a KV cache of %s holds heads of whole blocks of %d, not of %d", l.kv, l.kv.Block(), n.dim)
	}
	if n.cache == l.i {
		both := [2]*ir.Value{l.cache(l.blk+"k", l.kv, n.kv*n.dim, n.window), l.cache(l.blk+"v", l.kv, n.kv*n.dim, n.window)}
		l.cached("kvwrite", nil, both[0], k, l.pos, l.slot, both[0])
		l.cached("kvwrite", nil, both[1], v, l.pos, l.slot, both[1])
		l.caches[l.i] = both
	}
	kc, vc := l.caches[n.cache][0], l.caches[n.cache][1]
	scale := l.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(n.dim))
	}
	attrs := ir.Attrs{
		{Name: "head_dim", Value: int64(n.dim)}, {Name: "heads", Value: int64(n.query)},
		{Name: "kv_heads", Value: int64(n.kv)}, {Name: "scale", Value: scale},
	}
	if n.window > 0 {
		attrs = append(attrs, ir.Attr{Name: "window", Value: int64(n.window)})
	}
	args := []*ir.Value{q, kc, vc, l.pos, l.slot}
	if l.row.sinks {
		args = append(args, l.weight(l.blk+"attn_sinks.weight", n.query))
	}
	return l.cached("attention", attrs, kc, args...)
}

// rotate applies the rotary position embedding of a table to every head of x.
func (l *layer) rotate(x, table *ir.Value) *ir.Value {
	if l.err != nil {
		return nil
	}
	return l.op("rope", ir.Attrs{
		{Name: "kind", Value: l.rope.kind}, {Name: "head_dim", Value: int64(l.heads.dim)}, {Name: "n_rot", Value: int64(table.Type.Last())},
	}, x, l.pos, table)
}

// spread returns queries or keys as a cache wants them: of few bits, turned so that no element stands out of its block.
// It turns blocks and not whole heads, so that eight lanes do it, as many as round one.
func (l *layer) spread(x *ir.Value) *ir.Value {
	if l.kv != ir.Q4_0 || x == nil {
		return x
	}
	return l.op("hadamard", ir.Attrs{{Name: "group", Value: int64(l.kv.Block())}}, x)
}

// ffn is the FFN of a layer, dense or, where the file has a router, of experts.
func (l *layer) ffn(x *ir.Value) *ir.Value {
	experts := l.experts.count > 0 && (l.ff == nil || l.has("ffn_gate_inp.weight"))
	if experts && l.row.moe.beside {
		return l.besideDense(x)
	}
	h := l.pre(x, l.row.norms.ffn)
	if experts {
		return l.mixture(h)
	}
	return l.dense(h)
}

// dense is the dense FFN on the normed rows h.
func (l *layer) dense(h *ir.Value) *ir.Value {
	return l.linear(l.activated(h, "", l.ff[l.i]), l.blk+"ffn_down", l.ff[l.i], l.embd)
}

// activated is what the down projection of an FFN on the rows h reads, of tensors whose names end so.
func (l *layer) activated(h *ir.Value, suffix string, width int) *ir.Value {
	if l.row.act == ungated {
		return l.op(ungated, nil, l.linear(h, l.blk+"ffn_up"+suffix, l.embd, width))
	}
	gate := l.linear(h, l.blk+"ffn_gate"+suffix, l.embd, width)
	return l.glu(gate, l.linear(h, l.blk+"ffn_up"+suffix, l.embd, width))
}

// ungated is the activation of FFNs without a gate (So et al. 2021, arXiv 2109.08668).
const ungated = "relu2"

// has reports whether the file has this tensor of the layer.
func (l *layer) has(name string) bool {
	_, ok := l.f.Tensor(l.blk + name)
	return ok
}

// glu is the gated activation of the architecture (Shazeer 2020, arXiv 2002.05202).
func (m *model) glu(gate, up *ir.Value) *ir.Value {
	act := m.row.act
	if act == "" {
		act = "silu"
	}
	return m.op("glu", ir.Attrs{{Name: "act", Value: act}}, gate, up)
}

func (m *model) slice(x *ir.Value, first, width int) *ir.Value {
	return m.op("slice", ir.Attrs{{Name: "first", Value: int64(first)}, {Name: "width", Value: int64(width)}}, x)
}

func (m *model) headSlice(x *ir.Value, dim, parts, part int) *ir.Value {
	return m.op("head_slice", ir.Attrs{{Name: "head_dim", Value: int64(dim)}, {Name: "parts", Value: int64(parts)}, {Name: "part", Value: int64(part)}}, x)
}
