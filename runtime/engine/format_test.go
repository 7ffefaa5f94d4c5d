package engine_test

import (
	"encoding/json"
	"slices"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/grammar"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// TestFormat has the chat model answer within formats, alone and side by side, greedily and by chance.
func TestFormat(t *testing.T) {
	m := loadModel(t, "gopher-chat", 512, 4)
	e := m.start(t, engine.Options{})
	schema, _, err := grammar.Schema([]byte(`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 6}, "year": {"type": "integer", "minimum": 1900, "maximum": 2030},
		"typed": {"type": "boolean"}}, "required": ["name", "year", "typed"], "additionalProperties": false}`), grammar.SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	choice, err := grammar.Choice([]string{"yes, it is", "no", "perhaps"})
	if err != nil {
		t.Fatal(err)
	}
	prompt := m.encode("<|im_start|>user\nDescribe the language Go as JSON.<|im_end|>\n<|im_start|>assistant\n")
	var list []engine.Request
	for i, g := range []*grammar.Grammar{schema, choice, schema, nil} {
		r := engine.Request{Prompt: prompt, Max: 60, Sampling: sample.Neutral(), TopLogprobs: -1, Format: g}
		if i%2 == 0 {
			r.Sampling.Temp = 0
		}
		if g == nil {
			r.Max = 10
		}
		if i == 2 {
			r.TopLogprobs = 2
			r.Sampling.Samplers = []string{"top_p", "temperature"}
			r.Sampling.Temp, r.Sampling.TopP, r.Sampling.Seed = 1.2, 0.9, 7
		}
		list = append(list, r)
	}
	var alone []result
	for _, r := range list {
		alone = append(alone, ask(t.Context(), e, r))
	}
	together := make([]result, len(list))
	var g errgroup.Group
	for i, r := range list {
		g.Go(func() error {
			together[i] = ask(t.Context(), e, r)
			return nil
		})
	}
	g.Wait()
	for i, a := range alone {
		if a.err != nil || !slices.Equal(a.tokens, together[i].tokens) {
			t.Errorf("%d: %v: %q alone, %q beside others", i, a.err, a.text, together[i].text)
		}
		switch list[i].Format {
		case schema:
			var v struct {
				Name  *string
				Year  *int
				Typed *bool
			}
			if err := json.Unmarshal([]byte(a.text), &v); err != nil || v.Name == nil || v.Year == nil || *v.Year < 1900 || *v.Year > 2030 || v.Typed == nil || a.done.Reason != engine.Stopped {
				t.Errorf("%d: %q: %v, %s", i, a.text, err, a.done.Reason)
			}
		case choice:
			if !slices.Contains([]string{"yes, it is", "no", "perhaps"}, a.text) || a.done.Reason != engine.Stopped {
				t.Errorf("%d: %q, %s", i, a.text, a.done.Reason)
			}
		}
		t.Logf("%d: %q", i, a.text)
	}
}

// TestFormatBehindReasoning lets the model reason first, as long as it may, and holds what follows.
func TestFormatBehindReasoning(t *testing.T) {
	m := loadModel(t, "gopher-chat", 512, 1)
	e := m.start(t, engine.Options{})
	g, err := grammar.Regex(`\s*[A-Z]{3}`)
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Request{Prompt: m.encode("<|im_start|>user\nWhat does sort.Search do?<|im_end|>\n<|im_start|>assistant\n"), Max: 40, Sampling: sample.Neutral(), TopLogprobs: -1, Format: g,
		Reasoning: &engine.Budget{Limit: 6, Begin: m.encode("<think>"), Close: m.encode("</think>")}}
	r.Sampling.Temp = 0
	a := ask(t.Context(), e, r)
	if a.err != nil || a.done.Reason != engine.Stopped || a.done.Usage.Reasoning == 0 {
		t.Fatalf("%q: %v %+v", a.text, a.err, a.done)
	}
	if at, ok, _ := g.Check([]byte(a.text[max(0, len(a.text)-3):])); !ok {
		t.Errorf("%q ends otherwise, %d", a.text, at)
	}
	t.Logf("%q", a.text)
	// A stop token of the request ends a text that could go on, and none before.
	number, err := grammar.Regex(`[0-9]{3}[0-9a-z ]*`)
	if err != nil {
		t.Fatal(err)
	}
	stop := r
	stop.Format, stop.Reasoning, stop.Sampling.Bias = number, nil, map[int32]float64{m.encode("A")[0]: 100}
	stop.StopTokens = m.encode("A")[:1]
	if a := ask(t.Context(), e, stop); a.err != nil || len(a.text) != 3 || a.done.Reason != engine.Stopped {
		t.Errorf("a stop token: %q %v", a.text, a.err)
	}
	r.AtOnce, r.Reasoning = true, nil
	if a := ask(t.Context(), e, r); a.err != nil || len(a.text) > 20 {
		t.Errorf("at once: %q %v", a.text, a.err)
	}
}

// TestForcedRuns counts steps of answers of which much is forced: runs of it go through the model together, and change
// no token, be they alone or beside others, with probabilities or without.
func TestForcedRuns(t *testing.T) {
	m := loadModel(t, "gopher-chat", 512, 4)
	e := m.start(t, engine.Options{})
	g, err := grammar.GBNF(`root ::= "The language Go was announced in November " year " by its three authors at Google, who are " ("Griesemer, Pike and Thompson" | "others") "." ` +
		"\n" + `year ::= [12] [0-9]{3}`)
	if err != nil {
		t.Fatal(err)
	}
	r := engine.Request{Prompt: m.encode("<|im_start|>user\nGo?<|im_end|>\n<|im_start|>assistant\n"), Max: 100, Sampling: sample.Neutral(), TopLogprobs: -1, Format: g}
	r.Sampling.Temp = 0
	steps := func() (n int64) {
		for _, s := range e.Stats().Entries {
			n += s.Steps
		}
		return n
	}
	before := steps()
	alone := ask(t.Context(), e, r)
	taken := steps() - before
	if alone.err != nil || alone.done.Reason != engine.Stopped {
		t.Fatalf("%q: %v, %v", alone.text, alone.done, alone.err)
	}
	t.Logf("%d tokens in %d steps: %q", len(alone.tokens), taken, alone.text)
	if int(taken) > len(alone.tokens)/2 {
		t.Errorf("%d steps for %d tokens", taken, len(alone.tokens))
	}
	single := r
	single.TopLogprobs = 0
	free := r
	free.Format = nil
	results := make([]result, 3)
	var all errgroup.Group
	for i, r := range []engine.Request{single, r, free} {
		all.Go(func() error {
			results[i] = ask(t.Context(), e, r)
			return nil
		})
	}
	all.Wait()
	for i, a := range results[:2] {
		if a.err != nil || !slices.Equal(a.tokens, alone.tokens) {
			t.Errorf("%d: %v: %q", i, a.err, a.text)
		}
	}
	if again := ask(t.Context(), e, free); !slices.Equal(again.tokens, results[2].tokens) {
		t.Errorf("beside runs %q, alone %q", results[2].text, again.text)
	}
}
