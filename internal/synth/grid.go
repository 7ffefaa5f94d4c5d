package synth

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// Grid are shapes to tune a device with, so that sites of models that nobody tuned have one like them that was
// measured: widths from 1,024 to 8,192 and experts of several sizes. Each layer has a type of its own, or
// grid-4096-11008:TYPE mixes them. They are no published shapes; those are left to measure what the grid is worth.
var Grid = []Shape{
	dense(1024, 8, 2, 4096), dense(1536, 12, 2, 8960), dense(2048, 16, 4, 6144), dense(2560, 24, 8, 9216), dense(3072, 24, 8, 8192), dense(3584, 28, 4, 18944),
	dense(4096, 32, 8, 11008), dense(4096, 32, 8, 16384), dense(5120, 40, 10, 13824), dense(5120, 32, 8, 18432), dense(6144, 48, 8, 16384), dense(8192, 64, 8, 28672),
	ofExperts(2048, Experts{Count: 64, Used: 6, FF: 1024}), ofExperts(3072, Experts{Count: 32, Used: 4, FF: 2560}), ofExperts(4096, Experts{Count: 64, Used: 8, FF: 1536}),
}

func dense(embd, heads, kv, ff int) Shape {
	return Shape{Name: fmt.Sprintf("grid-%d-%d", embd, ff), Arch: "qwen3", Quant: "EACH", Layers: len(each), Embd: embd, FF: ff, Vocab: 128256, Ctx: 40960,
		Heads: heads, KVHeads: kv, HeadDim: 128, RopeBase: 1e6}
}

func ofExperts(embd int, e Experts) Shape {
	s := dense(embd, embd/128, 4, 0)
	s.Name, s.Arch, s.Experts = fmt.Sprintf("grid-%d-experts-%d", embd, e.FF), "qwen3moe", e
	return s
}

// each is the type of all matrices of a layer, by its number.
var each = []ir.DType{ir.Q4_K, ir.Q6_K, ir.Q8_0, ir.Q5_K, ir.Q4_0, ir.IQ4_XS, ir.Q2_K, ir.IQ3_S}

// typeOfEach is the quantization EACH.
func typeOfEach(m *Model, name string, dims []int) ir.DType {
	if i, ok := layerOf(name); ok {
		return fitting(each[i%len(each)], dims)
	}
	return fitting(ir.Q6_K, dims)
}
