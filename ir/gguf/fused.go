package gguf

import (
	"slices"
	"strconv"
	"strings"
)

// gateBehindUp are the architectures whose files have one matrix for the gate and up projections.
var gateBehindUp = []string{"phi3", "glm4"}

// splitFused shows matrices that make several projections of one input as those of other files: attn_qkv as attn_q,
// attn_k and attn_v, with its bias, and an ffn_up of two heights without an ffn_gate as ffn_gate and ffn_up. A tensor
// that is not of that shape stays what it is.
func (f *File) splitFused() {
	arch, _, _ := f.String("general.architecture")
	heads, kv := f.counts(arch+".attention.head_count"), f.counts(arch+".attention.head_count_kv")
	if kv == nil {
		kv = heads
	}
	if len(heads) == 0 || len(kv) == 0 || heads[0] == 0 {
		return
	}
	count := func(key string, fallback int64) int64 {
		if v := f.counts(arch + "." + key); len(v) == 1 {
			return v[0]
		}
		return fallback
	}
	dim := count("attention.key_length", count("embedding_length", 0)/heads[0])
	ff := count("feed_forward_length", 0)
	var tensors []Tensor
	for _, t := range f.Tensors {
		i, _ := t.layer()
		q, k := heads[min(i, len(heads)-1)]*dim, kv[min(i, len(kv)-1)]*dim
		if n := len(t.Shape); n > 0 && t.Shape[n-1] == 2*(q+k) && k > 0 {
			q *= 2 // queries with gates
		}
		tensors = append(tensors, f.parts(t, "attn_qkv", []string{"attn_q", "attn_k", "attn_v"}, []int64{q, k, k})...)
	}
	f.replace(tensors)
	if !slices.Contains(gateBehindUp, arch) {
		return
	}
	tensors = nil
	for _, t := range f.Tensors {
		tensors = append(tensors, f.parts(t, "ffn_up", []string{"ffn_gate", "ffn_up"}, []int64{ff, ff})...)
	}
	f.replace(tensors)
}

// counts reads a number or a list of them, one per layer; nil if there is none or one is out of range.
func (f *File) counts(key string) []int64 {
	v, _, err := f.Ints(key)
	if err != nil || slices.ContainsFunc(v, func(n int64) bool { return n < 0 || n > 1<<24 }) {
		return nil
	}
	return v
}

// layer is the number of the layer that t belongs to, if any.
func (t Tensor) layer() (int, bool) {
	rest, ok := strings.CutPrefix(t.Name, "blk.")
	number, _, _ := strings.Cut(rest, ".")
	i, err := strconv.Atoi(number)
	return max(0, i), ok && err == nil
}

// parts returns t, a tensor blk.N.NAME of so many rows or elements, as tensors of these names, unless the
// file has the first of them, or the layer has a convolution: then attn_qkv is what that reads.
func (f *File) parts(t Tensor, name string, names []string, rows []int64) []Tensor {
	blk, kind := "", ".weight"
	blk, ok := strings.CutSuffix(t.Name, "."+name+kind)
	if !ok {
		kind = ".bias"
		blk, ok = strings.CutSuffix(t.Name, "."+name+kind)
	}
	_, taken := f.index[blk+"."+names[0]+kind]
	_, convolved := f.index[blk+".ssm_conv1d.weight"]
	all := int64(0)
	for _, n := range rows {
		all += n
	}
	dims := 2
	if kind == ".bias" {
		dims = 1
	}
	if !ok || taken || convolved || all == 0 || slices.Contains(rows, 0) || len(t.Shape) != dims || t.Shape[dims-1] != all {
		return []Tensor{t}
	}
	var list []Tensor
	row := t.Size / all
	for i, n := range rows {
		part := t
		part.Name, part.Shape, part.Size = blk+"."+names[i]+kind, append(slices.Clone(t.Shape[:dims-1]), n), n*row
		list = append(list, part)
		t.Offset += n * row
	}
	return list
}
