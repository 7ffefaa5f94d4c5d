package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"sync"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// model is one model to compile.
type model struct {
	name string
	kv   ir.DType
	open func() (*gguf.File, error)
}

// all returns the models; headers are written to dir.
func all(root, dir string) []model {
	var list []model
	for _, name := range []string{"gopher", "gopher-moe"} {
		open := func() (*gguf.File, error) {
			return gguf.OpenHeader(filepath.Join(root, "testdata", "models", name+"-q4_k_m.gguf"))
		}
		list = append(list, model{name, ir.F16, open}, model{name + "-kv-q8_0", ir.Q8_0, open})
	}
	for _, s := range synth.Published {
		s.Layers = min(s.Layers, 8) // the others repeat them
		list = append(list, model{s.Name, ir.F16, header(s, dir)})
	}
	return list
}

// header returns what opens the header of a shape, written once.
func header(s synth.Shape, dir string) func() (*gguf.File, error) {
	path := filepath.Join(dir, s.Name+".gguf")
	write := sync.OnceValue(func() error {
		m, err := synth.New(s)
		if err != nil {
			return err
		}
		return m.WriteHeader(path)
	})
	return func() (*gguf.File, error) {
		if err := write(); err != nil {
			return nil, err
		}
		return gguf.OpenHeader(path)
	}
}

// planned is a model to be compiled for a target.
type planned struct {
	model  model
	target *target.Target
}

// plan compiles and proves the plan. Kernels are chosen by what the compiler holds of the target, and not by a driver
// that this computer may have. Instead of machine code, a plan for a processor has the sum of the text that LLVM would
// get, so that any computer makes it.
func (p planned) plan() (*plans.Plan, error) {
	f, err := p.model.open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	program, err := codegen.Import(f, frontend.Options{KV: p.model.kv})
	if err != nil {
		return nil, err
	}
	program.Path = "model.gguf"
	rows, err := target.Tuned(p.target)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	texts := map[string][]byte{} // by kernel, of processors
	ctx := objects.Listing(context.Background(), func(w objects.Wanted) error {
		text, err := w.Text(w.Machine)
		sum := sha256.Sum256([]byte(text))
		mu.Lock()
		defer mu.Unlock()
		texts[w.Kernel] = sum[:]
		return err
	})
	r, err := codegen.Compile(ctx, codegen.Source{Model: f, Program: program},
		codegen.Options{Target: p.target, Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}})
	if err != nil {
		return nil, err
	}
	plan := r.Plan
	plan.Header.Compiler, plan.Header.Model.Absolute = "", ""
	if p.target.Processor() {
		for i := range plan.Modules {
			plan.Modules[i].Bytes = texts[plan.Modules[i].Name]
		}
	} else if problems := audit.Check(plan); len(problems) > 0 {
		return nil, fmt.Errorf("the plan is refused: %v", problems[0])
	}
	return plan, nil
}

// whole names the line of what entries share.
const whole = "-"

// digests returns a line for what a plan's entries share and one for each entry.
func digests(p *plans.Plan) ([]string, error) {
	var lines []string
	add := func(name string, sections ...any) error {
		h := sha256.New()
		e := json.NewEncoder(h)
		for _, s := range sections {
			if err := e.Encode(s); err != nil {
				return err
			}
		}
		lines = append(lines, fmt.Sprintf("%.8x  %s", h.Sum(nil), name))
		return nil
	}
	shared := *p.Program
	shared.Funcs = nil
	if err := add(whole, p.Header, p.Require, p.Memory, p.Weights, ir.Print(&shared)); err != nil {
		return nil, err
	}
	for i := range p.Entries {
		entry := p.Entries[i]
		alone := ir.Program{Funcs: []*ir.Func{p.Program.Func(entry.Name)}}
		sections := []any{ir.Print(&alone)}
		entry.Dispatches = slices.Clone(entry.Dispatches)
		for j := range entry.Dispatches {
			d := &entry.Dispatches[j]
			if len(p.Pipelines) > 0 {
				pl := p.Pipelines[d.Pipeline]
				module := p.Modules[pl.Module]
				sum := sha256.Sum256(module.Bytes)
				module.Bytes = sum[:]
				pl.Module, d.Pipeline = 0, 0 // numbers that other entries shift
				sections = append(sections, pl, module)
			}
		}
		if err := add(entry.Name, append(sections, entry)...); err != nil {
			return nil, err
		}
	}
	return lines, nil
}
