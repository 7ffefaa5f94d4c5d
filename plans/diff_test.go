package plans

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
)

// differences are the rows of Diff as text, each behind the title of its table.
func differences(a, b *Plan) []string {
	var rows []string
	for _, t := range Diff(a, b) {
		for _, row := range t.Rows {
			cells := []string{t.Title}
			for _, c := range row {
				cells = append(cells, fmt.Sprint(c))
			}
			rows = append(rows, strings.Join(cells, "|"))
		}
	}
	return rows
}

func TestDiff(t *testing.T) {
	q := func(p *Plan) (*Dispatch, *ir.Group) { return dispatch(p, "q") }
	for _, c := range []struct {
		name string
		edit func(p *Plan)
		want []string
	}{
		{"nothing", func(p *Plan) {}, nil},
		{"header", func(p *Plan) { p.Header.Target = "gfx1201" }, []string{"plans|target|llvmpipe|gfx1201"}},
		{"backend", func(p *Plan) { p.Require = Requirements{Backend: Host, Memory: p.Require.Memory} },
			[]string{"plans|backend|vulkan|host", "plans|features|bufferDeviceAddress|-", "plans|workgroup|64|-"}},
		{"kernel", func(p *Plan) { _, g := q(p); g.Call.Kernel = "gemv.fast" }, []string{"kernels|q|decode/1|kernel|gemv.q4_0|gemv.fast"}},
		{"constant", func(p *Plan) { _, g := q(p); g.Call.Consts[1].Value = 32 }, []string{"kernels|q|decode/1|constants|n=64|n=32"}},
		{"grid", func(p *Plan) { d, _ := q(p); d.Grid[1] = 7 }, []string{"kernels|q|decode/1|grid|4x1x1|4x7x1"}},
		{"subgroup of all", func(p *Plan) {
			for _, f := range p.Program.Funcs {
				for _, g := range f.Groups {
					g.Call.Wave = 64
				}
			}
		}, []string{"kernels|advance|decode/1|subgroup|0|64", "kernels|*|score/8|subgroup|32|64", "kernels|q|decode/1|subgroup|32|64"}},
		{"workgroup", func(p *Plan) { d, _ := q(p); p.Pipelines[d.Pipeline].Workgroup = 128 }, []string{"kernels|q|decode/1|workgroup|64|128"}},
		{"code", func(p *Plan) { p.Modules[0].Bytes = p.Modules[0].Bytes[:20] }, []string{"modules|embed.q8_0|24 bytes, 19750dd6|20 bytes"}},
		{"stage", func(p *Plan) { p.Entries[0].Dispatches[4].Stage = 9 }, []string{"entries|decode/1|10|10|8|9|"}},
		{"bytes", func(p *Plan) { d, _ := q(p); d.Cost.ReadBytes += 24 }, []string{"work|decode/1|1000 B|1.00 KiB|100 B|100 B|10.00 k|10.00 k"}},
		{"time", func(p *Plan) { d, _ := q(p); d.Cost.Predicted.Operations = 9e-6 }, []string{"entries|decode/1|10|10|8|8|"}},
		{"no times", func(p *Plan) {
			for i := range p.Entries[0].Dispatches {
				p.Entries[0].Dispatches[i].Cost.Predicted = Times{}
			}
		}, []string{"entries|decode/1|10|10|8|8|45.000000682193786|-|-"}},
		{"arena", func(p *Plan) { p.Memory.Arena += 1 << 10 }, []string{"memory|arena|2.00 KiB|3.00 KiB", "memory|sum|"}},
		{"weight", func(p *Plan) { p.Weights[2].DType, p.Weights[2].Layout = ir.F16, "other" },
			[]string{"weights|wq|type|q4_0|f16", "weights|wq|layout|"}},
		{"entry missing", func(p *Plan) { p.Entries = p.Entries[:1] }, []string{"entries|score/8|2|-|2|-|", "work|score/8|200 B|-|"}},
		{"fusion", func(p *Plan) {
			d, g := q(p)
			d.Site, g.Ops = "blk.0.q", g.Ops[1:]
		}, []string{"fusion|q|decode/1|rmsnorm, linear|-", "fusion|blk.0.q|decode/1|-|linear"}},
	} {
		have := differences(testPlan(t, false), edited(t, c.edit))
		for _, want := range c.want {
			if !slices.ContainsFunc(have, func(row string) bool { return strings.HasPrefix(row, want) }) {
				t.Errorf("%s: no row %q in\n%s", c.name, want, strings.Join(have, "\n"))
			}
		}
		if c.name == "entry missing" && len(have) != 2 {
			t.Errorf("%s: more is said of it: %q", c.name, have)
		}
		if (len(have) == 0) != (len(c.want) == 0) {
			t.Errorf("%s: %q", c.name, have)
		}
	}
}

func edited(t testing.TB, edit func(p *Plan)) *Plan {
	p := testPlan(t, false)
	edit(p)
	return p
}

func TestDiffOfHostPlan(t *testing.T) {
	if rows := differences(hostPlan(t), testPlan(t, false)); len(rows) == 0 {
		t.Error("no differences")
	}
}

func TestFold(t *testing.T) {
	f := newFold()
	for _, entry := range []string{"decode/1", "decode/2", "prefill/32", "score/8"} {
		for i := range 6 {
			f.site(entry, fmt.Sprintf("blk.%d.a", i))
			f.site(entry, fmt.Sprintf("blk.%d.b", i))
			f.site(entry, fmt.Sprintf("glu.%d", i+2))
		}
	}
	change := func(entry, site, what string) { f.add(siteChange{entry, site, what, "1", "2"}) }
	for i := range 6 {
		change("decode/1", fmt.Sprintf("blk.%d.a", i), "kernel")
		change("decode/2", fmt.Sprintf("blk.%d.a", i), "kernel")
		for _, entry := range f.entries {
			change(entry, fmt.Sprintf("blk.%d.a", i), "wave")
			change(entry, fmt.Sprintf("blk.%d.b", i), "wave")
			change(entry, fmt.Sprintf("glu.%d", i+2), "wave")
		}
		if i != 3 {
			change("score/8", fmt.Sprintf("blk.%d.b", i), "grid")
			change("score/8", fmt.Sprintf("glu.%d", i+2), "grid")
		}
	}
	change("decode/1", "blk.5.b", "grid")
	change("prefill/32", "blk.5.b", "grid")
	f.add(siteChange{"decode/1", "blk.1.b", "kernel", "same", "same"})
	want := []folded{
		{"blk.*.a", "decode/*", "kernel", "1", "2"},
		{"*", "all", "wave", "1", "2"},
		{"blk.5.b", "decode/1 prefill/32", "grid", "1", "2"},
		{"blk.{0-2,4-5}.b", "score/8", "grid", "1", "2"},
		{"glu (5 of 6)", "score/8", "grid", "1", "2"},
	}
	if have := f.rows(); !slices.Equal(have, want) {
		t.Errorf("have %q\nwant %q", have, want)
	}
}

func TestWorse(t *testing.T) {
	all := Measures()
	old := edited(t, func(p *Plan) { p.Pipelines[1].Machine = &Machine{VGPRs: 40} })
	more := edited(t, func(p *Plan) { p.Pipelines[1].Machine = &Machine{VGPRs: 48} })
	if have := strings.Join(Worse(old, more, all), ", "); have != "registers of decode/1 40 -> 48" {
		t.Error(have)
	}
	for _, c := range []struct {
		name  string
		edit  func(p *Plan)
		names []string
		want  string
	}{
		{"nothing", func(p *Plan) {}, all, ""},
		{"stages", func(p *Plan) { p.Entries[0].Dispatches[4].Stage = 9 }, []string{"stages"}, "stages of decode/1 8 -> 9"},
		{"stages, not asked for", func(p *Plan) { p.Entries[0].Dispatches[4].Stage = 9 }, []string{"bytes", "time"}, ""},
		{"fewer bytes", func(p *Plan) { p.Entries[0].Dispatches[0].Cost.ReadBytes-- }, all, ""},
		{"bytes", func(p *Plan) { p.Entries[1].Dispatches[0].Cost.WriteBytes++ }, all, "bytes of score/8 220 -> 221"},
		{"time", func(p *Plan) { p.Entries[1].Dispatches[0].Cost.Predicted.Stage *= 2 }, all, "time of score/8 10 -> 12"},
		{"registers of old not known", func(p *Plan) { p.Pipelines[1].Machine = &Machine{VGPRs: 48} }, all, ""},
		{"entry missing", func(p *Plan) { p.Entries = p.Entries[:1] }, []string{"time"}, "score/8 is missing"},
	} {
		if have := strings.Join(Worse(testPlan(t, false), edited(t, c.edit), c.names), ", "); have != c.want {
			t.Errorf("%s: %q, want %q", c.name, have, c.want)
		}
	}
}

// TestDiffIsOfBothSides: b against a says what a against b says, the other way round.
func TestDiffIsOfBothSides(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := testPlan(t, false), testPlan(t, false)
		for range rapid.IntRange(0, 8).Draw(r, "edits") {
			e := &b.Entries[rapid.IntRange(0, 1).Draw(r, "entry")]
			i := rapid.IntRange(0, len(e.Dispatches)-1).Draw(r, "dispatch")
			switch rapid.IntRange(0, 2).Draw(r, "kind") {
			case 0:
				e.Dispatches[i].Grid[0]++
			case 1:
				e.Dispatches[i].Site += "x"
			case 2:
				b.Program.Func(e.Name).Groups[i].Call.Kernel += "x"
			}
		}
		forth, back := Diff(a, b), Diff(b, a)
		for i := range forth {
			if len(forth[i].Rows) != len(back[i].Rows) {
				t.Fatalf("%s: %d rows and %d back", forth[i].Title, len(forth[i].Rows), len(back[i].Rows))
			}
		}
	})
}

func TestPredict(t *testing.T) {
	d := Dispatch{Cost: Cost{ReadBytes: 90, WriteBytes: 10, FLOPs: 1000, BytesPerPos: 50, FLOPsPerPos: 2000,
		Predicted: Times{Bytes: 2e-6, Operations: 1e-6, Stage: 3e-6}}}
	e := &Entry{Dispatches: []Dispatch{d, d}}
	for _, c := range []struct {
		depth                     int
		bytes, operations, stages float64 // us
		bound                     string
	}{
		{0, 4, 0, 6, "stage"},
		{2, 0, 10, 6, "operations"},
		{10, 0, 42, 6, "operations"},
	} {
		p := e.Predict(c.depth)
		for i, have := range []float64{p.Bytes, p.Operations, p.Stages} {
			if want := []float64{c.bytes, c.operations, c.stages}[i]; math.Abs(1e6*have-want) > 1e-3 {
				t.Errorf("depth %d: %+v, want %+v", c.depth, p, c)
			}
		}
		if p.Bound() != c.bound {
			t.Errorf("depth %d: bound %s, want %s", c.depth, p.Bound(), c.bound)
		}
	}
	if read, write, flops := e.Work(2); read != 380 || write != 20 || flops != 10000 {
		t.Errorf("work %d %d %d", read, write, flops)
	}
	if b := (Times{}).Bound(); b != "none" {
		t.Error(b)
	}
}

// TestLargestCtx compiles nothing: the regions of a plan with that context add up.
func TestLargestCtx(t *testing.T) {
	p := testPlan(t, false)
	perPos := SumBytes(p.Memory.KV)/64 + SumBytes(p.Memory.Tables)/64
	need := p.MemoryBytes()
	for memory, want := range map[int64]int{
		need: 64, need - 1: 63, need + perPos: 65, need + perPos - 1: 64, need - 64*perPos: 0, need - 64*perPos - 1: 0, 0: 0, 1 << 62: ir.MaxCtx,
	} {
		if have := p.LargestCtx(memory); have != want {
			t.Errorf("%s: %d, want %d", table.Bytes(memory), have, want)
		}
	}
}

// TestCacheRow counts what the regions hold: the host's are of float32, and rings do not grow.
func TestCacheRow(t *testing.T) {
	p := testPlan(t, false)
	row := p.cacheRow()
	if want := SumBytes(p.Memory.KV) / 64; row != want {
		t.Errorf("%d bytes a position, want %d", row, want)
	}
	for i := range p.Memory.KV {
		p.Memory.KV[i].Kept.RowBytes *= 2 // as of float32
	}
	if have := p.cacheRow(); have != 2*row {
		t.Errorf("%d bytes a position of float32, %d of float16", have, row)
	}
	for _, r := range p.Memory.KV {
		r.Kept.Kind = "ring"
	}
	if have := p.cacheRow(); have != 0 {
		t.Errorf("another position of rings takes %d bytes", have)
	}
}

// TestDiffOfBackends compares plans of which each has fields that the other lacks.
func TestDiffOfBackends(t *testing.T) {
	host := edited(t, func(p *Plan) { p.Require = Requirements{Backend: Host, Memory: p.Require.Memory} })
	have := differences(host, testPlan(t, false))
	for _, want := range []string{"plans|backend|host|vulkan", "plans|features|-|bufferDeviceAddress"} {
		if !slices.Contains(have, want) {
			t.Errorf("no row %q in\n%s", want, strings.Join(have, "\n"))
		}
	}
}

// TestDiffModules: of modules with one name only those count that have no like, and code of another format is no
// other version of a kernel.
func TestDiffModules(t *testing.T) {
	module := func(format, code string) Module { return Module{Name: "gemv", Format: format, Bytes: []byte(code)} }
	for _, c := range []struct {
		a, b []Module
		rows int
	}{
		{[]Module{module(PTX, "1"), module(PTX, "2")}, []Module{module(PTX, "2"), module(PTX, "1")}, 0},
		{[]Module{module(PTX, "1"), module(PTX, "2")}, []Module{module(PTX, "2"), module(PTX, "3")}, 1},
		{[]Module{module(PTX, "1"), module(PTX, "2")}, []Module{module(PTX, "3"), module(PTX, "4")}, 2},
		{[]Module{module(PTX, "1"), module(PTX, "2")}, []Module{module(PTX, "1")}, 0},
		{[]Module{module(PTX, "1")}, []Module{module(SPIRV, "2")}, 0},
	} {
		if got := len(diffModules(&Plan{Modules: c.a}, &Plan{Modules: c.b}).Rows); got != c.rows {
			t.Errorf("%d and %d modules: %d rows, want %d", len(c.a), len(c.b), got, c.rows)
		}
	}
}
