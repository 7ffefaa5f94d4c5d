// Package hosted serves models of testdata within a test, on this processor.
package hosted

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Serve loads a model, such as gopher-chat, and serves it with slots of ctx positions until the test ends.
func Serve(t testing.TB, name string, ctx, slots int, o api.Options) *api.Server {
	path := filepath.Join(root(t), "testdata/models", name+"-q4_k_m.gguf")
	o.Served = []*api.Served{{Names: []string{name}, Path: path, Ctx: ctx, Open: func(c context.Context) (*api.Model, error) { return open(c, path, ctx, slots) }}}
	s := api.New(o)
	if err := s.Load(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

// root is the folder of the module that the test belongs to.
func root(t testing.TB) string {
	dir, err := os.Getwd()
	for ; err == nil; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "testdata/models")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("no folder above this test has testdata/models")
		}
	}
	t.Fatal(err)
	return ""
}

func open(c context.Context, path string, ctx, slots int) (*api.Model, error) {
	plan, err := compile(path, frontend.Options{Ctx: ctx, Slots: slots, KV: ir.F16, MaxRows: 64})
	if err != nil {
		return nil, err
	}
	src, err := plans.OpenSource(plan, "plan.bin", path)
	if err != nil {
		return nil, err
	}
	exec, err := cpu.New(c, plan, src, cpu.Options{})
	if err != nil {
		return nil, err
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		return nil, err
	}
	e, err := engine.New(plan, slow{exec}, tok, engine.Options{ITL: time.Nanosecond}) // no bursts
	if err != nil {
		return nil, err
	}
	m := &api.Model{Header: plan.Header, Device: target.CPU, Tokenizer: tok, Defaults: sample.Defaults(plan.Vocab.Sampling), Engine: e,
		Close: func() error { exec.Close(); return src.Close() }}
	if m.Template, err = chat.Open(plan.Vocab, plan.Dialect); err != nil {
		m.NoChat = err.Error()
	}
	return m, nil
}

// slow is an executor that takes as long as one of a large model, so that a client sees tokens come one by one.
type slow struct{ runtime.Executor }

func (s slow) Wait(ctx context.Context, t runtime.Ticket) error {
	time.Sleep(4 * time.Millisecond)
	return s.Executor.Wait(ctx, t)
}

func compile(path string, in frontend.Options) (*plans.Plan, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	device, err := target.Lookup(target.CPU)
	if err != nil {
		return nil, err
	}
	r, err := codegen.Compile(context.Background(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: in})
	if err != nil {
		return nil, err
	}
	return r.Plan, nil
}
