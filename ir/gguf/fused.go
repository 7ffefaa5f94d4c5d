package gguf

import (
	"slices"
	"strings"
)

// fused are the architectures whose files have one matrix for several projections of the same input.
var fused = []string{"phi3", "glm4"}

// splitFused shows such matrices as those of other architectures: attn_qkv as attn_q, attn_k and
// attn_v, and an ffn_up of two heights without an ffn_gate as ffn_gate and ffn_up. A matrix that is
// not of that shape stays what it is.
func (f *File) splitFused() {
	arch, _, _ := f.String("general.architecture")
	if !slices.Contains(fused, arch) {
		return
	}
	count := func(key string, fallback uint64) int64 {
		v, ok, err := f.Uint(arch + "." + key)
		if err != nil || v > 1<<24 {
			return 0
		}
		if !ok {
			v = fallback
		}
		return int64(v)
	}
	heads := count("attention.head_count", 0)
	if heads == 0 {
		return
	}
	kv := count("attention.head_count_kv", uint64(heads))
	dim := count("attention.key_length", uint64(count("embedding_length", 0)/heads))
	ff := count("feed_forward_length", 0)
	var tensors []Tensor
	for _, t := range f.Tensors {
		tensors = append(tensors, f.parts(t, "attn_qkv", []string{"attn_q", "attn_k", "attn_v"}, []int64{heads * dim, kv * dim, kv * dim})...)
	}
	f.replace(tensors)
	tensors = nil
	for _, t := range f.Tensors {
		tensors = append(tensors, f.parts(t, "ffn_up", []string{"ffn_gate", "ffn_up"}, []int64{ff, ff})...)
	}
	f.replace(tensors)
}

// parts returns t, a matrix blk.N.NAME.weight of so many rows, as matrices of these names, unless the
// file has the first of them.
func (f *File) parts(t Tensor, name string, names []string, rows []int64) []Tensor {
	blk, ok := strings.CutSuffix(t.Name, "."+name+".weight")
	_, taken := f.index[blk+"."+names[0]+".weight"]
	all := int64(0)
	for _, n := range rows {
		all += n
	}
	if !ok || taken || all == 0 || slices.Contains(rows, 0) || len(t.Shape) != 2 || t.Shape[1] != all {
		return []Tensor{t}
	}
	var list []Tensor
	row := t.Size / all
	for i, n := range rows {
		part := t
		part.Name, part.Shape, part.Size = blk+"."+names[i]+".weight", []int64{t.Shape[0], n}, n*row
		list = append(list, part)
		t.Offset += n * row
	}
	return list
}
