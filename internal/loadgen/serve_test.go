package main

import (
	"context"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestSoakServer is a short soak of the server with a model on the host.
func TestSoakServer(t *testing.T) {
	server := httptest.NewServer(serveModel(t, "gopher-chat"))
	defer server.Close()
	s := newSoak(t, server.URL, 200)
	s.rest = 20 * time.Second
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.verdict(); err != nil {
		t.Error(err)
	}
	if len(s.left) < 5 {
		t.Errorf("the server tells only %+v", s.left)
	}
}

// TestMeasureServer: what a measurement counts is what the server did, of models with attention alone and with
// recurrent state.
func TestMeasureServer(t *testing.T) {
	for _, name := range []string{"gopher-chat", "gopher-moe"} {
		server := httptest.NewServer(serveModel(t, name))
		defer server.Close()
		c, err := newClient(server.URL, "", false)
		if err != nil {
			t.Fatal(err)
		}
		p, err := newPrompts(t.Context(), c, 1)
		if err != nil {
			t.Fatal(err)
		}
		r, err := load{users: 2, requests: 2, limit: time.Minute, prompt: 3, answer: 4, behind: 40}.run(t.Context(), c, p, func() {})
		if err != nil {
			t.Fatal(err)
		}
		for i := range r.traces {
			first, second := r.first[i], r.traces[i]
			if first.err != nil || second.err != nil {
				t.Fatal(first.err, second.err)
			}
			if first.prompt != 40 || first.completion != firstAnswer || len(first.ids) != firstAnswer || first.cached != 0 {
				t.Errorf("%s, first turn: %d tokens, %d of them cached, answer of %d, %d ids", name, first.prompt, first.cached, first.completion, len(first.ids))
			}
			// The last token of the answer was never read by the model.
			if second.prompt != 40+firstAnswer+3 || second.completion != 4 || second.cached < 40 || second.cached >= 40+firstAnswer {
				t.Errorf("%s, second turn: %d tokens, %d of them cached, answer of %d", name, second.prompt, second.cached, second.completion)
			}
		}
	}
}

// serveModel serves a model of testdata with 4 slots of 256 positions.
func serveModel(t *testing.T, name string) *api.Server {
	path := "../../testdata/models/" + name + "-q4_k_m.gguf"
	served := &api.Served{Names: []string{name}, Path: path, Ctx: 256}
	served.Open = func(ctx context.Context) (*api.Model, error) {
		plan, err := compile(path)
		if err != nil {
			return nil, err
		}
		src, err := plans.OpenSource(plan, "plan.bin", path)
		if err != nil {
			return nil, err
		}
		exec, err := host.New(ctx, plan, src)
		if err != nil {
			return nil, err
		}
		tok, err := text.New(plan.Vocab)
		if err != nil {
			return nil, err
		}
		e, err := engine.New(plan, exec, tok, engine.Options{})
		if err != nil {
			return nil, err
		}
		return &api.Model{Header: plan.Header, Device: "host", Tokenizer: tok, Defaults: sample.Defaults(plan.Vocab.Sampling), Engine: e,
			Close: func() error { exec.Close(); return src.Close() }}, nil
	}
	s := api.New(api.Options{Served: []*api.Served{served}, Loopback: true})
	t.Cleanup(func() {
		if err := s.Drain(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func compile(path string) (*plans.Plan, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	device, err := target.Lookup("host")
	if err != nil {
		return nil, err
	}
	in := frontend.Options{Ctx: 256, Slots: 4, KV: ir.F16}
	r, err := codegen.Compile(context.Background(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: in})
	if err != nil {
		return nil, err
	}
	return r.Plan, nil
}
