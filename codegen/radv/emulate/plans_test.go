package emulate_test

import (
	"flag"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/drivertest"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/text"
)

// whole makes TestPlans compare many tokens of all models; else it compares a few of some.
var whole = flag.Bool("whole", false, "emulate plans for 200 tokens")

func TestDriver(t *testing.T) {
	drivertest.Test(t, func(t *testing.T) driver.Device { return open(t, "gfx1201").Verbs() })
}

func open(t *testing.T, name string) *emulate.Device {
	t.Helper()
	d, err := emulate.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const (
	// Behind these no choice is nearer than 0.18 to the second most likely token, of 200 tokens of gopher and of 32 of
	// the others: what differs in the last place of a sum does not choose.
	code = "// path: sort/sort.go\npackage sort\n\n"
	chat = "<|im_start|>user\nWhat does math.Abs do?<|im_end|>\n<|im_start|>assistant\n"
)

// TestPlans answers as the oracle does, token for token.
func TestPlans(t *testing.T) {
	for _, c := range []struct {
		model, target, prompt string
		tokens                int // of a sample; 0: none
		all                   int
	}{
		{"gopher", "gfx1201-nomatrix", code, 2, 200},
		{"gopher", "gfx1100", code, 2, 200},
		{"gopher-moe", "gfx1201-nomatrix", code, 0, 32},
		{"gopher-moe", "gfx1100", code, 2, 32},
		{"gopher-chat", "gfx1201-nomatrix", chat, 0, 32},
		{"gopher-chat", "gfx1100", chat, 0, 32},
	} {
		if *whole {
			c.tokens = c.all
		}
		if c.tokens == 0 {
			continue
		}
		t.Run(c.model+"/"+c.target, func(t *testing.T) {
			t.Parallel()
			on, err := target.Lookup(c.target)
			if err != nil {
				t.Fatal(err)
			}
			if !on.HasMatrices() {
				on = on.Exactly() // prompts rounded to 8 bits make what differs in the last place a difference in the first
			}
			path := filepath.Join("../../../testdata/models", c.model+"-q4_k_m.gguf")
			f, err := gguf.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: on, Import: frontend.Options{Ctx: 320, Slots: 1, KV: ir.F16, MaxRows: 48}})
			if err != nil {
				t.Fatal(err)
			}
			src, err := plans.OpenSource(r.Plan, "plan.bin", path)
			if err != nil {
				t.Fatal(err)
			}
			defer src.Close()
			tok, err := text.New(r.Plan.Vocab)
			if err != nil {
				t.Fatal(err)
			}
			prompt := tok.Encode(c.prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
			oracle, err := host.New(t.Context(), r.Plan, src)
			if err != nil {
				t.Fatal(err)
			}
			defer oracle.Close()
			want := answer(t, r.Plan, oracle, prompt, c.tokens)
			x, err := exec.New(t.Context(), open(t, strings.TrimSuffix(c.target, target.NoMatrix)).Verbs(), r.Plan, src, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer x.Close()
			got := answer(t, r.Plan, x, prompt, c.tokens)
			if !slices.Equal(got, want) {
				t.Errorf("answers %q, the oracle %q", tok.Decode(got, true), tok.Decode(want, true))
			}
		})
	}
}

// answer is the most likely tokens behind a prompt.
func answer(t *testing.T, plan *plans.Plan, x runtime.Executor, prompt []int32, n int) []int32 {
	t.Helper()
	s := runtime.NewSession(plan, x)
	next, err := s.Prefill(t.Context(), prompt, 0)
	if err != nil {
		t.Fatal(err)
	}
	list := []int32{next}
	for len(list) < n {
		more, err := s.Decode(t.Context(), list[len(list)-1], min(runtime.Burst, n-len(list)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, more...)
	}
	return list
}
