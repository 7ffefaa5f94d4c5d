package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zincc-dev/zincc/internal/cli/clitest"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func TestHelpOfEveryCommand(t *testing.T) { clitest.CheckHelp(t, program) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zincc": main})
}

func TestScripts(t *testing.T) {
	clitest.Run(t, foreignModels)
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
		f, err := os.Create(filepath.Join(e.WorkDir, name))
		if err != nil {
			return err
		}
		if err := gguf.Write(f, m.meta, m.tensors); err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}
