package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
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

// digest compiles, proves the plan and returns the SHA-256 of what the compiler decides. Kernels are chosen by what the
// compiler holds of the target, and not by a driver that this computer may have.
func (p planned) digest() (sum [32]byte, err error) {
	f, err := p.model.open()
	if err != nil {
		return sum, err
	}
	defer f.Close()
	program, err := codegen.Import(f, frontend.Options{KV: p.model.kv})
	if err != nil {
		return sum, err
	}
	program.Path = "model.gguf"
	rows, err := p.target.Tuned()
	if err != nil {
		return sum, err
	}
	r, err := codegen.Compile(context.Background(), codegen.Source{Model: f, Program: program},
		codegen.Options{Target: p.target, Choice: codegen.Choice{Tuned: tuning.NewTable(rows)}})
	if err != nil {
		return sum, err
	}
	plan := r.Plan
	if problems := audit.Check(plan); len(problems) > 0 {
		return sum, fmt.Errorf("the plan is refused: %v", problems[0])
	}
	plan.Header.Compiler, plan.Header.Model.Absolute = "", ""
	h := sha256.New()
	e := json.NewEncoder(h)
	for _, section := range []any{plan.Header, plan.Require, plan.Modules, plan.Pipelines, plan.Memory, plan.Weights, plan.Entries, ir.Print(plan.Program)} {
		if err := e.Encode(section); err != nil {
			return sum, err
		}
	}
	return [32]byte(h.Sum(nil)), nil
}
