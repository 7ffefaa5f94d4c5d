package emulate_test

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
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
		profile               bool
	}{
		{"gopher", "gfx1201-nomatrix", code, 2, 200, false},
		{"gopher", "gfx1100", code, 2, 200, true},
		{"gopher-moe", "gfx1201-nomatrix", code, 0, 32, false},
		{"gopher-moe", "gfx1100", code, 2, 32, false},
		{"gopher-chat", "gfx1201-nomatrix", chat, 0, 32, false},
		{"gopher-chat", "gfx1100", chat, 0, 32, false},
	} {
		if *whole {
			c.tokens = c.all
		}
		if c.tokens == 0 {
			continue
		}
		t.Run(c.model+"/"+c.target, func(t *testing.T) {
			t.Parallel()
			p := compile(t, modelPath(c.model), c.target)
			prompt := p.tok.Encode(c.prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
			want := answer(t, p.plan, p.oracle(t), prompt, c.tokens)
			v, x := p.emulated(t)
			got := answer(t, p.plan, x, prompt, c.tokens)
			if !slices.Equal(got, want) {
				t.Errorf("answers %q, the oracle %q", p.tok.Decode(got, true), p.tok.Decode(want, true))
			}
			if c.profile {
				checkProfile(t, v, p.plan, x)
			}
		})
	}
}

func modelPath(name string) string {
	return filepath.Join("../../../testdata/models", name+"-q4_k_m.gguf")
}

// compiled is a model's plan for an emulated target.
type compiled struct {
	target string
	plan   *plans.Plan
	src    *plans.Source
	tok    *text.Tokenizer
}

func compile(t *testing.T, path, name string) *compiled {
	t.Helper()
	on, err := target.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	if !on.HasMatrices() {
		on = on.Exactly() // prompts rounded to 8 bits make what differs in the last place a difference in the first
	}
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
	t.Cleanup(func() { src.Close() })
	tok, err := text.New(r.Plan.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	return &compiled{strings.TrimSuffix(name, target.NoMatrix), r.Plan, src, tok}
}

func (c *compiled) oracle(t *testing.T) runtime.Executor {
	t.Helper()
	x, err := host.New(t.Context(), c.plan, c.src)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

func (c *compiled) emulated(t *testing.T) (*emulate.Verbs, *exec.Executor) {
	t.Helper()
	v := open(t, c.target).Verbs()
	x, err := exec.New(t.Context(), v, c.plan, c.src, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return v, x
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

// checkProfile adds up what a step executes, by site.
func checkProfile(t *testing.T, v *emulate.Verbs, plan *plans.Plan, x runtime.Executor) {
	t.Helper()
	p, err := v.Profile(t.Context(), plan, x, "decode/1", 0, 8)
	if err != nil {
		t.Fatal(err)
	}
	rows, sum := p.Rows[:len(p.Rows)-1], p.Rows[len(p.Rows)-1]
	for i, name := range p.Columns[2:] {
		total := 0.0
		for _, r := range rows {
			total += number(t, r[2+i])
		}
		if want := number(t, sum[2+i]); math.Abs(total-want) > 0.01*want || want == 0 && name != "matrix" && name != "conflicts" {
			t.Errorf("%s: sites have %g, in all %g", name, total, want)
		}
	}
}

func number(t *testing.T, cell any) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(fmt.Sprint(cell), 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
