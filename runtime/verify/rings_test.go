package verify_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/audit"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// windowed is a model whose layers with a window have rings of 256 positions if steps have 48 rows, and none if they
// have more.
var windowed = synth.Shape{
	Name: "windowed", Arch: "gpt-oss", Quant: "Q8_0", Layers: 2, Embd: 64, Vocab: 288, Ctx: 320, RopeBase: 1e4, Heads: 4, KVHeads: 2, HeadDim: 64,
	Experts: synth.Experts{Count: 4, Used: 2, FF: 32}, Windows: synth.Windows{Size: 150},
}

func compileRows(t *testing.T, model, to string, kv ir.DType, rows int) *plans.Plan {
	t.Helper()
	f, err := gguf.Open(model)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	device, err := target.Lookup(to)
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: frontend.Options{Slots: 3, KV: kv, MaxRows: rows}, Embed: true})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// ringsOf counts the caches of the plan that are rings.
func ringsOf(p *plans.Plan) (n int) {
	for _, g := range p.Program.Globals {
		if g.Class == ir.KV && g.Type.Shape[1] == 256 {
			n++
		}
	}
	return n
}

// TestRings compares dispatches whose caches are rings, behind more positions than these have, of -short those of a
// decode entry for two types of cache.
func TestRings(t *testing.T) {
	path := write(t, newShape(t, windowed))
	entries := map[ir.DType][]string{}
	for _, kv := range []ir.DType{ir.F16, ir.Q8_0, ir.Q4_0} {
		entries[kv] = []string{"decode/4", "prefill/48"}
	}
	if testing.Short() {
		entries = map[ir.DType][]string{ir.F16: {"decode/4"}, ir.Q8_0: {"decode/4"}}
	}
	for kv, names := range entries {
		t.Run(kv.String(), func(t *testing.T) {
			plan := compileRows(t, path, "llvmpipe", kv, 48)
			if n := ringsOf(plan); n != 2 {
				t.Fatalf("%d caches are rings, want 2", n)
			}
			keepEntries(plan, names...)
			src, dev := open(t, plan)
			r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 272})
			if err != nil {
				t.Fatal(err)
			}
			if r.Failed > 0 {
				t.Errorf("%d of %d failed, first %+v", r.Failed, len(r.Results), r.First())
			}
		})
	}
}

// TestRingsKeepAll compares logits of a plan with rings with those of one that keeps all positions: tokens by pieces
// whose ends lie anywhere, and one by one.
func TestRingsKeepAll(t *testing.T) {
	path := write(t, newShape(t, windowed))
	rng := rand.New(rand.NewPCG(5, 6))
	tokens := make([]int32, 320)
	for i := range tokens {
		tokens[i] = int32(rng.IntN(288))
	}
	logits := func(rows int, rings int) []float32 {
		plan := compileRows(t, path, "host", ir.F16, rows)
		if n := ringsOf(plan); n != rings {
			t.Fatalf("%d caches are rings, want %d", n, rings)
		}
		src, err := plans.OpenSource(plan, "plan.bin", "")
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		x, err := host.New(t.Context(), plan, src)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close()
		s := runtime.NewSession(plan, x)
		var all []float32
		for at := 0; at < len(tokens); {
			n := min([]int{48, 1, 31, 48, 7}[at%5], len(tokens)-at)
			if at > 290 {
				n = 1
			}
			if _, err := s.Prefill(t.Context(), tokens[at:at+n], 48); err != nil {
				t.Fatal(err)
			}
			l, err := s.Logits()
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l...)
			at += n
		}
		return all
	}
	if !slices.Equal(logits(48, 2), logits(128, 0)) {
		t.Error("logits differ")
	}
}

// TestWindowPages: in a plan with pages, caches of a window have fewer of them, of a block table of their own, also if
// the pool grows. The checker takes it, and kernels compute what the oracle does.
func TestWindowPages(t *testing.T) {
	s := windowed
	s.Ctx = 1 << 15
	path := write(t, newShape(t, s))
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, to := range []string{"sm_90-cuda", "llvmpipe"} {
		device, err := target.Lookup(to)
		if err != nil {
			t.Fatal(err)
		}
		o := frontend.Options{Ctx: s.Ctx, Slots: 3, KV: ir.Q8_0, MaxRows: 48, Page: 64, Pool: s.Ctx}
		r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: device, Import: o, Embed: true})
		if err != nil {
			t.Fatal(err)
		}
		plan := r.Plan
		for _, pages := range []int{1 + s.Ctx/64, 1000} {
			if err := plan.SetPages(pages); err != nil {
				t.Fatal(err)
			}
			whole, window := plan.PagedIn(ir.WholeGroup), plan.PagedIn(ir.WindowGroup)
			if whole.Pages != pages || window.Pages >= pages && pages > 1+s.Ctx/64 || window.Window != windowed.Windows.Size || plan.PoolBytes(pages) != plan.MemoryBytes() {
				t.Errorf("%s: %d pages, %s and %s, %d bytes of %d", to, pages, whole, window, plan.PoolBytes(pages), plan.MemoryBytes())
			}
			for _, problem := range audit.Check(plan) {
				t.Errorf("%s: %s", to, problem)
			}
		}
		if to != "llvmpipe" {
			continue
		}
		keepEntries(plan, "decode/4")
		src, dev := open(t, plan)
		if r, err := verify.Plan(t.Context(), plan, src, dev, verify.Options{Context: 300}); err != nil {
			t.Error(err)
		} else if r.Failed > 0 || len(r.Results) < 10 {
			t.Errorf("%d of %d failed, first %+v", r.Failed, len(r.Results), r.First())
		}
	}
}
