package synth

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// What there is to say of a weight type stands here: which quantizations have it, and what its random blocks are.

// quants give a matrix its type by the name of the quantization. Those of several types
// follow llama-quantize: attn_v and ffn_down of some layers and the output projection get
// more bits. Rows that are no whole super-blocks get blocks of 32.
var quants = map[string]func(m *Model, name string, dims []int) ir.DType{
	"Q4_K_M": mixed(ir.Q4_K, ir.Q6_K),
	"Q5_K_M": mixed(ir.Q5_K, ir.Q6_K),
	"Q6_K":   mixed(ir.Q6_K, ir.Q6_K),
	"Q3_K_M": mixed(ir.Q3_K, ir.Q5_K),
	"Q2_K": byRole(ir.Q2_K, map[string]ir.DType{
		"output.weight": ir.Q6_K, "attn_v.weight": ir.Q4_K, "attn_output.weight": ir.Q3_K, "ffn_down": ir.Q3_K,
	}),
	"IQ4_XS": mixed(ir.IQ4_XS, ir.Q5_K),
	"Q4_0":   mixed(ir.Q4_0, ir.Q4_0),
	"Q4_1":   mixed(ir.Q4_1, ir.Q4_1),
	"Q5_0":   mixed(ir.Q5_0, ir.Q5_0),
	"Q5_1":   mixed(ir.Q5_1, ir.Q5_1),
	"IQ4_NL": mixed(ir.IQ4_NL, ir.IQ4_NL),
	"IQ1_S":  mixed(ir.IQ1_S, ir.IQ1_M),
	"IQ2_XS": mixed(ir.IQ2_XXS, ir.IQ2_XS),
	"IQ2_XXS": byRole(ir.IQ2_XXS, map[string]ir.DType{
		"output.weight": ir.Q5_K, "token_embd.weight": ir.Q2_K, "attn_v.weight": ir.Q4_K, "ffn_down": ir.IQ2_XXS, "first ffn_down": ir.Q2_K,
	}),
	"IQ3_XXS": mixed(ir.IQ3_XXS, ir.IQ3_S),
	"IQ3_S":   byRole(ir.IQ3_S, map[string]ir.DType{"output.weight": ir.Q6_K, "attn_v.weight": ir.Q4_K}),
	"IQ2_S":   mixed(ir.IQ2_S, ir.IQ3_S),
	"TQ1_0":   mixed(ir.TQ1_0, ir.TQ2_0),
	"Q1_0":    mixed(ir.Q1_0, ir.Q2_0),
	"NVFP4":   mixed(ir.NVFP4, ir.NVFP4),
	"Q8_0":    mixed(ir.Q8_0, ir.Q8_0),
	"F16":     mixed(ir.F16, ir.F16),
	"BF16":    mixed(ir.BF16, ir.BF16),
	"F32":     mixed(ir.F32, ir.F32),
	"EACH":    typeOfEach,
	// Experts in MXFP4, all else in Q8_0.
	"MXFP4": func(m *Model, name string, dims []int) ir.DType {
		if strings.Contains(name, "_exps") {
			return ir.MXFP4
		}
		return ir.Q8_0
	},
	// Experts in Q4_K_M, all else in Q8_0, as files of qwen35moe come.
	"UD-Q4_K_M": func(m *Model, name string, dims []int) ir.DType {
		switch {
		case strings.Contains(name, "down_exps"):
			return ir.Q5_K
		case strings.Contains(name, "_exps"), name == "token_embd.weight":
			return ir.Q4_K
		case name == "output.weight":
			return ir.Q6_K
		}
		return ir.Q8_0
	},
}

// Quants returns the names of all quantizations.
func Quants() []string { return slices.Sorted(maps.Keys(quants)) }

// mixed spends more bits on some matrices.
func mixed(most, more ir.DType) func(m *Model, name string, dims []int) ir.DType {
	return func(m *Model, name string, dims []int) ir.DType {
		t := most
		switch {
		case m.isOutput(name):
			if t = more; most.Block() == 256 {
				t = ir.Q6_K
			}
		case strings.HasSuffix(name, "attn_v.weight"), strings.Contains(name, "ffn_down"):
			if i, ok := layerOf(name); ok && moreBits(i, m.Layers) {
				t = more
			}
		}
		return fitting(t, dims)
	}
}

// byRole gives matrices of some names other types; "first ffn_down" is that of the first eighth of the layers.
// The types are for models with four or more heads of queries for each of keys.
func byRole(most ir.DType, roles map[string]ir.DType) func(m *Model, name string, dims []int) ir.DType {
	return func(m *Model, name string, dims []int) ir.DType {
		role := name
		switch i, ok := layerOf(name); {
		case m.isOutput(name):
			role = "output.weight"
		case ok && strings.Contains(name, "ffn_down"):
			if role = "ffn_down"; i < m.Layers/8 && roles["first ffn_down"] != 0 {
				role = "first ffn_down"
			}
		case ok:
			_, role, _ = strings.Cut(strings.TrimPrefix(name, "blk."), ".")
		}
		if t, ok := roles[role]; ok {
			return fitting(t, dims)
		}
		return fitting(most, dims)
	}
}

func (m *Model) isOutput(name string) bool {
	return name == "output.weight" || name == "token_embd.weight" && m.Tied
}

func layerOf(name string) (i int, ok bool) {
	_, err := fmt.Sscanf(name, "blk.%d.", &i)
	return i, err == nil
}

// fitting is the type for rows that are whole blocks of it: of super-blocks, that with blocks of 32 next in size.
func fitting(t ir.DType, dims []int) ir.DType {
	if dims[0]%t.Block() == 0 {
		return t
	}
	switch t {
	case ir.Q4_K:
		return ir.Q5_0
	case ir.Q5_K:
		return ir.Q5_1
	case ir.TQ1_0, ir.TQ2_0:
		return ir.Q4_0
	case ir.Q6_K, ir.Q1_0, ir.Q2_0, ir.NVFP4:
		return ir.Q8_0
	}
	return ir.IQ4_NL
}

// moreBits says which layers llama-quantize spends more bits on: the first and the last
// eighth, and every third between.
func moreBits(i, layers int) bool {
	return i < layers/8 || i >= 7*layers/8 || (i-layers/8)%3 == 2
}

// scales are where blocks have their f16 scale, and which ones keep their elements below about 4; and where they have
// that of what is added (of Q4_1 and Q5_1, added itself), which is so many times as large, so that elements are around
// 0.
var scales = map[ir.DType]struct {
	d         float64
	at, minAt int
	min       float64
}{
	ir.Q4_0: {d: .1}, ir.Q4_1: {d: .1, minAt: 2, min: -7.5}, ir.Q5_0: {d: .05}, ir.Q5_1: {d: .05, minAt: 2, min: -15.5},
	ir.Q8_0: {d: .01}, ir.Q2_K: {d: .03, at: 80, minAt: 82, min: 1.5}, ir.Q3_K: {d: .01, at: 108}, ir.Q4_K: {d: .002, minAt: 2, min: 7.5},
	ir.Q5_K: {d: .001, minAt: 2, min: 15.5}, ir.Q6_K: {d: .0005, at: 208}, ir.IQ4_NL: {d: .01}, ir.IQ4_XS: {d: .0005},
	ir.IQ1_S: {d: .1}, ir.IQ2_XXS: {d: .01}, ir.IQ2_XS: {d: .01}, ir.IQ2_S: {d: .01}, ir.IQ3_XXS: {d: .01},
	ir.IQ3_S: {d: .01}, ir.TQ1_0: {d: 1, at: 52}, ir.TQ2_0: {d: 1, at: 64}, ir.Q1_0: {d: 1}, ir.Q2_0: {d: 1},
}

// Blocks returns n random elements of a weight type, as a file has them: of a few units, times a power of two.
func Blocks(rng *rand.Rand, d ir.DType, n int64, power int) []byte {
	data := make([]byte, d.Bytes(n))
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	put16 := func(at int, x uint16) { data[at], data[at+1] = byte(x), byte(x>>8) }
	for b := 0; b < len(data); b += d.BlockBytes() {
		x := float32(math.Ldexp(rng.NormFloat64(), power))
		switch d {
		case ir.F32:
			bits := math.Float32bits(x)
			put16(b, uint16(bits))
			put16(b+2, uint16(bits>>16))
		case ir.F16:
			put16(b, gguf.F32ToF16(x))
		case ir.BF16:
			put16(b, uint16(math.Float32bits(x)>>16))
		case ir.MXFP4:
			data[b] = byte(124 + power + rng.IntN(3))
		case ir.NVFP4:
			for i := range 4 {
				data[b+i] = byte(0x28 + 8*max(power, -4) + rng.IntN(16)) // 1/4 to 1
			}
		case ir.IQ1_M: // a nibble each
			h := gguf.F32ToF16(float32(math.Ldexp(.1, power)))
			for i := range 4 {
				data[b+49+2*i] = data[b+49+2*i]&15 | byte(h>>(4*i)&15)<<4
			}
		default:
			s := scales[d]
			scale := math.Ldexp(s.d*(rng.Float64()+.5), power)
			put16(b+s.at, gguf.F32ToF16(float32(scale)))
			if s.min != 0 {
				put16(b+s.minAt, gguf.F32ToF16(float32(s.min*scale)))
			}
		}
	}
	return data
}
