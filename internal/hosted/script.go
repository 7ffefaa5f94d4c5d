package hosted

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/step"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Scripted is a model with the vocabulary and the chat template of gopher-chat, and a context of any length, whose
// logits say what answer returns for a prompt. All else is as with any model: tokenizer, template, engine, sampler,
// parser.
func Scripted(t testing.TB, name string, ctx, slots int, answer func(prompt string) string) *api.Served {
	path := filepath.Join(root(t), "testdata/models/gopher-chat-q4_k_m.gguf")
	return &api.Served{Names: []string{name}, Path: path, Ctx: ctx, Made: time.Now(), Open: func(context.Context) (*api.Model, error) {
		f, err := gguf.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		vocab, err := plans.ReadVocab(f)
		if err != nil {
			return nil, err
		}
		tok, err := text.New(vocab)
		if err != nil {
			return nil, err
		}
		template, err := chat.New(vocab)
		if err != nil {
			return nil, err
		}
		plan := scriptedPlan(vocab, ctx, slots)
		e, err := engine.New(plan, newScript(plan, tok, answer), tok, engine.Options{})
		if err != nil {
			return nil, err
		}
		return &api.Model{Header: plan.Header, Hash: strings.Repeat("0", 64), Device: "script", Tokenizer: tok, Template: template,
			Defaults: sample.Defaults(vocab.Sampling), Engine: e}, nil
	}}
}

// scriptRow is what a token of a slot counts as in its cache, in bytes.
const scriptRow = 4

func scriptedPlan(vocab plans.Vocab, ctx, slots int) *plans.Plan {
	p := &plans.Plan{Header: plans.Header{Ctx: ctx, Slots: slots, Ring: 256, Model: plans.Model{Arch: "script", Vocab: len(vocab.Tokens)}}, Program: &ir.Program{}, Vocab: vocab}
	p.Memory.KV = []plans.Region{{Name: "tokens", Bytes: scriptRow * int64(slots) * int64(ctx), Kept: &plans.Kept{Kind: ir.KeepPositions.String(), Sequences: slots, Rows: ctx, RowBytes: scriptRow, Back: ctx}}}
	p.Program.Globals = []*ir.Value{{Name: "tokens", Class: ir.KV, Type: ir.MakeType(ir.F32, ir.Dim(slots), ir.L, scriptRow/4)}}
	for _, e := range []struct {
		kind string
		rows int
		s    float32
	}{{"decode", 1, 1e-4}, {"decode", 2, 1e-4}, {"decode", 4, 1e-4}, {"decode", 8, 1e-4}, {"prefill", 64, 1e-4}, {"prefill", 512, 2e-4}} {
		name := fmt.Sprintf("%s/%d", e.kind, e.rows)
		p.Entries = append(p.Entries, plans.Entry{Name: name, Kind: e.kind, Rows: e.rows, Run: e.rows, Reach: e.rows, Logits: name + ":logits", Next: name + ":next",
			Dispatches: []plans.Dispatch{{Cost: plans.Cost{Predicted: plans.Times{Bytes: e.s}}}}})
	}
	return p
}

// A script is an executor that remembers the tokens of its slots, and makes logits of which the largest is the
// next token of the answer.
type script struct {
	plan   *plans.Plan
	tok    *text.Tokenizer
	answer func(prompt string) string
	begin  []int32 // what asks for an answer
	slots  []scriptSlot
	step.Block
	floats map[string][]float32
	ints   map[string][]int32
}

type scriptSlot struct {
	ids    []int32
	asked  int     // where the answer begins that is known; 0: none
	answer []int32 // with the end token
}

func newScript(p *plans.Plan, tok *text.Tokenizer, answer func(string) string) *script {
	x := &script{plan: p, tok: tok, answer: answer, begin: tok.Encode("<|im_start|>assistant\n", text.EncodeOptions{ParseSpecial: true}),
		slots: make([]scriptSlot, p.Header.Slots), floats: map[string][]float32{}, ints: map[string][]int32{ir.StepOut: make([]int32, p.Header.Ring)}}
	for _, e := range p.Entries {
		n := e.Heads()
		x.floats[e.Logits], x.ints[e.Next] = make([]float32, n*len(p.Vocab.Tokens)), make([]int32, n)
	}
	return x
}

func (x *script) Device() string { return "script" }

// Submit computes at once.
func (x *script) Submit(_ context.Context, launches ...runtime.Launch) (runtime.Ticket, error) {
	for _, l := range launches {
		if err := x.run(l.Entry, l.Times); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

func (x *script) Wait(context.Context, runtime.Ticket) error { return nil }

func (x *script) run(e *plans.Entry, times int) error {
	n, vocab := len(x.Rows), len(x.plan.Vocab.Tokens)
	for t := range times {
		for r, row := range x.Rows {
			if row.Slot == ir.NoSlot {
				continue
			}
			s := &x.slots[row.Slot]
			if int(row.Pos) > len(s.ids) {
				return fmt.Errorf("position %d of slot %d, which holds %d", row.Pos, row.Slot, len(s.ids))
			}
			s.ids = append(s.ids[:row.Pos], row.Token)
			if int(row.Pos) < s.asked {
				s.asked = 0
			}
			for _, out := range x.outputs(e, r) {
				next := x.next(s)
				x.ints[e.Next][out] = next
				logits := x.floats[e.Logits][out*vocab:][:vocab]
				clear(logits)
				logits[next] = 100
			}
		}
		if e.Kind == "decode" {
			for r := range x.Rows {
				next := x.ints[e.Next][r]
				x.ints[ir.StepOut][(t*n+r)%len(x.ints[ir.StepOut])] = next
				x.Rows[r].Token, x.Rows[r].Pos = next, x.Rows[r].Pos+1
			}
		}
	}
	return nil
}

// outputs are the rows of logits that a row of the step gives.
func (x *script) outputs(e *plans.Entry, r int) (list []int) {
	switch {
	case e.Part > 0:
		for i, head := range x.Heads {
			if int(head) == r && i < e.Heads() {
				list = append(list, i)
			}
		}
	case e.Kind == "decode":
		list = append(list, r)
	case r == len(x.Rows)-1:
		list = append(list, 0)
	}
	return list
}

// next is the token behind what a slot holds: of the answer that the last of its turns asks for.
func (x *script) next(s *scriptSlot) int32 {
	at := len(s.ids) - len(x.begin)
	for at >= 0 && !slices.Equal(s.ids[at:at+len(x.begin)], x.begin) {
		at--
	}
	if at < 0 {
		return 0
	}
	if at += len(x.begin); at != s.asked {
		said := x.answer(x.tok.Decode(s.ids[:at], true)) + "<|im_end|>"
		s.asked, s.answer = at, x.tok.Encode(said, text.EncodeOptions{ParseSpecial: true})
	}
	return s.answer[min(len(s.ids)-at, len(s.answer)-1)]
}

func (x *script) Ints(region string) ([]int32, error)               { return x.ints[region], nil }
func (x *script) Floats(region string, _ ...int) ([]float32, error) { return x.floats[region], nil }
func (x *script) Close() error                                      { return nil }

func (x *script) SaveState(context.Context, []plans.Span) (runtime.State, error) {
	return nil, errors.New("a script has no state")
}

// Copy copies the tokens of a slot to another.
func (x *script) Copy(_ context.Context, to, from []plans.Span) error {
	for i := range to {
		t, f := to[i].Offset/scriptRow, from[i].Offset/scriptRow
		ctx := int64(x.plan.Header.Ctx)
		own, other := &x.slots[t/ctx], &x.slots[f/ctx]
		own.ids, own.asked = slices.Concat(own.ids[:t%ctx], other.ids[f%ctx:][:to[i].Bytes/scriptRow]), 0
	}
	return nil
}

func (x *script) RestoreState(context.Context, runtime.State, []plans.Span) error {
	return errors.New("a script has no state")
}
