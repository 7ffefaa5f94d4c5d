package cpu_test

import (
	"bytes"
	"context"
	"errors"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/object"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/cpu"
	"github.com/zincc-dev/zincc/runtime/cpu/cputest"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/host"
)

const models = "../../testdata/models/"

// shortModel is a model and the entries that a short text and what is verified run.
type shortModel struct {
	file    string
	entries []string
}

// gopher is a dense model, gopherMoE one with experts.
var (
	gopher    = shortModel{"gopher-q4_k_m.gguf", []string{"decode/1", "decode/2", "prefill/48"}}
	gopherMoE = shortModel{"gopher-moe-q4_k_m.gguf", []string{"decode/1", "prefill/48"}}
)

// compiled is a plan of gopher for this processor, with its weights, in its encoding.
var compiled = sync.OnceValues(func() ([]byte, error) { return encode(target.CPU, gopher.file) })

// encode compiles a model for a target, of all entries unless some are named.
func encode(name, model string, entries ...string) ([]byte, error) {
	f, err := gguf.Open(models + model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	to, err := target.Lookup(name)
	if err != nil {
		return nil, err
	}
	src := codegen.Source{Model: f}
	o := codegen.Options{Target: to, Import: frontend.Options{Ctx: 128, KV: ir.F16}, Embed: true}
	if len(entries) > 0 {
		if src.Program, _, err = codegen.Lower(context.Background(), src, o, ir.Fuse); err != nil {
			return nil, err
		}
		src.Program.Funcs = slices.DeleteFunc(src.Program.Funcs, func(f *ir.Func) bool { return !slices.Contains(entries, f.Name) })
	}
	r, err := codegen.Compile(context.Background(), src, o)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = plans.Write(&b, r.Plan)
	return b.Bytes(), err
}

// compile returns a plan of gopher that this process trusts.
func compile(t *testing.T) (*plans.Plan, *plans.Source) {
	t.Helper()
	data, err := compiled()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, data)
}

// decode returns a plan in its encoding, with its weights, that this process trusts.
func decode(t *testing.T, data []byte) (*plans.Plan, *plans.Source) {
	t.Helper()
	plan, err := plans.Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	src, err := plans.OpenSource(plan, "plan.bin", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return plan, src
}

func open(t *testing.T, threads int, plan *plans.Plan, src *plans.Source) *exec.Executor {
	t.Helper()
	x, err := cpu.New(t.Context(), plan, src, cpu.Options{Threads: threads})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close() })
	return x
}

// greedy is what follows the prompt.
func greedy(t *testing.T, plan *plans.Plan, x runtime.Executor, n int) []int32 {
	t.Helper()
	all, err := cputest.Greedy(t.Context(), plan, x, n)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPlan runs a model: the tokens are the oracle's, on any number of threads, a burst
// allocates no more than the list of its launches, and a run that was given up does not spoil the next.
func TestPlan(t *testing.T) {
	plan, src := compile(t)
	oracle, err := host.New(t.Context(), plan, src)
	if err != nil {
		t.Fatal(err)
	}
	want := greedy(t, plan, oracle, 25)
	for _, threads := range []int{1, 2, 3} {
		x := open(t, threads, plan, src)
		if have := greedy(t, plan, x, 25); !slices.Equal(have, want) {
			t.Errorf("%d threads: tokens %d, want %d", threads, have, want)
		}
	}
	x := open(t, 2, plan, src)
	entry := &plan.Entries[slices.IndexFunc(plan.Entries, func(e plans.Entry) bool { return e.Name == "decode/1" })]
	for _, w := range []string{"token", "pos", "slot", "n", "count"} {
		value := int32(0)
		if w == "n" {
			value = 1
		}
		if err := x.Write(w, []int32{value}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, pos := t.Context(), []int32{0}
	if n := testing.AllocsPerRun(20, func() {
		if err := x.Write("pos", pos); err != nil {
			t.Fatal(err)
		}
		if err := runtime.Run(context.Background(), x, entry, runtime.Burst); err != nil {
			t.Fatal(err)
		}
	}); n > 1 {
		t.Errorf("%v allocations a burst, want its list of launches", n)
	}
	gone, cancel := context.WithCancel(ctx)
	time.AfterFunc(time.Millisecond, cancel)
	for err = error(nil); err == nil; err = runtime.Run(gone, x, entry, 64) {
		if err := x.Write("pos", pos); err != nil {
			t.Fatal(err)
		}
	}
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a run that was given up: %v", err)
	}
	if have := greedy(t, plan, x, 25); !slices.Equal(have, want) {
		t.Errorf("behind it: tokens %d, want %d", have, want)
	}
	times, err := runtime.Profile(ctx, plan, x, "decode/1", 0, 20, 3)
	if err != nil || len(times) != len(entry.Dispatches) {
		t.Fatalf("profile: %v, %v", times, err)
	}
	for _, s := range times {
		if s.Time <= 0 || s.Time > time.Second {
			t.Errorf("%s takes %v", s.Site, s.Time)
		}
	}
}

// TestTexts has every layer of a dense model and of one with experts write what the oracle writes, and compares
// dispatches of the first with it.
func TestTexts(t *testing.T) {
	for _, m := range []shortModel{gopher, gopherMoE} {
		data, err := encode(target.CPU, m.file, m.entries...)
		if err != nil {
			t.Fatal(err)
		}
		plan, src := decode(t, data)
		oracle, err := host.New(t.Context(), plan, src)
		if err != nil {
			t.Fatal(err)
		}
		x := open(t, 2, plan, src)
		if have, want := greedy(t, plan, x, 4), greedy(t, plan, oracle, 4); !slices.Equal(have, want) {
			t.Errorf("%s: tokens %d, want %d", m.file, have, want)
		}
		if m.file != gopher.file {
			continue
		}
		if err := cputest.Verify(t.Context(), plan, src, x); err != nil {
			t.Error(err)
		}
	}
}

// TestRefused checks that a plan which could make generated code fault is refused before it runs, in one line.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		want   string
		change func(p *plans.Plan)
	}{
		{"needs neither", func(p *plans.Plan) { p.Require.CPU.Features = append(p.Require.CPU.Features, "needs neither") }},
		{"unknown architecture", func(p *plans.Plan) { p.Require.CPU.Arch = "sparc" }},
		{"argument", func(p *plans.Plan) { p.Entries[0].Dispatches[3].Args[0].Offset = 1 << 40 }},
		{"are free", func(p *plans.Plan) { p.Memory.Arena = host.Available() * 5 / 4 }},
		{"arguments", func(p *plans.Plan) { p.Entries[0].Dispatches[3].Args = p.Entries[0].Dispatches[3].Args[1:] }},
		{"has no value", func(p *plans.Plan) {
			for i := range p.Pipelines {
				p.Pipelines[i].Consts = nil
			}
		}},
		{"not an ELF object", func(p *plans.Plan) { p.Modules[0].Bytes = []byte("code") }},
		{"kernel", func(p *plans.Plan) { p.Modules[0].Bytes = slices.Clone(p.Modules[0].Bytes[:len(p.Modules[0].Bytes)/2]) }},
		{"no function", func(p *plans.Plan) { p.Modules[0].Interface.Entry = "main" }},
		{"grid", func(p *plans.Plan) { p.Entries[0].Dispatches[0].Grid[1] = 0 }},
	} {
		plan, src := compile(t)
		c.change(plan)
		x, err := cpu.New(t.Context(), plan, src, cpu.Options{Threads: 1})
		if err == nil {
			x.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
}

// TestMaxCode holds that a plan has a bounded size of code.
func TestMaxCode(t *testing.T) {
	plan, _ := compile(t)
	largest, size := 0, 0
	for i, m := range plan.Modules {
		o, err := object.Read(m.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		if o.Size > size {
			largest, size = i, o.Size
		}
	}
	plan.Modules = slices.Repeat(plan.Modules[largest:largest+1], cpu.MaxCode/size+1)
	if err := cpu.Link(plan); err == nil || !strings.Contains(err.Error(), "more than 268435456 bytes of code") {
		t.Errorf("%d modules of %d bytes: %v", len(plan.Modules), size, err)
	}
}

// TestThreads checks that a plan takes as many threads as Go may use, and gives them back.
func TestThreads(t *testing.T) {
	plan, src := compile(t)
	before := workers()
	x, err := cpu.New(t.Context(), plan, src, cpu.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := goruntime.GOMAXPROCS(0) - 1
	for until := time.Now().Add(10 * time.Second); workers()-before != want; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("%d more threads, want %d", workers()-before, want)
		}
	}
	x.Close()
	if have := workers() - before; have != 0 {
		t.Errorf("%d threads are left", have)
	}
}

// workers counts the goroutines that work for a team. Goroutines of Go's own come and go, so their number does not
// tell.
func workers() int {
	stacks := make([]byte, 1<<20)
	return bytes.Count(stacks[:goruntime.Stack(stacks, true)], []byte("cpu.(*team).work("))
}
