// Command amdkernels lists the kernels of plans for AMD's targets, with what their machine code does: one workgroup of
// each, or some, runs in the interpreter of the kernel language and in the emulator, on the same random inputs, and the
// results are compared.
//
//	go run ./internal/tools/amdkernels                                          all; hours
//	go run ./internal/tools/amdkernels --target gfx1201 --shape qwen3-8b:4 --entry decode/1
//
// Its exit code is 1 if a kernel is at fault or differs, or if less than 99 of 100 of those that the driver makes code
// of run.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// options are the flags.
type options struct {
	targets, shapes, entries []string
	layers                   int
	json                     bool
}

func main() {
	radv.Main()
	o := options{}
	pflag.StringSliceVar(&o.targets, "target", []string{"gfx1201", "gfx1200", "gfx1100", "gfx1151"}, "targets")
	pflag.StringSliceVar(&o.shapes, "shape", nil, "shapes, instead of the published ones")
	pflag.StringSliceVar(&o.entries, "entry", nil, "entries, instead of all")
	pflag.IntVar(&o.layers, "layers", 8, "layers of a model at most: further ones repeat them")
	pflag.BoolVar(&o.json, "json", false, "print JSON")
	pflag.Parse()
	if pflag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "amdkernels: takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "amdkernels:", err)
		os.Exit(1)
	}
}

// summary counts rows by what came of them.
type summary struct{ all, none, unfit, ran, bad int }

func (o *options) run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "amdkernels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	shapes, err := o.models()
	if err != nil {
		return err
	}
	t := &table.Table{Title: "kernels", Columns: []string{"target", "kernel", "wave", "emulated", "result", "error", "instructions", "waits", "bytes"}}
	var sum summary
	var failed error // what has run is printed, even so
	for _, name := range o.targets {
		on, err := target.Lookup(name)
		if err != nil {
			return err
		}
		rows, err := o.target(ctx, on, shapes, dir)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", name, err))
		}
		for _, r := range rows {
			sum.add(r)
			t.Add(name, r.kernel, r.wave, r.emulated(), r.result, fmt.Sprintf("%.1g", r.worst), r.counts.Instructions, r.counts.Waits,
				r.counts.LoadedBytes+r.counts.StoredBytes+r.counts.ScalarBytes)
		}
	}
	write := table.WriteText
	if o.json {
		write = table.WriteJSON
	}
	if err := write(os.Stdout, t); err != nil {
		return err
	}
	return errors.Join(failed, sum.err())
}

func (s *summary) add(r *row) {
	s.all++
	switch r.result {
	case noCode:
		s.none++
	case inputs:
		s.unfit++
	case bits, near:
		s.ran++
	default:
		s.bad++
	}
}

// err says what came of all, and fails for a kernel that differs or is at fault, and if too few ran.
func (s *summary) err() error {
	fmt.Fprintf(os.Stderr, "%d kernels: %d ran, the driver makes no code of %d, no inputs fit %d, %d differ or are at fault\n", s.all, s.ran, s.none, s.unfit, s.bad)
	switch {
	case s.bad > 0:
		return fmt.Errorf("%d kernels differ or are at fault", s.bad)
	case 100*s.ran < 99*(s.all-s.none):
		return fmt.Errorf("only %d of %d kernels that have code ran", s.ran, s.all-s.none)
	}
	return nil
}

// models are the shapes to compile.
func (o *options) models() (list []synth.Shape, err error) {
	list = synth.Published
	if len(o.shapes) > 0 {
		list = nil
		for _, name := range o.shapes {
			s, err := synth.Parse(name)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// target runs each kernel of the models' plans once: the same code with the same constants is one kernel.
func (o *options) target(ctx context.Context, on *target.Target, shapes []synth.Shape, dir string) (rows []*row, err error) {
	d, err := emulate.Open(ctx, on.Name)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	tuned, err := on.Tuned()
	if err != nil {
		return nil, err
	}
	had := map[string]bool{}
	for _, s := range shapes {
		s.Layers = min(s.Layers, o.layers)
		m, err := synth.New(s)
		if err != nil {
			return rows, err
		}
		path := dir + "/" + s.Name + ".gguf"
		if err := m.WriteHeader(path); err != nil {
			return rows, err
		}
		f, err := gguf.OpenHeader(path)
		if err != nil {
			return rows, err
		}
		program, err := codegen.Import(f, frontend.Options{KV: ir.F16})
		if err != nil {
			return rows, errors.Join(err, f.Close())
		}
		err = codegen.Calls(ctx, codegen.Source{Model: f, Program: program}, codegen.Options{Target: on, Choice: codegen.Choice{Tuned: tuning.NewTable(tuned)}},
			func(p *ir.Program, fn *ir.Func, g *ir.Group, c *kernels.Candidate) error {
				key := fmt.Sprint(c.Kernel, c.Wave, c.Consts)
				if had[key] || !o.wants(fn.Name) {
					return nil
				}
				had[key] = true
				if err := ctx.Err(); err != nil {
					return err
				}
				r, err := runCall(ctx, d, on, p, fn, c)
				if err != nil {
					return fmt.Errorf("%s: %s %s: %w", s.Name, fn.Name, c.Kernel, err)
				}
				rows = append(rows, r)
				fmt.Fprintf(os.Stderr, "\r%s %s %s: %d kernels \033[K", on.Name, s.Name, fn.Name, len(rows))
				return nil
			})
		if err = errors.Join(err, f.Close()); err != nil {
			return rows, err
		}
	}
	fmt.Fprintln(os.Stderr)
	return rows, nil
}

func (o *options) wants(entry string) bool {
	if len(o.entries) == 0 {
		return true
	}
	for _, e := range o.entries {
		if strings.EqualFold(e, entry) {
			return true
		}
	}
	return false
}
