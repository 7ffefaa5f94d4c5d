package zincc_test

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/plans/tuning"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/step"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// wideVariable marks the process that TestWideSubgroups starts.
const wideVariable = "ZINC_TEST_WIDE"

// TestWideSubgroups verifies kernels that need subgroups of 16 lanes, which lavapipe has when
// LLVM is to make vectors of 512 bits: the delta rule chunk by chunk, projections of f32 in tiles.
// The environment that asks for it stays in a child process.
func TestWideSubgroups(t *testing.T) {
	if testing.Short() {
		t.Skip("TestDeltaChunk, TestDeltaChunked and TestGemmFloat of packages under codegen/kernels interpret these kernels")
	}
	if os.Getenv(wideVariable) != "" {
		wideSubgroups(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWideSubgroups$", "-test.v")
	cmd.Env = append(os.Environ(), wideVariable+"=1", "LP_NATIVE_VECTOR_WIDTH=512")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

func wideSubgroups(t *testing.T) {
	llvmpipe, err := target.Lookup("llvmpipe")
	if err != nil {
		t.Fatal(err)
	}
	on := *llvmpipe
	on.Wave, on.Chunks = 16, true
	const model = "tiny-qwen35moe-3-6"
	f, err := gguf.Open(modelPath(model))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	o := codegen.Options{Target: &on, Import: frontend.Options{KV: ir.F16, MaxRows: codegen.MaxRows}}
	compile := func() *plans.Plan {
		p, _, err := codegen.Lower(t.Context(), codegen.Source{Model: f}, o, ir.Fuse)
		if err != nil {
			t.Fatal(err)
		}
		p.Funcs = slices.DeleteFunc(p.Funcs, func(f *ir.Func) bool { return f.Name != "prefill/512" })
		r, err := codegen.Compile(t.Context(), codegen.Source{Model: f, Program: p}, o)
		if err != nil {
			t.Fatal(err)
		}
		return r.Plan
	}
	// The best guesses at projections of f32 take lavapipe's compiler a minute, those at other projections ten seconds.
	// Smaller tiles show the same.
	const gemm, experts = "gemm w16/32x64", "expert_gemm w16/32x64"
	small := map[string]string{
		"ssm_alpha+ssm_beta": "gemm_lanes w16/4x4 subgroups 1x1x4", "ffn_gate_inp+ffn_gate_inp_shexp": "gemm_float w16/16x32 of 8x4 subgroups=8",
		"attn_qkv+attn_gate": gemm, "ssm_out": gemm, "ffn_gate_shexp+ffn_up_shexp": gemm, "ffn_down_shexp": gemm,
		"ffn_gate_up_exps+ffn_gate_up_exps": experts, "ffn_down_exps": experts,
	}
	var rows []tuning.Row
	guess := compile().Program.Funcs[0]
	for _, g := range guess.Groups {
		if best := small[strings.TrimPrefix(g.Name, "blk.0.")]; best != "" {
			rows = append(rows, tuning.Row{Site: tuning.SiteOf(guess, g), Best: best, Micros: 1, Of: 2})
		}
	}
	if len(rows) != len(small) {
		t.Errorf("%d sites of layer 0 have the names of %d", len(rows), len(small))
	}
	o.Choice.Tuned = tuning.NewTable(rows)
	plan := compile()
	for _, kernel := range []string{"delta_chunk ", "delta_chunked ", "gemm_float "} {
		if !slices.ContainsFunc(plan.Modules, func(m plans.Module) bool { return strings.HasPrefix(m.Name, kernel) }) {
			t.Errorf("the plan has no %s", kernel)
		}
	}
	for _, problem := range audit.Check(plan) {
		t.Error(problem)
	}
	// 301 rows are 37 chunks and a part of one.
	checkDispatches(t, model, plan, verify.Options{Rows: 301, Layers: []int{0, 2}}, 70)
}

// TestWidestStep: rows of 128 sequences have on the host, in one step and with caches in slots or in pages, the logits
// that they have one by one.
func TestWidestStep(t *testing.T) {
	const rows = 128
	for _, o := range []frontend.Options{
		{Ctx: rows, Slots: rows, KV: ir.F16, MaxRows: rows},
		{Ctx: rows, Slots: rows + 8, KV: ir.F16, MaxRows: rows, Page: 64, Pool: (rows + 8) * rows},
	} {
		plan, exec := openedOn(t, "host", "tiny-qwen35moe", o)
		// logits are those behind two tokens in slots, of the rows together in a step.
		logits := func(entry string, slots ...int) []float32 {
			at := slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == entry })
			if at < 0 {
				t.Fatalf("the plan has no %s", entry)
			}
			var b step.Block
			for pos := range 2 {
				b.Reset()
				for _, slot := range slots {
					b.Add(int32(7*slot+pos), pos, slot)
				}
				if err := b.Store(exec); err != nil {
					t.Fatal(err)
				}
				if err := runtime.Run(t.Context(), exec, &plan.Entries[at], 1); err != nil {
					t.Fatal(err)
				}
			}
			list, err := exec.Floats(plan.Entries[at].Logits)
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(list)
		}
		var all []int
		for slot := o.Slots - rows; slot < o.Slots; slot++ {
			all = append(all, slot)
		}
		together, vocab := logits("decode/128", all...), plan.Header.Model.Vocab
		for row := 3; row < rows; row += 31 {
			if alone := logits("decode/1", all[row]); !slices.Equal(alone[:vocab], together[row*vocab:][:vocab]) {
				t.Errorf("%d slots: row %d has other logits than alone", o.Slots, row)
			}
		}
	}
}

// TestManySlots: plans of 256 slots have every wide step and pass the checker, those of 64 slots end at 64 rows.
func TestManySlots(t *testing.T) {
	f, err := gguf.Open(modelPath("gopher-moe"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		on    string
		slots int
		last  string // of the decode entries
	}{{"sm_90-cuda", 256, "decode/128"}, {"gfx1201", 256, "decode/128"}, {"llvmpipe", 256, "decode/128"}, {"sm_90-cuda", 64, "decode/64"}, {"cpu:x86-64-v3", 256, "decode/8"}} {
		on, err := target.Lookup(c.on)
		if err != nil {
			t.Fatal(err)
		}
		o := frontend.Options{Ctx: 256, Slots: c.slots, KV: ir.F16, MaxRows: codegen.MaxRows}
		if !on.FewKernels {
			o.Page, o.Pool = 64, 4096
		}
		plan := emit(t, f, on, o)
		for _, problem := range audit.Check(plan) {
			t.Errorf("%s, %d slots: %s", c.on, c.slots, problem)
		}
		last := ""
		for _, e := range plan.Entries {
			if e.Kind == "decode" {
				last = e.Name
			}
		}
		if last != c.last {
			t.Errorf("%s, %d slots: the widest step is %s", c.on, c.slots, last)
		}
	}
}

// TestWidestEngine: 136 requests at once, in steps of up to 128 rows and from a pool of half of their pages, have on
// the host the tokens that they have one by one.
func TestWidestEngine(t *testing.T) {
	const slots, ctx = 136, 128
	plan, exec := openedOn(t, "host", "tiny-qwen35moe", frontend.Options{Ctx: ctx, Slots: slots, KV: ir.F16, MaxRows: ctx, Page: 64, Pool: slots * ctx / 2})
	tok, err := text.New(plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(together int, which func(i int) bool) (answers [slots][]int32, wide bool) {
		e, err := engine.New(plan, exec, tok, engine.Options{ITL: engine.Unhurried})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		var group errgroup.Group
		group.SetLimit(together)
		for i := range slots {
			if !which(i) {
				continue
			}
			group.Go(func() error {
				r := engine.Request{Prompt: []int32{int32(1 + i), 3}, Max: 5, TopLogprobs: -1, IgnoreEOG: true}
				for ev, err := range e.Generate(t.Context(), r) {
					if err != nil {
						return err
					}
					for _, token := range ev.Tokens {
						answers[i] = append(answers[i], token.ID)
					}
				}
				return nil
			})
		}
		if err := group.Wait(); err != nil {
			t.Fatal(err)
		}
		return answers, slices.ContainsFunc(e.Stats().Entries, func(s engine.EntryStats) bool { return s.Name == "decode/128" && s.Rows > 64*s.Steps })
	}
	some := func(i int) bool { return i%16 == 5 }
	alone, wide := ask(1, some)
	if wide {
		t.Error("one request took a step of 128 rows")
	}
	for range 10 { // on a busy machine narrower steps may seem to give more tokens
		together, wide := ask(slots, func(int) bool { return true })
		for i := range slots {
			if some(i) && !slices.Equal(alone[i], together[i]) {
				t.Fatalf("request %d: %d alone, %d with others", i, alone[i], together[i])
			}
		}
		if wide {
			return
		}
	}
	t.Error("requests at once took no step of more than 64 rows")
}
