package frontend

import (
	"fmt"
	"math"

	"github.com/zincc-dev/zincc/ir"
)

// latent is the mixer of deepseek2: attention whose keys and values come from one latent vector a position. The
// cache holds only that vector and the rotated part of the key (DeepSeek-AI 2024, arXiv 2405.04434). The matrices
// that make keys and values of it are applied to queries and results in their place, so that all heads attend to the
// same vectors: attention with one KV head.
type latent struct {
	query  int // width of the latent query; 0 for queries made of the residual stream
	width  int // of the latent vector
	plain  int // elements of a head's key without a position, and with one
	turned int
	value  int // of a head's value
	heads  int
	ids    *ir.Value // a matrix for every head
}

func readLatent(m *model) (mixer, error) {
	r := &metadata{f: m.f, prefix: m.arch + "."}
	a := &latent{
		query: r.count("attention.q_lora_rank"), width: r.int("attention.kv_lora_rank", 0),
		plain: r.int("attention.key_length_mla", 0), turned: m.rope.dims, value: r.int("attention.value_length_mla", 0),
		heads: m.attention[0].query,
	}
	a.plain -= a.turned
	const most = 1 << 16
	switch {
	case r.err != nil:
	case a.plain <= 0 || a.plain > most || a.width > most || a.value > most || a.query > most || m.headDim != a.width+a.turned:
		r.fail(fmt.Errorf("metadata %sattention: keys of %d, of which %d turn, do not fit a latent vector of %d in rows of %d", r.prefix, a.plain+a.turned, a.turned, a.width, m.headDim))
	case m.heat.scale != 0 && a.plain%2 != 0:
		r.fail(ir.Unsupported("metadata %sattention.temperature_scale: heads of which %d elements do not turn are not supported", r.prefix, a.plain))
	case a.heads > 1<<10:
		r.fail(ir.Unsupported("metadata %sattention.head_count: %d heads of latent attention are not supported", r.prefix, a.heads))
	}
	for _, h := range m.attention {
		if r.err == nil && (h.query != a.heads || h.kv != 1) {
			r.fail(ir.Unsupported("metadata %sattention: %d heads over %d KV heads of latent attention are not supported", r.prefix, h.query, h.kv))
		}
	}
	if m.scale == 0 {
		m.scale = m.rope.inScale() / math.Sqrt(float64(a.plain+a.turned))
	}
	a.ids = m.op("head_ids", ir.Attrs{{Name: "heads", Value: int64(a.heads)}}, m.pos)
	return a, r.err
}

func (a *latent) takes(int) bool { return true }

func (a *latent) build(l *layer, x *ir.Value) *ir.Value {
	h, blk, key, row := l.pre(x, l.row.norms.attn), l.blk, a.plain+a.turned, a.width+a.turned
	var q *ir.Value
	both := func() *ir.Value { return l.linear(h, blk+"attn_kv_a_mqa", l.embd, row) }
	var made *ir.Value // the latent vector, and the part of the key with a position
	if a.query > 0 {
		q = l.linear(h, blk+"attn_q_a", l.embd, a.query)
		made = both()
		q = l.linear(l.norm(q, blk+"attn_q_a_norm", a.query), blk+"attn_q_b", a.query, a.heads*key)
	} else {
		q = l.linear(h, blk+"attn_q", l.embd, a.heads*key)
		made = both()
	}
	plain := l.heated(l.cut(q, key, 0, a.plain), a.plain)
	vector := l.norm(l.cut(made, row, 0, a.width), blk+"attn_kv_a_norm", a.width)
	absorbed := a.each(l, plain, "attn_k_b", a.plain, a.width)
	turn := func(v *ir.Value, table *ir.Value) *ir.Value {
		return l.op("rope", ir.Attrs{
			{Name: "kind", Value: l.rope.kind}, {Name: "head_dim", Value: int64(a.turned)}, {Name: "n_rot", Value: int64(a.turned)},
		}, v, l.pos, table)
	}
	turnedQuery := turn(l.cut(q, key, a.plain, a.turned), l.query)
	turnedKey := turn(l.cut(made, row, a.width, a.turned), l.table)
	join := func(v, w *ir.Value, heads int) *ir.Value {
		return l.op("head_join", ir.Attrs{{Name: "heads", Value: int64(heads)}}, v, w)
	}
	q = join(absorbed, turnedQuery, a.heads)
	if l.err == nil && l.kv == ir.Q4_0 {
		l.err = ir.Unsupported("a KV cache of %s of latent attention, whose keys are values, too, is not supported", l.kv)
	}
	if l.err == nil && row%l.kv.Block() != 0 {
		l.err = ir.Unsupported("a KV cache of %s holds heads of whole blocks of %d, not of %d", l.kv, l.kv.Block(), row)
	}
	cache := l.cache(blk+"k", l.kv, row, 0)
	l.cached("kvwrite", nil, cache, join(vector, turnedKey, 1), l.pos, l.slot, cache)
	// Values are the first elements of what is cached; those of the sums behind them are left out.
	y := l.cached("attention", ir.Attrs{
		{Name: "head_dim", Value: int64(row)}, {Name: "heads", Value: int64(a.heads)}, {Name: "kv_heads", Value: int64(1)}, {Name: "scale", Value: l.scale},
	}, cache, q, cache, cache, l.pos, l.slot)
	y = a.each(l, l.cut(y, row, 0, a.width), "attn_v_b", a.width, a.value)
	return l.linear(y, blk+"attn_output", a.heads*a.value, l.embd)
}

// heated scales the parts of queries that do not turn by the temperature of their position, where there is one: by
// a rotation that turns nothing.
func (l *layer) heated(x *ir.Value, width int) *ir.Value {
	if l.heat.scale == 0 {
		return x
	}
	run := 2
	for width%(2*run) == 0 && run < 64 {
		run *= 2
	}
	const name = "rope_heat"
	table := l.p.Global(name)
	if table == nil {
		table = l.ropeTable(name, make([]float64, run/2), 1, l.heat.attrs()...)
	}
	return l.op("rope", ir.Attrs{{Name: "kind", Value: "norm"}, {Name: "head_dim", Value: int64(run)}, {Name: "n_rot", Value: int64(run)}}, x, l.pos, table)
}

// each applies to every head of x its matrix of the tensor of that name.
func (a *latent) each(l *layer, x *ir.Value, name string, in, out int) *ir.Value {
	return l.op("expert_linear", ir.Attrs{{Name: "first", Value: int64(0)}, {Name: "rows", Value: int64(out)}}, x, l.weight(l.blk+name+".weight", a.heads, out, in), a.ids)
}

// cut returns the elements from first on of every run of stride.
func (l *layer) cut(x *ir.Value, stride, first, width int) *ir.Value {
	if stride%width == 0 && first%width == 0 && stride/width <= ir.MaxHeadParts {
		return l.headSlice(x, width, stride/width, first/width)
	}
	return l.op("head_cut", ir.Attrs{{Name: "stride", Value: int64(stride)}, {Name: "first", Value: int64(first)}, {Name: "width", Value: int64(width)}}, x)
}
