package codegen

import (
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// asks predicts all call sites of a model for gfx1201 and returns the rows and the questions that it took. From what
// was asked before, o answers at once.
func asks(t *testing.T, path string, o *radv.Compiler, all bool) (rows map[string]tuning.Row, questions int) {
	t.Helper()
	f, err := gguf.OpenHeader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows = map[string]tuning.Row{}
	on := amd(t)
	_, _, err = lower(t.Context(), Source{Model: f}, Options{Target: on, Import: frontend.Options{KV: ir.F16}}, ir.Specialize, func(p *ir.Program) (chosen, error) {
		sites, err := sitesOf(p, on)
		if err != nil {
			return chosen{}, err
		}
		q := newInquiry(on, o)
		q.all = all
		orders := map[string]string{}
		for _, round := range rounds(sites) {
			predicted, err := chooseAll(t.Context(), p, round, orders, q, Choice{})
			if err != nil {
				return chosen{}, err
			}
			for _, s := range round {
				if r, ok := predicted.Lookup(s.key); ok {
					rows[s.key] = r
				}
			}
		}
		for _, r := range q.ratings {
			if r.answered {
				questions++
			}
		}
		return chosen{}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, questions
}

// TestFewQuestions holds that what AMD's compiler is asked about is little more than half of the candidates, and that a
// choice by that is as good as one by all.
func TestFewQuestions(t *testing.T) {
	if testing.Short() {
		t.Skip("TestQuestionsOfHeader counts questions, TestTuneOnAMD chooses by them")
	}
	on := amd(t)
	o, err := radv.Open(t.Context(), on.AMD.Family, on.AMD.StandIn, nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	defer o.Close()
	path := filepath.Join("..", "testdata", "models", "gopher-moe-q4_k_m.gguf")
	few, asked := asks(t, path, o, false)
	all, every := asks(t, path, o, true)
	if asked > every*6/10 {
		t.Errorf("%d questions of %d", asked, every)
	}
	if len(few) != len(all) {
		t.Errorf("%d sites, want %d", len(few), len(all))
	}
	mine, best := 0.0, 0.0
	for key, r := range few {
		if w := all[key]; r.Micros > 1.1*w.Micros {
			t.Errorf("%s: %s takes %v us, %s %v", key, r.Best, r.Micros, w.Best, w.Micros)
		}
		mine, best = mine+r.Micros, best+all[key].Micros
	}
	if mine > 1.01*best {
		t.Errorf("all sites take %.1f us, want %.1f", mine, best)
	}
	t.Logf("%d questions of %d, %d sites, %.1f us of %.1f", asked, every, len(few), mine, best)
}

// TestQuestionsOfHeader bounds what a model takes of a shape of which nothing is known.
func TestQuestionsOfHeader(t *testing.T) {
	on := amd(t)
	o, err := radv.Open(t.Context(), on.AMD.Family, on.AMD.StandIn, nil)
	if err != nil {
		t.Fatalf("RADV of mesa-vulkan-drivers 25 is needed: %v", err)
	}
	defer o.Close()
	s := synth.Published[0]
	s.Layers, s.Quant = 1, "IQ1_S"
	m, err := synth.New(s)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.gguf")
	if err := m.WriteHeader(path); err != nil {
		t.Fatal(err)
	}
	const most = 200
	if _, asked := asks(t, path, o, false); asked > most {
		t.Errorf("%d questions, want at most %d", asked, most)
	} else {
		t.Logf("%d questions", asked)
	}
}
