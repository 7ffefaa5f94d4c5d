package report_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
	"github.com/zincc-dev/zincc/spirv"
)

// small is a model of three layers, the last of which has weights of another type:
// after import, or placed as one entry with kernels.
func small(t *testing.T, placed bool) *ir.Program {
	t.Helper()
	var globals, body strings.Builder
	offset := func(at int) string {
		if !placed {
			return ""
		}
		return fmt.Sprintf(" at %d", at)
	}
	group := func(stage int, site, kernel, args string, ops ...string) {
		if !placed {
			fmt.Fprintf(&body, "  %s\n", strings.Join(ops, "\n  "))
			return
		}
		fmt.Fprintf(&body, "  group %q %s {\n    call \"f32/\" kernel=%q wave=32 grid=[2, 1, 1] const={k=4} args=[%s] why=\"only candidate\"\n    %s\n  }\n",
			site, ir.Order{Stage: stage, Waits: stage}, kernel, args, strings.Join(ops, "\n    "))
	}
	globals.WriteString("step @token : i32[T]\nweight @token_embd.weight : f32[8, 4] as raw\n")
	group(0, "embed", "embed", "@token, @token_embd.weight, %0", "%0 = embed @token, @token_embd.weight {scale=1.0} : f32[T, 4]"+offset(0))
	for layer := range 3 {
		dtype := "f32"
		if layer == 2 {
			dtype = "f16"
		}
		norm, up := fmt.Sprintf("@blk.%d.ffn_norm.weight", layer), fmt.Sprintf("@blk.%d.ffn_up.weight", layer)
		fmt.Fprintf(&globals, "weight %s : f32[4] as raw\nweight %s : %s[4, 4] as raw\n", norm, up, dtype)
		x := 3 * layer
		group(layer+1, fmt.Sprintf("blk.%d.ffn_up", layer), "gemv "+dtype, fmt.Sprintf("%%%d, %s, %s, %%%d", x, norm, up, x+3),
			fmt.Sprintf("%%%d = rmsnorm %%%d, %s {eps=1e-06, group=4} : f32[T, 4]", x+1, x, norm),
			fmt.Sprintf("%%%d = linear %%%d, %s : f32[T, 4]", x+2, x+1, up),
			fmt.Sprintf("%%%d = add %%%d, %%%d : f32[T, 4]%s", x+3, x+2, x, offset(256*((layer+1)%2))))
	}
	group(4, "output", "gemv f32", "%9, @token_embd.weight, %10", "%10 = linear %9, @token_embd.weight : io f32[T, 8]")
	stage, target, name, rows := "import", "", "forward", 4
	if placed {
		stage, target, name, rows = "place", "generic", "decode/1", 1
	}
	p, err := ir.Parse(fmt.Sprintf("zir 1\nstage %s\nmodel arch=\"llama\" name=\"small\" path=\"small.gguf\" source=\"c0ffee\" target=%q ctx=16 slots=1 layers=3\n\n%s\nfunc %q rows=%d sequences=many run=%[5]d class=exact {\n%[6]s}\n",
		stage, target, globals.String(), name, rows, body.String()))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// smallPlan is small's plan as far as a report reads it.
func smallPlan(t *testing.T) *plans.Plan {
	t.Helper()
	p := &plans.Plan{Program: small(t, true)}
	p.Header = plans.Header{Compiler: "zincc test", Target: "generic", Ctx: 16, Slots: 1, KV: "none", MaxRows: 1, Ring: 4,
		Model: plans.Model{Arch: "llama", Name: "small", Path: "small.gguf", Fingerprint: "c0ffee", Shards: 1, Layers: 3, Vocab: 8, Parameters: 92}}
	p.Memory = plans.Memory{Arena: 512, Step: []plans.Region{{Name: "token", Bytes: 4}}, IO: []plans.Region{{Name: "decode/1:%10", Bytes: 32}}}
	kernels := map[string]int{}
	e := plans.Entry{Name: "decode/1", Kind: "decode", Rows: 1, Run: 1, Class: "exact", Reach: 1}
	for i, g := range p.Program.Funcs[0].Groups {
		pipeline, ok := kernels[g.Call.Kernel]
		if !ok {
			pipeline = len(p.Modules)
			kernels[g.Call.Kernel] = pipeline
			p.Modules = append(p.Modules, plans.Module{Name: g.Call.Kernel, Format: plans.SPIRV, Bytes: spirv.Bytes(adds(2 + pipeline))})
			p.Pipelines = append(p.Pipelines, plans.Pipeline{Module: pipeline, Consts: []plans.Const{{Name: "k", Value: 4}}, Wave: 32, Workgroup: 64})
		}
		times := plans.Times{Bytes: 2e-6, Operations: 1e-6, Stage: 1e-6}
		if i == 0 {
			times = plans.Times{Stage: 1e-6}
		}
		e.Dispatches = append(e.Dispatches, plans.Dispatch{Site: g.Name, Pipeline: pipeline, Grid: g.Call.Grid, Order: g.Order,
			Cost: plans.Cost{ReadBytes: 96, WriteBytes: 16, FLOPs: 32, Predicted: times}})
	}
	p.Entries = []plans.Entry{e}
	for _, g := range p.Program.Globals {
		if g.Class == ir.Weight {
			w := plans.Weight{Name: g.Name, DType: g.Type.DType, Layout: "raw", At: -1, Bytes: 16}
			for _, d := range g.Type.Shape {
				w.Shape = append(w.Shape, int64(d))
			}
			p.Weights = append(p.Weights, w)
		}
	}
	p.Pipelines[1].Machine = &plans.Machine{Compiler: "radv", VGPRs: 24, Waves: 16}
	return p
}

// adds is a module that adds n times.
func adds(n int) []uint32 {
	words := []uint32{0x07230203, 0x10500, 0, 100, 0,
		2<<16 | 17, 1, // OpCapability Shader
		3<<16 | 22, 1, 32, // %1 = OpTypeFloat 32
		4<<16 | 43, 1, 2, 0x3f800000} // %2 = OpConstant %1 1
	for i := range uint32(n) {
		words = append(words, 5<<16|129, 1, 10+i, 9+i, 2) // OpFAdd
	}
	return words
}

// TestData holds what the page gets against testdata/report.json.
func TestData(t *testing.T) {
	trace := &report.Trace{}
	trace.Add(report.Pass{Name: "import", Stage: "import"}, small(t, false))
	trace.Add(report.Pass{Name: "Nothing", Stage: "fuse"}, small(t, false)) // has no column
	trace.Add(report.Pass{Name: "Everything", Stage: "place", Doc: "all that a compiler does"}, small(t, true))
	r, err := report.New(smallPlan(t), report.Options{Path: "small.bin", Figures: report.Figures{Bandwidth: 2e11}, Trace: trace,
		Assembly: []string{"BB0:\n  v_add\n", "BB0:\n  v_add\n  s_endpgm\n", ""}, Assembler: "radv"})
	if err != nil {
		t.Fatal(err)
	}
	r.Plans[0].Facts = r.Plans[0].Facts[:2] // the others are the golden's of package plans
	var have bytes.Buffer
	e := json.NewEncoder(&have)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(r); err != nil {
		t.Fatal(err)
	}
	const path = "testdata/report.json"
	if *update {
		if err := os.WriteFile(path, have.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have.Bytes(), want) {
		t.Errorf("have\n%s\ngo test -update writes it", have.Bytes())
	}
}

// TestFolds holds that layers which are the same in every column are one section, and
// that a single column in which they differ keeps them apart.
func TestFolds(t *testing.T) {
	sections := func(trace *report.Trace) [][]int {
		r, err := report.New(smallPlan(t), report.Options{Trace: trace})
		if err != nil {
			t.Fatal(err)
		}
		var list [][]int
		for _, s := range r.Plans[0].Entries[0].Sections {
			list = append(list, s.Layers)
		}
		return list
	}
	if have := fmt.Sprint(sections(nil)); have != "[[] [0 1] [2] []]" {
		t.Errorf("sections %s", have)
	}
	other := small(t, false)
	other.Funcs[0].Groups = slices.Delete(other.Funcs[0].Groups, 6, 7) // the last op of layer 1
	trace := &report.Trace{}
	trace.Add(report.Pass{Name: "import"}, other)
	if have := fmt.Sprint(sections(trace)); have != "[[] [0] [1] [2] []]" {
		t.Errorf("sections %s", have)
	}
}

// TestBroken holds that a module which is none is an error.
func TestBroken(t *testing.T) {
	p := smallPlan(t)
	p.Modules[1].Bytes = p.Modules[1].Bytes[:4*9]
	if _, err := report.New(p, report.Options{}); err == nil || !strings.Contains(err.Error(), `module "gemv f32"`) {
		t.Errorf("a broken module: %v", err)
	}
}
