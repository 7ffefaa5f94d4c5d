package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/zincc-dev/zincc/internal/cli/clitest"
	"github.com/zincc-dev/zincc/internal/hub"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func TestHelpOfEveryCommand(t *testing.T) { clitest.CheckHelp(t, program) }

func TestOutputIsChecked(t *testing.T) { clitest.CheckOutput(t) }

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"zincrun": main})
}

// TestScripts runs the scripts with the compiler of this tree on the path, and with Go
// set up to build from this tree and the module cache alone.
func TestScripts(t *testing.T) {
	bin := t.TempDir()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	cache, modules, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", bin, "../zincc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mute := filepath.Join(bin, "mute.gguf")
	if err := muteModel(mute, filepath.Join(root, "testdata", "models", "gopher-q4_k_m.gguf")); err != nil {
		t.Fatal(err)
	}
	vectors := filepath.Join(bin, "vectors.gguf")
	if err := vectorModel(vectors, filepath.Join(root, "testdata", "models", "gopher-q4_k_m.gguf")); err != nil {
		t.Fatal(err)
	}
	chat, err := os.ReadFile(filepath.Join(root, "testdata", "models", "gopher-chat-q4_k_m.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	models := &hub.Server{
		Files: map[string]map[string][]byte{
			"acme/Gopher-GGUF": {"gopher-chat-Q4_K_M.gguf": chat, "gopher-chat-Q8_0.gguf": []byte("GGUF"), "mmproj-F16.gguf": []byte("GGUF")},
			"acme/Other":       {"other-Q4_K_M.gguf": chat}, "acme/Gated": {"gated-Q4_K_M.gguf": chat},
			"acme/Text": {"text-Q4_K_M.gguf": []byte("no model")},
		},
		Tags: map[string][]byte{"library/gopher:chat": chat}, Gated: map[string]bool{"acme/Gated": true}, Token: "hf_secret",
	}
	models.Start()
	t.Cleanup(models.Close)
	clitest.Run(t, func(e *testscript.Env) error {
		e.Setenv("HF_ENDPOINT", models.URL)
		e.Setenv("ZINCRUN_REGISTRY", models.URL)
		e.Setenv("XDG_DATA_HOME", filepath.Join(e.WorkDir, "data"))
		e.Setenv("ROOT", root)
		e.Setenv("GOCACHE", cache)
		e.Setenv("GOMODCACHE", modules)
		e.Setenv("GOFLAGS", "-mod=mod")
		e.Setenv("GOPROXY", "off")
		e.Setenv("CGO_ENABLED", "0")
		alone := withoutCompiler(e.Getenv("PATH"))
		e.Setenv("ALONE", alone)
		e.Setenv("PATH", alone+string(filepath.ListSeparator)+bin)
		e.Setenv("MUTE", mute)
		e.Setenv("VECTORS", vectors)
		return os.WriteFile(filepath.Join(e.WorkDir, "crlf.txt"), []byte("func main() {\r\n\tx := \"\u4e16\u754c\"\r\n"), 0o666)
	})
}

// withoutCompiler is a path without the folders where a zincc is installed.
func withoutCompiler(path string) string {
	folders := slices.DeleteFunc(filepath.SplitList(path), func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "zincc"))
		return err == nil
	})
	return strings.Join(folders, string(filepath.ListSeparator))
}

// muteModel writes the model at from without its tokenizer.
func muteModel(path, from string) error {
	return rewrite(path, from, func(meta []gguf.KV) []gguf.KV {
		return slices.DeleteFunc(meta, func(e gguf.KV) bool { return strings.HasPrefix(e.Key, "tokenizer.") })
	})
}

// vectorModel writes the model at from as one that makes vectors, as files of Qwen3-Embedding are: of its last token,
// and with an end token behind each text.
func vectorModel(path, from string) error {
	return rewrite(path, from, func(meta []gguf.KV) []gguf.KV {
		arch := ""
		meta = slices.DeleteFunc(meta, func(e gguf.KV) bool {
			if e.Key == "general.architecture" {
				arch = e.Value.(string)
			}
			return e.Key == "tokenizer.ggml.add_eos_token"
		})
		return append(meta, gguf.KV{Key: arch + ".pooling_type", Value: uint32(3)}, gguf.KV{Key: "tokenizer.ggml.add_eos_token", Value: true})
	})
}

// rewrite writes the model at from with other metadata.
func rewrite(path, from string, change func(meta []gguf.KV) []gguf.KV) error {
	f, err := gguf.Open(from)
	if err != nil {
		return err
	}
	defer f.Close()
	var meta []gguf.KV
	for _, key := range f.Keys() {
		if v, ok := f.Value(key); ok {
			meta = append(meta, gguf.KV{Key: key, Value: v})
		}
	}
	var tensors []gguf.TensorData
	for i := range f.Tensors {
		t := &f.Tensors[i]
		tensors = append(tensors, gguf.TensorData{Name: t.Name, Type: t.Type, Shape: t.Shape, Data: f.Data(t)})
	}
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(gguf.Write(out, change(meta), tensors), out.Close())
}
