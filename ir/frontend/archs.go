package frontend

import (
	"math"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// arch is one row of the architecture table: where the layers of an architecture depart
// from those of llama. No row has what a file says itself, by a key or by having a tensor:
// biases, a tied output projection, the experts' shared expert, a merged
// gate and up projection, factors on embeddings, residuals and logits.
type arch struct {
	name      string
	rope      string // kind of the pairs that rotate: norm or neox
	streams   streams
	norms     norms
	qk        qkNorm
	valueNorm bool   // values have a norm without weight over each head
	sinks     bool   // attention has a sink for every head
	act       string // of the gated FFN; silu if empty
	moe       moe

	// The hyperparameters whose defaults are the architecture's own.
	embedScale  func(width int) float64 // of embeddings
	scale       func(c *params) float64 // of attention scores
	softcap     float64                 // of the logits
	factors     factors
	temperature bool // queries are scaled by their position
	windows     windows
	ropeless    func(c *params, layer int) bool // layers without positions

	lastNorm string // of the residual stream; output_norm if empty
	headless bool   // layers without KV heads have a mixer
	onePart  bool   // a layer is a mixer, attention or an FFN: the latter if feed_forward_length is above 0
	latent   bool   // keys and values are made of one vector a position, see mixer latent
	// levelYarn says that YaRN with a multiplier changes nothing but the scale of scores.
	levelYarn bool

	// mixer reads what some layers have in place of attention.
	mixer func(m *model) (mixer, error)
	// gated says that attn_q has a gate for every query, element by element; gateBeside, that attn_gate makes it.
	gated, gateBeside bool

	embedNorm bool    // embeddings have a norm without weight
	postEps   float64 // of the norms behind parts of a layer, where another than of others
}

var archs = []arch{
	{name: "llama", rope: "norm", norms: before, moe: moe{gating: "softmax", norm: true, optional: true, whole: true}}, // with experts: Mixtral
	{name: "qwen2", rope: "neox", norms: before},
	{name: "qwen3", rope: "neox", norms: before, qk: eachHead},
	{name: "qwen3moe", rope: "neox", norms: before, qk: eachHead, moe: moe{gating: "softmax", norm: true}},
	{name: "qwen2moe", rope: "neox", norms: before, moe: moe{gating: "softmax"}},
	{name: "qwen2vl", rope: "neox", streams: inRuns, norms: before},
	{name: "qwen3vl", rope: "neox", streams: interleaved, norms: before, qk: eachHead},
	{name: "qwen3vlmoe", rope: "neox", streams: interleaved, norms: before, qk: eachHead, moe: moe{gating: "softmax", norm: true}},
	{name: "qwen3next", rope: "neox", norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, moe: moe{gating: "softmax", norm: true}, mixer: deltaNet{headMap: "div", merged: true}.read},
	{name: "qwen35", rope: "neox", streams: interleaved, norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, mixer: deltaNet{headMap: "mod"}.read},
	{name: "qwen35moe", rope: "neox", streams: interleaved, norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, moe: moe{gating: "softmax", norm: true}, mixer: deltaNet{headMap: "mod"}.read},
	{name: "gemma3", rope: "neox", norms: around, qk: eachHead, act: "gelu", embedScale: root, scale: gemma3Scale, windows: windows{period: 6, rope: ownRope}},
	{name: "gemma4", rope: "neox", norms: around, qk: eachHead, valueNorm: true, act: "gelu", embedScale: root, scale: one, softcap: 30,
		windows: windows{period: 6, rope: ownRope}, moe: moe{gating: "softmax", norm: true, optional: true, beside: true}},
	{name: "gpt-oss", rope: "neox", norms: beforeAs("post_attention_norm"), sinks: true, act: "swiglu_oai", moe: moe{gating: "topk_softmax"}, windows: windows{period: 2}},
	{name: "granite", rope: "norm", norms: before, factors: divided, moe: moe{gating: "softmax", norm: true, optional: true, whole: true}},
	{name: "granitemoe", rope: "norm", norms: before, factors: divided, moe: moe{gating: "softmax", norm: true, optional: true, whole: true}},
	{name: "granitehybrid", rope: "norm", norms: before, factors: divided, ropeless: asFiled, mixer: readMamba, headless: true, moe: moe{gating: "softmax", norm: true, optional: true, whole: true}},
	{name: "nemotron_h", rope: "neox", norms: beforeAs("attn_norm"), act: ungated, ropeless: always, mixer: readMamba, headless: true, onePart: true},
	{name: "nemotron_h_moe", rope: "neox", norms: beforeAs("attn_norm"), act: ungated, ropeless: always, mixer: readMamba, headless: true, onePart: true, moe: moe{gating: "sigmoid", optional: true}},
	{name: "arcee", rope: "norm", norms: before, act: ungated},
	{name: "mistral3", rope: "norm", norms: before, temperature: true, moe: moe{gating: "softmax", norm: true, optional: true, whole: true}},
	{name: "muse-glimmer", rope: "norm", norms: around, qk: eachHead, gateBeside: true, embedNorm: true, postEps: 1e-8, softcap: 30, factors: logits,
		windows: windows{period: 4, rope: sameBase}, ropeless: wideLayers},
	{name: "phi3", rope: "neox", norms: before},
	{name: "glm4", rope: "norm", streams: inRuns, norms: around},
	{name: "glm4moe", rope: "neox", streams: inRuns, norms: beforeAs("post_attention_norm"), qk: eachHeadIfAny, moe: moe{gating: "sigmoid", norm: true}},
	{name: "smollm3", rope: "norm", norms: before, ropeless: func(_ *params, i int) bool { return (i+1)%4 == 0 }},
	{name: "seed_oss", rope: "neox", norms: beforeAs("post_attention_norm")},
	{name: "olmo2", rope: "neox", norms: behind, qk: wholeRow, windows: windows{period: 4, rope: sameBase}},
	{name: "ernie4_5", rope: "norm", norms: before},
	{name: "ernie4_5-moe", rope: "norm", norms: before, moe: moe{gating: "softmax", norm: true}},
	{name: "hunyuan-dense", rope: "neox", norms: before, qk: behindRope},
	{name: "hunyuan-moe", rope: "neox", norms: before, qk: behindRope, moe: moe{gating: "softmax", norm: true}},
	{name: "exaone4", rope: "neox", norms: behind, qk: eachHead, windows: windows{period: 4}, ropeless: wideLayers},
	{name: "lfm2", rope: "neox", norms: before, qk: eachHead, lastNorm: "token_embd_norm", windows: windows{all: true}, mixer: readShortConv, headless: true},
	{name: "lfm2moe", rope: "neox", norms: before, qk: eachHead, lastNorm: "token_embd_norm", windows: windows{all: true}, mixer: readShortConv, headless: true, moe: moe{gating: "sigmoid", norm: true}},
	{name: "deepseek2", rope: "norm", norms: before, temperature: true, latent: true, levelYarn: true, mixer: readLatent, moe: moe{gating: "softmax", optional: true, gatingOf: flashGating}},
	{name: "mistral4", rope: "norm", norms: before, temperature: true, latent: true, mixer: readLatent, moe: moe{gating: "softmax", optional: true}},
	{name: "minimax-m2", rope: "neox", norms: before, qk: wholeRow, moe: moe{gating: "sigmoid", norm: true}},
}

// norms are the norms of a layer by what its tensors are called; one that is not there is empty.
type norms struct {
	attn, postAttn string // before attention, and of its result
	ffn, postFFN   string
}

var (
	before = beforeAs("ffn_norm")
	around = norms{"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}
	behind = norms{postAttn: "post_attention_norm", postFFN: "post_ffw_norm"}
)

// beforeAs has the norm before the FFN called so.
func beforeAs(ffn string) norms { return norms{attn: "attn_norm", ffn: ffn} }

// qkNorm says what queries and keys have an RMS norm over.
type qkNorm uint8

const (
	noNorm        qkNorm = iota
	eachHead             // each head, before the rotation
	eachHeadIfAny        // the same, in files that have it
	behindRope           // each head, behind the rotation
	wholeRow             // all heads together, before the rotation
)

// streams says which pairs rotate by which of a token's positions in a model that is also given images, if its file has
// rope.dimension_sections; see ropeTable.
type streams uint8

const (
	oneStream   streams = iota
	inRuns              // a run of pairs for each
	interleaved         // by turns
)

// factors says what becomes of the keys embedding_scale, residual_scale and logit_scale.
type factors uint8

const (
	unscaled factors = iota
	divided          // logits are divided by theirs
	logits           // logits are multiplied by theirs; there are no others
)

// windows says which layers attend to a window of positions where the file does not: with a
// period all but the last of as many.
type windows struct {
	period int  // 0: none, 1: no pattern
	all    bool // all layers, if the file has a window
	rope   windowRope
}

// windowRope is the rotation of layers that attend to a window.
type windowRope uint8

const (
	sameRope windowRope = iota
	ownRope             // a base of its own, 10000 if the file has none, and no scaling
	sameBase            // the base of other layers if the file has no other, and no scaling
)

func root(width int) float64 { return math.Sqrt(float64(width)) }

func one(*params) float64 { return 1 }

// gemma3Scale is that of one head's width but for the model of 62 layers, whose heads are
// narrower than its width over their number.
func gemma3Scale(c *params) float64 {
	if c.layers == 62 {
		return 1 / math.Sqrt(float64(c.embd)/float64(c.attention[0].query))
	}
	return 0
}

// always has no layer rotate, asFiled none if the file says so.
func always(*params, int) bool { return true }

func asFiled(c *params, _ int) bool { return c.unturned }

// wideLayers are those that attend to all positions where others attend to a window.
func wideLayers(c *params, layer int) bool {
	return c.attention[layer].window == 0 && slices.ContainsFunc(c.attention, func(h headParams) bool { return h.window > 0 })
}

// flashGating is that of early files of GLM-4.7-Flash, which do not say it: they are told by their sizes.
func flashGating(r *metadata, usual string) string {
	blocks := r.count("block_count")
	if t, ok := r.f.Tensor("token_embd.weight"); ok && len(t.Shape) == 2 && t.Shape[1] == 154880 && (blocks == 47 || blocks == 48) {
		return "sigmoid"
	}
	return usual
}

// Archs lists the supported values of general.architecture.
func Archs() []string {
	var names []string
	for _, a := range archs {
		names = append(names, a.name)
	}
	return names
}

func archOf(f *gguf.File) (*arch, error) {
	name, _, err := f.String("general.architecture")
	if err != nil {
		return nil, err
	}
	for i := range archs {
		if archs[i].name == name {
			return &archs[i], nil
		}
	}
	return nil, ir.Unsupported("architecture %q is not supported (known: %s)", name, strings.Join(Archs(), ", "))
}
