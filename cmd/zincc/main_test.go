package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zincc-dev/zincc/internal/cli/clitest"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func TestHelpOfEveryCommand(t *testing.T) { clitest.CheckHelp(t, program) }

func TestOutputIsChecked(t *testing.T) { clitest.CheckOutput(t) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zincc": main})
}

func TestScripts(t *testing.T) {
	clitest.Run(t, func(e *testscript.Env) error { return errors.Join(foreignModels(e), tinyModels(e), otherFormats(e)) })
}

// foreignModels writes GGUF files that zincc reads and cannot compile: of an
// architecture it does not know, and with a tensor of a type it does not multiply.
func foreignModels(e *testscript.Env) error {
	models := map[string]struct {
		meta    []gguf.KV
		tensors []gguf.TensorData
	}{
		"mamba.gguf": {
			meta: []gguf.KV{{Key: "general.architecture", Value: "mamba"}},
		},
		"none.gguf": {
			meta: []gguf.KV{{Key: "general.name", Value: "nameless"}},
		},
		"int.gguf": {
			meta: []gguf.KV{
				{Key: "general.architecture", Value: "llama"},
				{Key: "llama.block_count", Value: uint32(1)},
				{Key: "llama.embedding_length", Value: uint32(32)},
				{Key: "llama.context_length", Value: uint32(64)},
				{Key: "llama.feed_forward_length", Value: uint32(32)},
				{Key: "llama.attention.head_count", Value: uint32(1)},
				{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
			},
			tensors: []gguf.TensorData{
				{Name: "token_embd.weight", Type: ir.I8, Shape: []int64{32, 16}, Data: make([]byte, 32*16)},
			},
		},
	}
	for name, m := range models {
		if err := writeModel(e, name, m.meta, m.tensors); err != nil {
			return err
		}
	}
	return nil
}

func writeModel(e *testscript.Env, name string, meta []gguf.KV, tensors []gguf.TensorData) error {
	f, err := os.Create(filepath.Join(e.WorkDir, name))
	if err != nil {
		return err
	}
	return errors.Join(gguf.Write(f, meta, tensors), f.Close())
}

// otherFormats writes heads of GGUF files that are none of version 2 and 3, little endian.
func otherFormats(e *testscript.Env) error {
	var errs []error
	for name, version := range map[string]string{"v4.gguf": "\x04\x00\x00\x00", "big.gguf": "\x00\x00\x00\x03"} {
		errs = append(errs, os.WriteFile(filepath.Join(e.WorkDir, name), []byte("GGUF"+version+strings.Repeat("\x00", 16)), 0o666))
	}
	return errors.Join(errs...)
}

// tinyModels writes a model of two layers in two quantizations, without a tokenizer, and
// with some that zincc does not take.
func tinyModels(e *testscript.Env) error {
	meta := []gguf.KV{
		{Key: "general.architecture", Value: "llama"},
		{Key: "general.name", Value: "tiny"},
		{Key: "llama.block_count", Value: uint32(2)},
		{Key: "llama.embedding_length", Value: uint32(64)},
		{Key: "llama.context_length", Value: uint32(2048)},
		{Key: "llama.feed_forward_length", Value: uint32(128)},
		{Key: "llama.attention.head_count", Value: uint32(2)},
		{Key: "llama.attention.layer_norm_rms_epsilon", Value: float32(1e-5)},
	}
	hostile := "\xff\x1b[31mred\n\u202e\x00*/" + strings.Repeat("A", 1<<20)
	for name, d := range map[string]ir.DType{"tiny-f16.gguf": ir.F16, "tiny-q4_0.gguf": ir.Q4_0, "tiny-hostile.gguf": ir.F32} {
		meta := slices.Clone(meta)
		if d == ir.F32 {
			meta[1].Value = hostile
		}
		var tensors []gguf.TensorData
		add := func(name string, d ir.DType, shape ...int64) {
			n := int64(1)
			for _, x := range shape {
				n *= x
			}
			tensors = append(tensors, gguf.TensorData{Name: name + ".weight", Type: d, Shape: shape, Data: make([]byte, d.Bytes(n))})
		}
		add("token_embd", d, 64, 96)
		add("output_norm", ir.F32, 64)
		for _, layer := range []string{"blk.0.", "blk.1."} {
			add(layer+"attn_norm", ir.F32, 64)
			add(layer+"ffn_norm", ir.F32, 64)
			for _, w := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
				add(layer+w, d, 64, 64)
			}
			add(layer+"ffn_gate", d, 64, 128)
			add(layer+"ffn_up", d, 64, 128)
			add(layer+"ffn_down", d, 128, 64)
		}
		if err := writeModel(e, name, meta, tensors); err != nil {
			return err
		}
		if d != ir.F16 {
			continue
		}
		var many []string // one more than there are embeddings
		for i := range 97 {
			many = append(many, fmt.Sprint("t", i))
		}
		for _, t := range []struct {
			name, model, pre string
			tokens           []string
		}{
			{"tiny-many.gguf", "gpt2", "qwen2", many}, {"tiny-bert.gguf", "bert", "", []string{"a", "a"}},
			{"tiny-klingon.gguf", "gpt2", "klingon", []string{"a", "b"}}, {"tiny-twice.gguf", "gpt2", "qwen2", []string{"a", "a"}},
		} {
			err := writeModel(e, t.name, append(slices.Clip(meta), gguf.KV{Key: "tokenizer.ggml.model", Value: t.model},
				gguf.KV{Key: "tokenizer.ggml.pre", Value: t.pre}, gguf.KV{Key: "tokenizer.ggml.tokens", Value: t.tokens}), tensors)
			if err != nil {
				return err
			}
		}
	}
	return nil
}
