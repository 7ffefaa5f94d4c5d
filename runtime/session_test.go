package runtime_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/step"
)

// stepRecorder is an executor that computes nothing.
type stepRecorder struct {
	runtime.Executor
	runs []string
	last step.Block
}

func (r *stepRecorder) Write(region string, data []int32) error { return r.last.Write(region, data) }

func (r *stepRecorder) Submit(_ context.Context, l ...runtime.Launch) (runtime.Ticket, error) {
	run := fmt.Sprintf("%s:%d", l[0].Entry.Name, len(r.last.Rows))
	if l[0].Times > 1 {
		run += fmt.Sprint(" x", l[0].Times)
	}
	r.runs = append(r.runs, run)
	return 0, nil
}

func (r *stepRecorder) Wait(context.Context, runtime.Ticket) error { return nil }

// Ints chooses token 1: 0 would be looked into.
func (r *stepRecorder) Ints(string) ([]int32, error) { return slices.Repeat([]int32{1}, 64), nil }

// TestSubmissions holds that nothing is submitted which is predicted to take long, as far as
// there is a choice: narrower steps and fewer tokens are taken behind many positions.
func TestSubmissions(t *testing.T) {
	// Behind 100 positions each row takes 10 ms more than its 1 ms.
	cost := func(rows int) []plans.Dispatch {
		ms := float32(rows) * 1e-3
		return []plans.Dispatch{{Cost: plans.Cost{ReadBytes: 1000, BytesPerPos: 100, Predicted: plans.Times{Bytes: ms}}}}
	}
	plan := &plans.Plan{
		Program: &ir.Program{},
		Header:  plans.Header{Ctx: 1024, Slots: 1, Ring: 512, Model: plans.Model{Vocab: 2}},
		Entries: []plans.Entry{
			{Name: "d1", Kind: "decode", Rows: 1, Run: 1, Reach: 1, Dispatches: cost(1)},
			{Name: "p16", Kind: "prefill", Rows: 16, Run: 16, Reach: 16, Dispatches: cost(16)},
			{Name: "p64", Kind: "prefill", Rows: 64, Run: 64, Reach: 64, Dispatches: cost(64)},
		},
	}
	exec := &stepRecorder{}
	s := runtime.NewSession(plan, exec)
	// 64 rows take 64, 474 and 884 ms behind 0, 64 and 128 positions.
	if _, err := s.Prefill(t.Context(), make([]int32, 192), 0); err != nil {
		t.Fatal(err)
	}
	if have, want := strings.Join(exec.runs, " "), "p64:64 p64:64 p16:16 p16:16 p16:16 p16:16"; have != want {
		t.Errorf("192 tokens: %s, want %s", have, want)
	}
	// Behind 232 positions a token takes 24 ms.
	exec.runs = nil
	out, err := s.Decode(t.Context(), 0, 40)
	if err != nil || len(out) != 40 || s.Len() != 192+40 {
		t.Errorf("40 tokens: %d, %v, the sequence has %d", len(out), err, s.Len())
	}
	if have, want := strings.Join(exec.runs, " "), "d1:1 x20 d1:1 x20"; have != want {
		t.Errorf("40 tokens: %s, want %s", have, want)
	}
	// Nobody takes a processor for hung.
	exec.runs = nil
	plan.Require.Backend = plans.CPU
	if _, err := runtime.NewSession(plan, exec).Prefill(t.Context(), make([]int32, 192), 0); err != nil {
		t.Fatal(err)
	}
	if have, want := strings.Join(exec.runs, " "), "p64:64 p64:64 p64:64"; have != want {
		t.Errorf("192 tokens on a processor: %s, want %s", have, want)
	}
}

// TestPrefillStages feeds prompts of several lengths: the narrowest entry that reaches as far as what
// is left takes the next step, else the widest.
func TestPrefillStages(t *testing.T) {
	plan := &plans.Plan{
		Program: &ir.Program{},
		Header:  plans.Header{Ctx: 256, Slots: 1, Ring: 1, Model: plans.Model{Vocab: 2}},
		Entries: []plans.Entry{
			{Name: "d1", Kind: "decode", Rows: 1, Run: 1, Reach: 1},
			{Name: "d4", Kind: "decode", Rows: 4, Run: 4, Reach: 4},
			{Name: "p16", Kind: "prefill", Rows: 16, Run: 16, Reach: 20},
			{Name: "p64", Kind: "prefill", Rows: 64, Run: 64, Reach: 64},
			{Name: "s32", Kind: "score", Rows: 32, Run: 32, Reach: 32},
		},
	}
	for _, x := range []struct {
		tokens, chunk int
		want          string
	}{
		{1, 0, "d1:1"}, {3, 0, "d4:3"}, {5, 0, "p16:5"}, {16, 0, "p16:16"},
		{17, 0, "p16:16 d1:1"}, {20, 0, "p16:16 d4:4"}, {21, 0, "p64:21"},
		{64, 0, "p64:64"}, {84, 0, "p64:64 p16:16 d4:4"}, {85, 0, "p64:64 p64:21"},
		{18, 4, "d4:4 d4:4 d4:4 d4:4 d4:2"}, {36, 20, "p16:16 p16:16 d4:4"},
	} {
		exec := &stepRecorder{}
		s := runtime.NewSession(plan, exec)
		if _, err := s.Prefill(t.Context(), make([]int32, x.tokens), x.chunk); err != nil {
			t.Fatal(err)
		}
		if have := strings.Join(exec.runs, " "); have != x.want {
			t.Errorf("%d tokens by at most %d: %s, want %s", x.tokens, x.chunk, have, x.want)
		}
		if s.Len() != x.tokens {
			t.Errorf("%d tokens: %d in the sequence", x.tokens, s.Len())
		}
	}
}

// TestRuns feeds a prompt to entries whose steps take fewer rows of one sequence than they have.
func TestRuns(t *testing.T) {
	plan := &plans.Plan{
		Program: &ir.Program{},
		Header:  plans.Header{Ctx: 256, Slots: 16, Ring: 1, Model: plans.Model{Vocab: 2}},
		Entries: []plans.Entry{{Name: "d16", Kind: "decode", Rows: 16, Run: 8, Reach: 16}},
	}
	exec := &stepRecorder{}
	if _, err := runtime.NewSession(plan, exec).Prefill(t.Context(), make([]int32, 20), 0); err != nil {
		t.Fatal(err)
	}
	if have, want := strings.Join(exec.runs, " "), "d16:8 d16:8 d16:4"; have != want {
		t.Errorf("20 tokens: %s, want %s", have, want)
	}
}

// unfinished is an executor that chooses the same token always, of the same logits.
type unfinished struct {
	stepRecorder
	choice int32
	logits []float32
}

func (u *unfinished) Ints(string) ([]int32, error) { return slices.Repeat([]int32{u.choice}, 64), nil }

func (u *unfinished) Floats(string, ...int) ([]float32, error) { return u.logits, nil }

// TestNotNumbers holds that token 0, which argmax chooses of NaNs, is an error then and only then.
func TestNotNumbers(t *testing.T) {
	plan := &plans.Plan{
		Program: &ir.Program{},
		Header:  plans.Header{Ctx: 64, Slots: 1, Ring: 64, Model: plans.Model{Vocab: 2}},
		Entries: []plans.Entry{{Name: "d1", Kind: "decode", Rows: 1, Run: 1, Reach: 1, Logits: "logits"}},
	}
	nan := float32(math.NaN())
	for _, x := range []struct {
		logits []float32
		choice int32
		want   error
	}{
		{[]float32{2, 1}, 0, nil}, {[]float32{1, 2}, 1, nil}, {[]float32{nan, nan}, 0, sample.ErrNotNumbers},
	} {
		s := runtime.NewSession(plan, &unfinished{logits: x.logits, choice: x.choice})
		if _, err := s.Prefill(t.Context(), []int32{1}, 0); err != x.want {
			t.Errorf("prefill, logits %v: %v, want %v", x.logits, err, x.want)
		}
		if _, err := s.Decode(t.Context(), 1, 8); err != x.want {
			t.Errorf("decode, logits %v: %v, want %v", x.logits, err, x.want)
		}
	}
}

// scored is an executor that has logits of eight rows.
type scored struct{ stepRecorder }

func (*scored) Floats(string, ...int) ([]float32, error) { return make([]float32, 8*2), nil }

// TestDecodeBehindScores: what was scored is part of the sequence.
func TestDecodeBehindScores(t *testing.T) {
	plan := &plans.Plan{
		Program: &ir.Program{},
		Header:  plans.Header{Ctx: 64, Slots: 1, Ring: 16, Model: plans.Model{Vocab: 2}},
		Entries: []plans.Entry{
			{Name: "d1", Kind: "decode", Rows: 1, Run: 1, Reach: 1},
			{Name: "s8", Kind: "score", Rows: 8, Run: 8, Reach: 8},
		},
	}
	exec := &scored{}
	s := runtime.NewSession(plan, exec)
	scored := 0
	if err := s.Score(t.Context(), make([]int32, 11), func(i int, logits []float32) error { scored++; return nil }); err != nil {
		t.Fatal(err)
	}
	if scored != 11 || s.Len() != 11 {
		t.Fatalf("%d tokens scored, the sequence has %d", scored, s.Len())
	}
	if _, err := s.Decode(t.Context(), 1, 2); err != nil {
		t.Fatal(err)
	}
	if want := []step.Row{{Token: 1, Pos: 11}}; !slices.Equal(exec.last.Rows, want) {
		t.Errorf("decoded %+v, want %+v", exec.last.Rows, want)
	}
	s.Reset()
	if s.Len() != 0 {
		t.Errorf("%d tokens after a reset", s.Len())
	}
}
