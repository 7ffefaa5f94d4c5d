// Command makeobjects writes codegen/objects/objects.zip: the machine code of the kernels that the
// models in testdata and those in published shapes need, for every kind of processor that there is code for. It
// needs LLVM for those that have changed. With --check it compares what it makes with what is there.
//
//	go run ./internal/makeobjects [--check] [--model FILE,...] [--target NAME,...]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// out is relative to the module's root.
const out = "codegen/objects/objects.zip"

func main() {
	check := pflag.Bool("check", false, "compare with what is there instead of writing it")
	models := pflag.StringSlice("model", nil, "GGUF files instead of the models of the tree")
	only := pflag.StringSlice("target", nil, "targets instead of all processors")
	pflag.Parse()
	if err := run(context.Background(), *check, *models, *only); err != nil {
		fmt.Fprintln(os.Stderr, "makeobjects:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool, models, only []string) error {
	if pflag.NArg() > 0 {
		return errors.New("takes no arguments")
	}
	if len(models) == 0 {
		dir, err := os.MkdirTemp("", "makeobjects")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if models, err = all(dir); err != nil {
			return err
		}
	}
	objects.Collect()
	for _, path := range models {
		for _, t := range target.All() {
			if t.Backend != plans.CPU || len(only) > 0 && !slices.Contains(only, t.Name) {
				continue
			}
			fmt.Fprintf(os.Stderr, "%s for %s\n", filepath.Base(path), t.Name)
			if err := compile(ctx, path, t); err != nil {
				return fmt.Errorf("%s for %s: %w", path, t.Name, err)
			}
		}
	}
	var made bytes.Buffer
	n, err := objects.WriteZip(&made)
	if err != nil {
		return err
	}
	if check {
		have, err := os.ReadFile(out)
		if err == nil && !bytes.Equal(have, made.Bytes()) {
			err = fmt.Errorf("%s is not what is made of the kernels: `make objects` writes it anew", out)
		}
		return err
	}
	fmt.Fprintf(os.Stderr, "%d objects, %d bytes\n", n, made.Len())
	return outfile.Write(out, func(w io.Writer) error { _, err := w.Write(made.Bytes()); return err })
}

// all returns the models of testdata and, of the published shapes, headers that it writes to dir: of
// few layers, since further ones repeat them.
func all(dir string) ([]string, error) {
	list, err := filepath.Glob("testdata/models/*.gguf")
	if err != nil {
		return nil, err
	}
	for _, s := range synth.Published {
		s.Layers = min(s.Layers, 8)
		m, err := synth.New(s)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(dir, s.Name+".gguf")
		if err := m.WriteHeader(path); err != nil {
			return nil, err
		}
		list = append(list, path)
	}
	return list, nil
}

func compile(ctx context.Context, path string, t *target.Target) error {
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = codegen.Compile(ctx, codegen.Source{Model: f}, codegen.Options{Target: t, Import: frontend.Options{KV: ir.F16}})
	return err
}
