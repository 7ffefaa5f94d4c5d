package frontend

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// params are the hyperparameters that every family reads.
type params struct {
	arch     string
	layers   int // of the trunk: those that predict further tokens follow them
	embd     int
	vocab    int
	ctxTrain int
	heads    []int // query heads, per layer
	kvHeads  []int // KV heads, per layer
	ff       []int // FFN width, per layer; nil with experts
	experts  expertParams
	headDim  int
	eps      float64
	scale    float64 // of attention scores
	rope     ropeParams
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

// perLayer reads a scalar or a list with one entry per layer.
func (r *metadata) perLayer(key string, layers int, fallback []int) []int {
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
		if n <= 0 || n > 1<<24 {
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

func readParams(f *gguf.File, a arch) (*params, error) {
	r := &metadata{f: f, prefix: a.name + "."}
	c := &params{arch: a.name}
	c.layers = r.trunk()
	c.embd = r.int("embedding_length", 0)
	c.ctxTrain = r.int("context_length", 0)
	if r.err != nil {
		return nil, r.err
	}
	if a.experts {
		c.experts = readExperts(r)
	} else {
		if r.count("expert_count") > 0 {
			r.fail(ir.Unsupported("metadata %sexpert_count: mixture-of-experts %s models are not supported", r.prefix, a.name))
		}
		c.ff = r.perLayer("feed_forward_length", c.layers, nil)
	}
	c.heads = r.perLayer("attention.head_count", c.layers, nil)
	c.kvHeads = r.perLayer("attention.head_count_kv", c.layers, c.heads)
	if r.err != nil {
		return nil, r.err
	}
	for i := range c.heads {
		if c.heads[i]%c.kvHeads[i] != 0 {
			return nil, fmt.Errorf("metadata: layer %d: %d query heads over %d KV heads", i, c.heads[i], c.kvHeads[i])
		}
	}
	c.headDim = r.int("attention.key_length", c.embd/c.heads[0])
	if v := r.int("attention.value_length", c.headDim); r.err == nil && v != c.headDim {
		return nil, ir.Unsupported("metadata %sattention.value_length: %d differs from the key length %d", r.prefix, v, c.headDim)
	}
	if r.err == nil && c.headDim > 1<<16 {
		r.fail(fmt.Errorf("metadata %sattention.key_length: %d is out of range", r.prefix, c.headDim))
	}
	c.eps = r.float("attention.layer_norm_rms_epsilon", 0, 0, 1)
	if r.err == nil && float32(c.eps) == 0 {
		r.fail(fmt.Errorf("metadata %sattention.layer_norm_rms_epsilon is missing or not positive", r.prefix))
	}
	c.scale = r.float("attention.scale", 0, 0, 1e6)
	c.rope = readRope(r, c)
	if t, ok := f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 {
		c.vocab = int(t.Shape[1])
	}
	return c, r.err
}
