package frontend

import (
	"math"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// arch is one row of the architecture table: where the layers of an architecture depart
// from those of llama. What a file says itself, by a key or by having a tensor, is in no row:
// biases, a tied output projection, the experts' shared expert, a merged
// gate and up projection, factors on embeddings, residuals and logits.
type arch struct {
	name  string
	rope  string // kind of the pairs that rotate: norm or neox
	norms norms
	qk    qkNorm
	sinks bool   // attention has a sink for every head
	act   string // of the gated FFN; silu if empty
	moe   moe

	// The hyperparameters whose defaults are the architecture's own.
	embedScale func(width int) float64 // of embeddings
	softcap    float64                 // of the logits
	windows    windows
	ropeless   func(c *params, layer int) bool // layers without positions

	// mixer reads what some layers have in place of attention.
	mixer func(m *model) (mixer, error)
	// gated says that attn_q has a gate for every query, element by element.
	gated bool
}

var archs = []arch{
	{name: "llama", rope: "norm", norms: before},
	{name: "qwen2", rope: "neox", norms: before},
	{name: "qwen3", rope: "neox", norms: before, qk: eachHead},
	{name: "qwen3moe", rope: "neox", norms: before, qk: eachHead, moe: moe{gating: "softmax", norm: true}},
	{name: "qwen3next", rope: "neox", norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, moe: moe{gating: "softmax", norm: true}, mixer: deltaNet{headMap: "div", merged: true}.read},
	{name: "qwen35", rope: "neox", norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, mixer: deltaNet{headMap: "mod"}.read},
	{name: "qwen35moe", rope: "neox", norms: beforeAs("post_attention_norm"), qk: eachHead, gated: true, moe: moe{gating: "softmax", norm: true}, mixer: deltaNet{headMap: "mod"}.read},
	{name: "gemma3", rope: "neox", norms: around, qk: eachHead, act: "gelu", embedScale: root, windows: windows{period: 6, rope: ownRope}},
}

// norms are the norms of a layer by what its tensors are called; one that is not there is empty.
type norms struct {
	attn, postAttn string // before attention, and of its result
	ffn, postFFN   string
}

var (
	before = beforeAs("ffn_norm")
	around = norms{"attn_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm"}
)

// beforeAs has the norm before the FFN called so.
func beforeAs(ffn string) norms { return norms{attn: "attn_norm", ffn: ffn} }

// qkNorm says what queries and keys have an RMS norm over.
type qkNorm uint8

const (
	noNorm   qkNorm = iota
	eachHead        // each head, before the rotation
)

// windows says which layers attend to a window of positions where the file does not: with a
// period all but the last of as many, or all but the first.
type windows struct {
	period     int // 0: none, 1: no pattern
	denseFirst bool
	rope       windowRope
}

// windowRope is the rotation of layers that attend to a window.
type windowRope uint8

const (
	sameRope windowRope = iota
	ownRope             // a base of its own, 10000 if the file has none, and no scaling
	sameBase            // the base of other layers if the file has no other, and no scaling
)

func root(width int) float64 { return math.Sqrt(float64(width)) }

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
