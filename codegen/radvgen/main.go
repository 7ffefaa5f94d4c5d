// Command radvgen writes down what AMD's compiler makes of the kernels of models,
// all candidates of each call site, for all AMD targets: the files in
// codegen/radv/known. Headers of models are enough. It wants Mesa 25.
//
//	go run ./codegen/radvgen codegen/radv/known MODEL.gguf...
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
)

func main() {
	radv.Main()
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "radvgen: want a folder and models")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "radvgen:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, models []string) error {
	for _, t := range target.All() {
		if t.AMD == nil {
			continue
		}
		o, err := radv.Record(ctx, t.AMD.Family, t.AMD.StandIn)
		if err != nil {
			return err
		}
		for _, model := range models {
			if err := ask(ctx, o, t, model); err != nil {
				return fmt.Errorf("%s: %s: %w", t.Name, model, err)
			}
		}
		o.Close()
		var text bytes.Buffer
		if err := o.Save(&text); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, t.AMD.Family+".txt"), text.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return nil
}

// ask compiles the model as far as kernels are chosen.
func ask(ctx context.Context, o *radv.Oracle, t *target.Target, model string) error {
	f, err := gguf.Open(model)
	if err != nil {
		return err
	}
	defer f.Close()
	p, err := frontend.Load(f, frontend.Options{KV: ir.F16, MaxRows: codegen.MaxRows})
	if err != nil {
		return err
	}
	_, err = passes.Run(p, codegen.OracleTable(ctx, t, p.Funcs[0].Rows, o), passes.Options{StopAfter: ir.Specialize})
	return err
}
