package gguf

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// TestSplitLegacy has 2 key heads of 2 rows and 6 value heads: groups of q 2, k 2, v 6,
// z 6 rows. Every row is two bytes that tell its number.
func TestSplitLegacy(t *testing.T) {
	meta := func(arch string, dim uint32) []KV {
		return []KV{{"general.architecture", arch}, {"qwen3next.ssm.group_count", uint32(2)}, {"qwen3next.ssm.time_step_rank", uint32(6)}, {"qwen3next.ssm.state_size", dim}}
	}
	var data []byte
	for i := range byte(32) {
		data = append(data, i, i)
	}
	in := TensorData{"blk.3.ssm_in.weight", ir.I8, []int64{2, 32}, data}
	open := func(meta []KV, tensors ...TensorData) *File {
		path := filepath.Join(t.TempDir(), "model.gguf")
		write(t, path, meta, tensors...)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := open(meta("qwen3next", 2), bytesTensor("a", 1), in, bytesTensor("b", 2))
	for name, want := range map[string][]byte{
		"a":                      {1},
		"blk.3.attn_qkv.weight":  {0, 0, 1, 1, 16, 16, 17, 17, 2, 2, 3, 3, 18, 18, 19, 19, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 20, 20, 21, 21, 22, 22, 23, 23, 24, 24, 25, 25},
		"blk.3.attn_gate.weight": {10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15, 26, 26, 27, 27, 28, 28, 29, 29, 30, 30, 31, 31},
		"b":                      {2},
	} {
		v, ok := f.Tensor(name)
		if !ok || !bytes.Equal(f.Data(v), want) || v.Size != int64(len(want)) || v.Elements() != v.Size {
			t.Errorf("%s: %+v, %d", name, v, f.Data(v))
		}
	}
	if _, ok := f.Tensor(in.Name); ok || len(f.Tensors) != 4 {
		t.Errorf("tensors %+v", f.Tensors)
	}
	// What is not such a file stays as it is.
	for _, f := range []*File{
		open(meta("qwen35", 2), in),
		open(meta("qwen3next", 4), in),
		open(meta("qwen3next", 0), in),
		open(meta("qwen3next", 1<<31), in),
		open(meta("qwen3next", 2)[:2], in),
		open(meta("qwen3next", 2), in, bytesTensor("blk.3.attn_gate.weight", 1)),
	} {
		v, ok := f.Tensor(in.Name)
		if !ok || !bytes.Equal(f.Data(v), data) {
			t.Errorf("%s was split: %+v", in.Name, f.Tensors)
		}
	}
}

// TestSplitFused has 2 query heads and a KV head of 2 rows, and an FFN of 3.
func TestSplitFused(t *testing.T) {
	meta := func(arch string, heads uint32) []KV {
		return []KV{{"general.architecture", arch}, {"phi3.attention.head_count", heads}, {"phi3.attention.head_count_kv", uint32(1)},
			{"phi3.embedding_length", uint32(4)}, {"phi3.feed_forward_length", uint32(3)}}
	}
	rows := func(name string, n int64) TensorData {
		var data []byte
		for i := range byte(n) {
			data = append(data, i, i)
		}
		return TensorData{name, ir.I8, []int64{2, n}, data}
	}
	open := func(meta []KV, tensors ...TensorData) *File {
		path := filepath.Join(t.TempDir(), "model.gguf")
		write(t, path, meta, tensors...)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	qkv, up := rows("blk.3.attn_qkv.weight", 8), rows("blk.3.ffn_up.weight", 6)
	f := open(meta("phi3", 2), bytesTensor("a", 1), qkv, up)
	for name, want := range map[string][]byte{
		"a":                     {1},
		"blk.3.attn_q.weight":   {0, 0, 1, 1, 2, 2, 3, 3},
		"blk.3.attn_k.weight":   {4, 4, 5, 5},
		"blk.3.attn_v.weight":   {6, 6, 7, 7},
		"blk.3.ffn_gate.weight": {0, 0, 1, 1, 2, 2},
		"blk.3.ffn_up.weight":   {3, 3, 4, 4, 5, 5},
	} {
		v, ok := f.Tensor(name)
		if !ok || !bytes.Equal(f.Data(v), want) || v.Size != int64(len(want)) || v.Elements() != v.Size {
			t.Errorf("%s: %+v", name, v)
		}
	}
	if len(f.Tensors) != 6 {
		t.Errorf("tensors %+v", f.Tensors)
	}
	// Matrices of other architectures: of layers with other heads, with gates of queries, with biases.
	perLayer := []KV{{"general.architecture", "llama"}, {"llama.attention.head_count", []int32{1, 2}}, {"llama.attention.head_count_kv", []int32{1, 0}}, {"llama.attention.key_length", uint32(2)}}
	bias := TensorData{"blk.0.attn_qkv.bias", ir.I8, []int64{6}, []byte{1, 2, 3, 4, 5, 6}}
	gated := open(perLayer, rows("blk.0.attn_qkv.weight", 8), bias)
	plain := open(perLayer, rows("blk.0.attn_qkv.weight", 6), bytesTensor("blk.1.attn_qkv.weight", 4))
	for _, c := range []struct {
		f    *File
		name string
		want []byte
	}{
		{gated, "blk.0.attn_q.weight", []byte{0, 0, 1, 1, 2, 2, 3, 3}},
		{gated, "blk.0.attn_v.weight", []byte{6, 6, 7, 7}},
		{gated, "blk.0.attn_q.bias", []byte{1, 2}},
		{gated, "blk.0.attn_v.bias", []byte{5, 6}},
		{plain, "blk.0.attn_k.weight", []byte{2, 2, 3, 3}},
		{plain, "blk.1.attn_qkv.weight", []byte{4}},
	} {
		if v, ok := c.f.Tensor(c.name); !ok || !bytes.Equal(c.f.Data(v), c.want) || v.Elements() != v.Size {
			t.Errorf("%s: %+v", c.name, v)
		}
	}
	// What is not such a file stays as it is.
	for _, f := range []*File{
		open(meta("llama", 2), qkv, up),
		open(meta("phi3", 2), qkv, bytesTensor("blk.3.ssm_conv1d.weight", 1)),
		open(meta("phi3", 0), qkv, up),
		open(meta("phi3", 4), qkv, rows("blk.3.ffn_up.weight", 3)),
		open(meta("phi3", 1<<31), qkv, rows("blk.3.ffn_up.weight", 3)),
	} {
		if v, ok := f.Tensor(qkv.Name); !ok || !bytes.Equal(f.Data(v), qkv.Data) || len(f.Tensors) != 2 {
			t.Errorf("%s was split: %+v", qkv.Name, f.Tensors)
		}
	}
}
