package frontend

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// params are the hyperparameters that every family reads.
type params struct {
	arch      string
	layers    int // of the trunk: those that predict further tokens follow them
	embd      int
	vocab     int
	ctxTrain  int
	attention []headParams // per layer
	ff        []int        // FFN width, per layer; nil where all layers have experts
	experts   expertParams
	eps       float64
	scale     float64 // of attention scores; 0 for one over the root of a head's width
	headDim   int     // of layers that attend to all positions
	perLayer  int     // width of a token's embedding in each layer; 0 for none
	unturned  bool    // no layer rotates
	rope      ropeParams
	ropeSWA   ropeParams // of layers that attend to a window

	// Factors. The residual stream is held over the factor that what is added to it has, so
	// that nothing need be multiplied: its norms divide it out, with another eps.
	embedScale, logitScale float64
	streamEps              float64
	softcap                float64 // of the logits; 0 for none
	heat                   heat

	pooling pooling
}

// pooling is how a model that makes vectors has one of a text: the key pooling_type.
type pooling int

const (
	noPooling pooling = iota // of a model that predicts tokens
	poolMean
	poolFirst
	poolLast
	poolRank // scores of the last row, by a head that ranks
)

// pooling reads how rows become the vector of a text.
func (r *metadata) pooling() pooling {
	switch p := pooling(r.count("pooling_type")); p {
	case noPooling, poolMean, poolLast, poolRank:
		return p
	case poolFirst:
		r.fail(ir.Unsupported("metadata %spooling_type: %d, the first row, is not supported: behind causal attention it has seen one token", r.prefix, p))
	default:
		r.fail(ir.Unsupported("metadata %spooling_type: %d is not known", r.prefix, p))
	}
	return noPooling
}

// heat is the temperature of attention: queries at position p are multiplied by
// 1 + scale * ln(floor(p/length) + 1).
type heat struct{ scale, length float64 }

// attrs are those of a table that has it.
func (h heat) attrs() []ir.Attr {
	return []ir.Attr{{Name: "heat", Value: h.scale}, {Name: "length", Value: h.length}}
}

// metadata reads keys under the architecture's prefix and keeps the first error.
type metadata struct {
	f      *gguf.File
	prefix string
	err    error
}

func (r *metadata) int(key string, fallback int) int {
	v, ok, err := r.f.Uint(r.prefix + key)
	if err == nil && ok && (v == 0 || v > 1<<31-1) {
		err = fmt.Errorf("metadata %s%s: %d is out of range", r.prefix, key, v)
	}
	r.fail(err)
	if err == nil && !ok && fallback == 0 {
		r.fail(fmt.Errorf("metadata %s%s is missing", r.prefix, key))
	}
	if err != nil || !ok {
		return fallback
	}
	return int(v)
}

// count reads a number that may be 0 or missing, which is 0.
func (r *metadata) count(key string) int {
	v, _, err := r.f.Uint(r.prefix + key)
	if err == nil && v > 1<<31-1 {
		err = fmt.Errorf("metadata %s%s: %d is out of range", r.prefix, key, v)
	}
	r.fail(err)
	return int(v)
}

// float reads a number from lo to hi, which no NaN is.
func (r *metadata) float(key string, fallback, lo, hi float64) float64 {
	v, ok, err := r.f.Float(r.prefix + key)
	if err == nil && ok && !(lo <= v && v <= hi) {
		err = fmt.Errorf("metadata %s%s: %g is out of range, %g to %g", r.prefix, key, v, lo, hi)
	}
	r.fail(err)
	if err != nil || !ok {
		return fallback
	}
	return v
}

func (r *metadata) str(key, fallback string) string {
	v, ok, err := r.f.String(r.prefix + key)
	r.fail(err)
	if err != nil || !ok {
		return fallback
	}
	return v
}

// floats reads a list of finite numbers that may be missing, which is nil.
func (r *metadata) floats(key string) []float64 {
	v, _, err := r.f.Floats(r.prefix + key)
	r.fail(err)
	for i, x := range v {
		if !ir.Finite(x) {
			r.fail(fmt.Errorf("metadata %s%s: element %d is %g", r.prefix, key, i, x))
		}
	}
	return v
}

func (r *metadata) bool(key string, fallback bool) bool {
	v, ok, err := r.f.Bool(r.prefix + key)
	r.fail(err)
	if err != nil || !ok {
		return fallback
	}
	return v
}

// bools reads a list of bools with one entry per layer; nil where the value is none.
func (r *metadata) bools(key string, layers int) []bool {
	v, _ := r.f.Value(r.prefix + key)
	list, ok := v.([]bool)
	if ok && len(list) < layers {
		r.fail(fmt.Errorf("metadata %s%s: %d entries for %d layers", r.prefix, key, len(list), layers))
		return nil
	}
	return list
}

// perLayer reads a scalar or a list with one entry per layer, each at least that.
func (r *metadata) perLayer(key string, layers, least int, fallback []int) []int {
	v, ok, err := r.f.Ints(r.prefix + key)
	r.fail(err)
	switch {
	case err != nil:
		return nil
	case !ok && fallback == nil:
		r.fail(fmt.Errorf("metadata %s%s is missing", r.prefix, key))
		return nil
	case !ok:
		return fallback
	case len(v) != 1 && len(v) < layers:
		r.fail(fmt.Errorf("metadata %s%s: %d entries for %d layers", r.prefix, key, len(v), layers))
		return nil
	}
	list := make([]int, layers)
	for i := range list {
		n := v[0]
		if len(v) > 1 {
			n = v[i]
		}
		if n < int64(least) || n > 1<<24 {
			r.fail(fmt.Errorf("metadata %s%s: %d is out of range", r.prefix, key, n))
			return nil
		}
		list[i] = int(n)
	}
	return list
}

func (r *metadata) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// trunk is the number of layers without those at the end of the list that predict
// further tokens (multi-token prediction), which block_count includes.
func (r *metadata) trunk() int {
	blocks, extra := r.int("block_count", 0), r.count("nextn_predict_layers")
	if r.err == nil && (blocks > 1<<12 || extra >= blocks) {
		r.fail(fmt.Errorf("metadata %sblock_count: %d is out of range", r.prefix, blocks))
	}
	return blocks - extra
}

func readParams(f *gguf.File, a *arch) (*params, error) {
	r := &metadata{f: f, prefix: a.name + "."}
	c := &params{arch: a.name}
	c.layers = r.trunk()
	c.embd = r.int("embedding_length", 0)
	c.ctxTrain = r.int("context_length", 0)
	if r.err != nil {
		return nil, r.err
	}
	readWidths(r, c, a)
	readHeads(r, c, a)
	if r.err != nil {
		return nil, r.err
	}
	c.eps = r.float("attention.layer_norm_rms_epsilon", 0, 0, 1)
	if r.err == nil && float32(c.eps) == 0 {
		r.fail(fmt.Errorf("metadata %sattention.layer_norm_rms_epsilon is missing or not positive", r.prefix))
	}
	readFactors(r, c, a)
	c.unturned = !r.bool("rope.scaling.finetuned", true)
	c.rope = readRope(r, c.headDim, c.ctxTrain)
	// Files of nemotron_h, which does not rotate, have the width over the number of heads here.
	if d := c.rope.dims; (d%2 != 0 || d > c.headDim) && !c.ropeless(a) {
		r.fail(fmt.Errorf("metadata %srope.dimension_count: %d does not fit heads of %d", r.prefix, d, c.headDim))
	}
	c.rope.latent, c.rope.level = a.latent, a.levelYarn
	c.rope.turn(r, a)
	c.ropeSWA = readRopeSWA(r, c, a.windows.rope)
	if a.temperature {
		c.heat = heat{r.float("attention.temperature_scale", 0, 0, 1e6), r.float("attention.temperature_length", c.rope.ctxOrig, 1, 1<<40)}
		if c.heat.scale != 0 && r.err == nil && c.rope.dims != c.attention[0].dim && !a.latent {
			r.fail(ir.Unsupported("metadata %sattention.temperature_scale: queries of which %d of %d dims rotate are not supported", r.prefix, c.rope.dims, c.attention[0].dim))
		}
	}
	c.pooling = r.pooling()
	if !r.bool("attention.causal", true) {
		r.fail(ir.Unsupported("metadata %sattention.causal: models whose rows see later rows are not supported", r.prefix))
	}
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		c.vocab = int(t.Shape[1])
	}
	return c, r.err
}

// ropeless reports whether no layer rotates.
func (c *params) ropeless(a *arch) bool {
	for i := range c.layers {
		if a.ropeless == nil || !a.ropeless(c, i) {
			return false
		}
	}
	return true
}

// readWidths reads the widths of FFNs, dense or of experts.
func readWidths(r *metadata, c *params, a *arch) {
	n, row, least := r.count("expert_count"), a.moe, 1
	if a.onePart {
		least = 0
	}
	switch {
	case row.gating == "" && n > 0:
		r.fail(ir.Unsupported("metadata %sexpert_count: mixture-of-experts %s models are not supported", r.prefix, c.arch))
	case row.gating != "" && (n > 0 || !row.optional):
		c.experts = readExperts(r, row)
	}
	if c.experts.count == 0 {
		c.ff = r.perLayer("feed_forward_length", c.layers, least, nil)
	} else if _, ok := r.f.Value(r.prefix + "feed_forward_length"); ok || a.onePart { // which says what layers hold
		c.ff = r.perLayer("feed_forward_length", c.layers, 0, nil)
	}
}

// readHeads reads the heads of every layer and the window that it attends to.
func readHeads(r *metadata, c *params, a *arch) {
	heads := r.perLayer("attention.head_count", c.layers, 1, nil)
	least := 1
	if a.headless {
		least = 0
	}
	kv := r.perLayer("attention.head_count_kv", c.layers, least, heads)
	if r.err != nil {
		return
	}
	dim := r.int("attention.key_length", c.embd/heads[0])
	if v := r.int("attention.value_length", dim); r.err == nil && v != dim && !a.latent {
		r.fail(ir.Unsupported("metadata %sattention.value_length: %d differs from the key length %d", r.prefix, v, dim))
	}
	if r.err == nil && dim > 1<<16 {
		r.fail(fmt.Errorf("metadata %sattention.key_length: %d is out of range", r.prefix, dim))
	}
	for i := range c.layers {
		if r.err == nil && kv[i] > 0 && heads[i]%kv[i] != 0 {
			r.fail(fmt.Errorf("metadata: layer %d: %d query heads over %d KV heads", i, heads[i], kv[i]))
		}
		c.attention = append(c.attention, headParams{query: heads[i], kv: kv[i], dim: dim, cache: i})
	}
	c.headDim = dim
	readWindows(r, c, a.windows)
	if a.windows.rope == ownRope {
		readNarrowHeads(r, c)
	}
}

// readNarrowHeads reads how wide the heads of layers with a window are, and which layers at the
// end attend to the caches of the last that are their like and have some.
func readNarrowHeads(r *metadata, c *params) {
	narrow := r.int("attention.key_length_swa", c.headDim)
	if v := r.int("attention.value_length_swa", narrow); r.err == nil && (v != narrow || narrow > 1<<16) {
		r.fail(ir.Unsupported("metadata %sattention.value_length_swa: %d beside a key length of %d is not supported", r.prefix, v, narrow))
	}
	shared := r.count("attention.shared_kv_layers")
	if r.err == nil && shared > 0 && shared > c.layers-2 {
		r.fail(fmt.Errorf("metadata %sattention.shared_kv_layers: %d of %d layers", r.prefix, shared, c.layers))
	}
	if r.err != nil {
		return
	}
	for i := range c.attention {
		h := &c.attention[i]
		if h.window > 0 {
			h.dim = narrow
		}
		own := c.layers - shared
		if i < own {
			continue
		}
		if h.cache = own - 1; h.window > 0 {
			h.cache = own - 2
		}
		if of := c.attention[h.cache]; of.dim != h.dim || of.kv != h.kv || of.window != h.window {
			r.fail(fmt.Errorf("metadata %sattention.shared_kv_layers: layer %d does not fit the caches of layer %d", r.prefix, i, h.cache))
		}
	}
}

// readWindows reads which layers attend to a window of positions, and how many it has. The
// pattern is a list, or says by a period which layers do not, or is the architecture's own.
func readWindows(r *metadata, c *params, row windows) {
	if row.period == 0 && !row.all {
		return
	}
	const key = "attention.sliding_window"
	size := r.count(key)
	if size > ir.MaxCtx {
		r.fail(fmt.Errorf("metadata %s%s: %d is out of range", r.prefix, key, size))
	}
	if size == 0 || r.err != nil {
		return
	}
	list := r.bools(key+"_pattern", c.layers)
	period := row.period
	if list == nil {
		period = r.int(key+"_pattern", max(1, period))
	}
	for i := range c.attention {
		dense := !row.all && i%period == period-1
		if list != nil {
			dense = !list[i]
		}
		if !dense {
			c.attention[i].window = size
		}
	}
}

// readFactors reads the factors on embeddings, scores, what is added to the residual stream,
// and logits.
func readFactors(r *metadata, c *params, a *arch) {
	c.scale = r.float("attention.scale", 0, 0, 1e6)
	c.embedScale, c.streamEps, c.logitScale = 1, c.eps, 1
	if a.embedScale != nil {
		c.embedScale = a.embedScale(c.embd)
	}
	if a.scale != nil && c.scale == 0 && r.err == nil {
		c.scale = a.scale(c)
	}
	c.softcap = r.float("final_logit_softcapping", a.softcap, 0, 1e6)
	c.perLayer = r.count("embedding_length_per_layer_input")
	if r.err == nil && c.perLayer > 1<<16 {
		r.fail(fmt.Errorf("metadata %sembedding_length_per_layer_input: %d is out of range", r.prefix, c.perLayer))
	}
	if a.factors == unscaled {
		return
	}
	const least, most = 1e-6, 1e6
	if a.factors == logits {
		c.logitScale = r.float("logit_scale", 1, least, most)
		return
	}
	residual := r.float("residual_scale", 1, least, most)
	c.embedScale = r.float("embedding_scale", 1, least, most) / residual
	c.streamEps = c.eps / (residual * residual)
	c.logitScale = 1 / r.float("logit_scale", 1, least, most)
}
