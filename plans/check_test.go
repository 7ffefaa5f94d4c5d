package plans

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

func TestCheckTakesAValidPlan(t *testing.T) {
	for _, p := range Check(testPlan(t, true)) {
		t.Error(p)
	}
	if bad := Check(hostPlan(t)); len(bad) > 0 {
		t.Error(bad)
	}
}

// hostPlan is testPlan without kernels.
func hostPlan(t testing.TB) *Plan {
	p := testPlan(t, false)
	p.Modules, p.Pipelines, p.Require = nil, nil, Requirements{Backend: Host, Memory: p.Require.Memory}
	for i := range p.Entries {
		for j := range p.Entries[i].Dispatches {
			d := &p.Entries[i].Dispatches[j]
			d.Pipeline, d.Args, d.Cover = -1, nil, nil
		}
	}
	return p
}

// dispatch returns a dispatch of decode/1 with its group.
func dispatch(p *Plan, site string) (*Dispatch, *ir.Group) {
	for i := range p.Entries[0].Dispatches {
		if d := &p.Entries[0].Dispatches[i]; d.Site == site {
			return d, p.Program.Funcs[0].Groups[i]
		}
	}
	panic("no dispatch " + site)
}

// allAlike makes all entries alike, which they are not.
func allAlike(p *Plan) {
	for i, f := range p.Program.Funcs {
		p.Entries[i].Class, f.Class = "alike", ir.AlikeStep
	}
}

func arg(p *Plan, site, name string) *Arg {
	d, _ := dispatch(p, site)
	for i := range d.Args {
		if d.Args[i].Name == name {
			return &d.Args[i]
		}
	}
	panic("no argument " + name)
}

// moveTo puts a value at another arena offset, in the program and in all arguments.
func moveTo(p *Plan, id int, offset int64) {
	for _, op := range p.Program.Funcs[0].Ops() {
		if op.Result != nil && op.Result.ID == id {
			op.Result.Offset = offset
		}
	}
	for i := range p.Entries[0].Dispatches {
		for j, v := range p.Program.Funcs[0].Groups[i].Call.Args {
			if !v.IsGlobal() && v.ID == id {
				p.Entries[0].Dispatches[i].Args[j].Offset = offset
			}
		}
	}
}

// setOrder changes the order of a dispatch and its group.
func setOrder(p *Plan, site string, change func(o *ir.Order)) {
	d, g := dispatch(p, site)
	change(&d.Order)
	g.Order = d.Order
}

// setStage moves a dispatch and its group to a stage, behind all before.
func setStage(p *Plan, site string, stage int) {
	setOrder(p, site, func(o *ir.Order) { o.Stage, o.Waits = stage, stage })
}

// mixRows makes decode/1 an entry of two rows, of two sequences, that the kernels of the
// sites take.
func mixRows(p *Plan, sites ...string) {
	p.Header.Slots, p.Program.Slots = 2, 2
	for i := range p.Memory.KV {
		r := &p.Memory.KV[i]
		r.Bytes, r.Kept.Sequences, p.Program.Global(r.Name).Type.Shape[0] = 2*r.Bytes, 2, 2
	}
	p.Entries[0].Rows, p.Entries[0].Run, p.Entries[0].Reach, p.Program.Funcs[0].Rows, p.Program.Funcs[0].Run = 2, 2, 2, 2, 2
	for _, site := range sites {
		d, _ := dispatch(p, site)
		d.Mixes = true
	}
}

func early(o *ir.Order) { o.Early = ir.LoadsFirst }

// onCUDA makes the plan one for CUDA, with kernels that no driver takes.
func onCUDA(p *Plan, arch int) {
	p.Require.Backend, p.Require.Vulkan, p.Require.CUDA = CUDA, nil, &CUDARequirements{Arch: arch, Workgroup: 1024, Shared: 48 << 10}
}

// TestCheckTakesQueuesAndEarlyStarts: on CUDA all that testPlan can have of both is right.
func TestCheckTakesQueuesAndEarlyStarts(t *testing.T) {
	p := testPlan(t, false)
	onCUDA(p, 90)
	setOrder(p, "v", func(o *ir.Order) { o.Queue = 1 })
	for _, site := range []string{"blk.0.residual", "head", "argmax", "advance"} {
		setOrder(p, site, early)
	}
	for _, bad := range Check(p) {
		t.Error(bad)
	}
}

// TestCheckFinds breaks a valid plan in every way and wants the rule that says so.
func TestCheckFinds(t *testing.T) {
	tests := []struct {
		name    string
		mutate  func(p *Plan)
		rule    string
		message string
	}{
		{"target", func(p *Plan) { p.Header.Target = "sm90" }, "schema", "target"},
		{"fingerprint", func(p *Plan) { p.Header.Model.Fingerprint = "00" }, "schema", "fingerprint"},
		{"pipeline index", func(p *Plan) { p.Entries[0].Dispatches[0].Pipeline = 77 }, "schema", `"decode/1": dispatch 0 "embed": pipeline 77`},
		{"machine", func(p *Plan) { p.Pipelines[0].Machine = &Machine{Waves: -1} }, "schema", "negative"},
		{"module index", func(p *Plan) { p.Pipelines[0].Module = -1 }, "schema", "module -1"},
		{"spirv", func(p *Plan) { p.Modules[0].Bytes[0] = 1 }, "schema", "not SPIR-V"},
		{"half a word", func(p *Plan) { p.Modules[0].Bytes = p.Modules[0].Bytes[:22] }, "schema", "not SPIR-V"},
		{"format", func(p *Plan) { p.Modules[1].Format = "dxil" }, "schema", `unknown format "dxil"; this program reads spirv`},
		{"module twice", func(p *Plan) { p.Modules = append(p.Modules, p.Modules[0]) }, "schema", "repeated"},
		{"arguments", func(p *Plan) { p.Modules[0].Interface.Args = 1 << 20 }, "schema", "1048576 arguments"},
		{"constant twice", func(p *Plan) { p.Modules[1].Interface.Open[1].ID = 0 }, "schema", "constant id 0 after 0"},
		{"backend", func(p *Plan) { p.Require.Backend = "metal" }, "schema", `"metal"`},
		{"backend without its part", func(p *Plan) { p.Require.Vulkan = nil }, "schema", "requirements of vulkan: false, want true"},
		{"host with kernels", func(p *Plan) { p.Require = Requirements{Backend: Host} }, "schema", "pipelines for backend"},
		{"region", func(p *Plan) { arg(p, "q", "%0").Region = "x" }, "schema", `no region "x"`},
		{"space", func(p *Plan) { arg(p, "q", "%0").Space = "push" }, "schema", `space "push"`},
		{"grid", func(p *Plan) { p.Entries[0].Dispatches[0].Grid[1] = 0 }, "schema", "grid"},
		{"negative size", func(p *Plan) { p.Memory.KV[0].Bytes = -1 }, "schema", "-1 bytes"},
		{"run", func(p *Plan) { p.Entries[0].Run = 2 }, "schema", "runs of 2"},
		{"class", func(p *Plan) { p.Entries[1].Class = "exact" }, "schema", `class "exact", the function has 8 and "prompt"`},
		{"decode of prompts", func(p *Plan) { p.Entries[0].Class, p.Program.Funcs[0].Class = "prompt", ir.PromptStep }, "entry", "steps are prompt"},
		{"two orders of sums", func(p *Plan) {
			p.Entries[1].Class, p.Program.Funcs[1].Class = "exact", ir.ExactStep
			p.Program.Funcs[1].Groups[0].Call.Candidate = "other/"
		}, "exact", `sums are of order "other", in decode/1 of "embed.q8_0"`},
		{"alike, with other sums", func(p *Plan) {
			allAlike(p)
			p.Program.Funcs[1].Groups[0].Call.Sums = "other"
		}, "alike", `sums are "other", in decode/1, which is alike, "" embed`},
		{"alike, with another op", func(p *Plan) {
			allAlike(p)
			g := p.Program.Funcs[0].Groups[7]
			g.Ops = append(g.Ops, p.Program.Funcs[0].Groups[8].Ops...)
			p.Program.Funcs[0].Groups = slices.Delete(p.Program.Funcs[0].Groups, 8, 9)
			p.Entries[0].Dispatches = slices.Delete(p.Entries[0].Dispatches, 8, 9)
		}, "alike", "has other ops in decode/1, which is alike head"},
		{"alike, without a site", allAlike, "alike", "score/8, which is alike, has no such site q"},
		{"sums of an entry that is not alike", func(p *Plan) { p.Program.Funcs[1].Groups[0].Call.Sums = "some" }, "alike", `sums "some" are stated, and the class is "prompt" embed`},
		{"parts without a grain", func(p *Plan) {
			p.Entries[1].Part, p.Entries[1].Kind, p.Program.Funcs[1].Part, p.Program.Funcs[1].Sequences = 4, "prefill", 4, ir.ManySequences
		}, "schema", "parts of 4 rows with a grain of 0"},
		{"parts of an entry that reads no prompts", func(p *Plan) {
			e, f := &p.Entries[1], p.Program.Funcs[1]
			f.Sequences, f.Part, e.Part = ir.ManySequences, 4, 4
		}, "schema", `parts of 4 rows in an entry of kind "score"`},
		{"dispatch missing", func(p *Plan) { p.Entries[1].Dispatches = p.Entries[1].Dispatches[:1] }, "schema", "1 dispatches for 2 groups"},
		{"layout", func(p *Plan) { p.Weights[0].Layout = "raw" }, "schema", `layout "raw", want "planes"`},
		{"weight size", func(p *Plan) { p.Weights[0].Bytes += 16 }, "schema", "bytes in the file"},
		{"embedded", func(p *Plan) { p.Weights[0].At = 16 }, "schema", "embedded"},
		{"embedded past the end", func(p *Plan) { *p = *testPlan(t, true); p.Embedded = p.Embedded[:len(p.Embedded)-1] }, "schema", "8192 bytes at 4736 of 12927 embedded bytes"},
		{"offset within a word", func(p *Plan) { arg(p, "q", "%0").Offset = 2 }, "schema", `argument "%0": 256 bytes at 2`},
		{"logits", func(p *Plan) { p.Entries[0].Logits = "none" }, "schema", "logits"},
		{"no logits", func(p *Plan) { p.Entries[0].Logits = "" }, "schema", "logits"},
		{"program", func(p *Plan) { p.Program.Funcs[0].Groups[1].Ops = nil }, "schema", "no ops"},

		{"requirement", func(p *Plan) { p.Require.Memory++ }, "memory", "add up"},
		{"arena", func(p *Plan) { p.Memory.Arena -= 4; p.Require.Memory -= 4 }, "memory", "arena has"},
		{"fat arena", func(p *Plan) { p.Memory.Arena += 512; p.Require.Memory += 512 }, "memory", "arena has"},
		{"small cache", func(p *Plan) {
			r := &p.Memory.KV[0]
			r.Bytes, r.Kept.RowBytes = r.Bytes/2, r.Kept.RowBytes/2
			p.Require.Memory = p.MemoryBytes()
		}, "memory", "kv region"},
		{"cache of other bytes", func(p *Plan) { p.Memory.KV[0].Bytes /= 2 }, "schema", "1 sequences of 64 rows of 128 bytes are not its 4096 bytes"},
		{"way back", func(p *Plan) { p.Memory.KV[1].Kept.Back-- }, "regions", "a window of 0, 63 positions back, its readers and writers have"},
		{"small result", func(p *Plan) { p.Memory.IO[0].Bytes -= 4; p.Require.Memory = p.MemoryBytes() }, "memory", "io region"},
		{"weight not in program", func(p *Plan) {
			w := p.Weights[0]
			w.Name = "extra"
			p.Weights = append(p.Weights, w)
			p.Require.Memory = p.MemoryBytes()
		}, "memory", "not of the program"},
		{"weight of another shape", func(p *Plan) { p.Weights[0].Shape = []int64{64, 32} }, "memory", "program has q8_0[32, 64]"},
		{"weight of another layout", func(p *Plan) { p.Program.Globals[0].Layout = "raw" }, "memory", `weight has layout "planes", program has "raw"`},
		{"weight missing", func(p *Plan) { p.Program.AddGlobal("w9", ir.Weight, ir.MakeType(ir.F32, 4)).Layout = "raw" }, "memory", "not in the plan"},

		{"live values overlap", func(p *Plan) { moveTo(p, 3, 256) }, "aliasing", "overlap"},
		{"overlap by one value's end", func(p *Plan) { moveTo(p, 2, 240) }, "aliasing", "overlap %0"},
		{"no place", func(p *Plan) { moveTo(p, 2, 8) }, "aliasing", "multiple of 16"},
		{"output into its input", func(p *Plan) { moveTo(p, 6, 512) }, "aliasing", "%6"},

		{"consumer in the same stage", func(p *Plan) { setStage(p, "q", 0); setStage(p, "k", 0) }, "order", "reads %0"},
		{"cache read in the stage that writes it", func(p *Plan) { setStage(p, "attn", 2) }, "order", "reads @k"},
		{"written in the stage that still reads it", func(p *Plan) {
			for _, site := range []string{"attn", "blk.0.residual", "head", "argmax"} {
				setStage(p, site, 7)
			}
		}, "order", `writes @pos and waits for 7 stages: "attn" reads it in stage 7`},
		{"next token before the head has read it", func(p *Plan) { setStage(p, "advance", 6) }, "order", "reads %8"},

		{"argument after its region", func(p *Plan) { arg(p, "head", "@embd").Bytes += 4 }, "bounds", `of weight "embd"`},
		{"offset at the end", func(p *Plan) { arg(p, "head", "%7").Offset = 128 }, "bounds", `of io "decode/1:%7"`},
		{"huge offset", func(p *Plan) { arg(p, "q", "%0").Offset = 1<<63 - 4 }, "bounds", "arena"},

		{"other place than in the program", func(p *Plan) { arg(p, "q", "%2").Offset = 1024 }, "call", "at 1024"},
		{"other weight", func(p *Plan) { arg(p, "q", "@wq").Region = "wk" }, "call", `"wk"`},
		{"other grid", func(p *Plan) { d, _ := dispatch(p, "q"); d.Grid[0] = 5 }, "call", "grid"},
		{"other kernel", func(p *Plan) { p.Modules[1].Name = "gemv.q5_k" }, "call", "gemv.q5_k"},
		{"other constant", func(p *Plan) { p.Pipelines[1].Consts[0].Value = 65 }, "call", "k=64"},
		{"argument missing", func(p *Plan) { d, _ := dispatch(p, "attn"); d.Args = d.Args[:5]; d.Cover = nil }, "call", "5 arguments, call has 6"},

		{"constant that is not there", func(p *Plan) { p.Pipelines[1].Consts[1].ID = 9 }, "module", "no specialization constant 9"},
		{"constant of another name", func(p *Plan) { p.Modules[1].Interface.Open[0].Name = "m" }, "module", "specialization constant 0 is m"},
		{"constant without value", func(p *Plan) {
			in := &p.Modules[1].Interface
			in.Open = append(in.Open, OpenConst{7, "rows"})
		}, "module", "7, rows, has no value"},
		{"argument too many", func(p *Plan) { p.Modules[1].Interface.Args = 5 }, "module", "4 arguments, the module takes 5"},
		{"workgroup that the code fixes", func(p *Plan) { p.Modules[1].Interface.Workgroup = 32 }, "module", "workgroup of 32"},

		{"write to a weight", func(p *Plan) { arg(p, "q", "@wq").Write = true }, "readonly", `"wq"`},

		{"grid too small", func(p *Plan) { d, g := dispatch(p, "q"); d.Grid[0], g.Call.Grid[0] = 3, 3 }, "coverage", "takes workgroups up to 4"},
		{"workgroup outside", func(p *Plan) { d, g := dispatch(p, "q"); d.Grid[0], g.Call.Grid[0] = 5, 5 }, "coverage", "workgroup 4 of axis 0 writes nothing"},
		{"element written twice", func(p *Plan) { d, g := dispatch(p, "q"); d.Grid[1], g.Call.Grid[1] = 2, 2 }, "coverage", "written once by each of 2"},
		{"part not covered", func(p *Plan) { d, _ := dispatch(p, "q"); d.Cover[0].Dims[1] = 63 }, "coverage", "have 63 elements"},
		{"gap between outputs", func(p *Plan) { d, _ := dispatch(p, "q"); d.Cover[0].First = []int{0, 1}; d.Grid[0] = 5 }, "coverage", "workgroup 0 of axis 0"},
		{"shared dim outside of the grid", func(p *Plan) {
			d, _ := dispatch(p, "q")
			d.Cover[0].First, d.Cover[0].Tile[1] = []int{0, 4}, 0
		}, "coverage", "takes workgroups up to 5"},
		{"no cover", func(p *Plan) { d, _ := dispatch(p, "kv"); d.Cover = nil }, "coverage", "nothing says"},
		{"output not written", func(p *Plan) {
			d, _ := dispatch(p, "q")
			a := arg(p, "q", "%2")
			a.Write, a.Read, d.Cover = false, true, nil
		}, "coverage", "no argument writes %2"},
		{"input written", func(p *Plan) { arg(p, "q", "%0").Write = true }, "coverage", "does not produce"},
		{"short write", func(p *Plan) { arg(p, "q", "%2").Bytes -= 4 }, "coverage", "writes 252 bytes"},
		{"weight not read", func(p *Plan) { a := arg(p, "q", "@wq"); a.Read, a.Write = false, true }, "coverage", "no dispatch reads the weight"},

		{"write under a read", func(p *Plan) { a := arg(p, "k", "%3"); a.Offset = 128 }, "hazard", `"%0" of "q"`},
		{"write under a write", func(p *Plan) { a := arg(p, "v", "@v"); a.Region = "k" }, "hazard", `kv "k"`},
		{"in place", func(p *Plan) { a := arg(p, "blk.0.residual", "%6"); a.Offset = 0 }, "hazard", `of "blk.0.residual"`},

		{"waits for less, and reads what is written", func(p *Plan) { setOrder(p, "attn", func(o *ir.Order) { o.Waits = 2 }) }, "order", `reads @k and waits for 2 stages: "kv" writes it in stage 2`},
		{"waits for less, and writes what is read", func(p *Plan) { setOrder(p, "advance", func(o *ir.Order) { o.Waits = 1 }) }, "order", `writes @pos and waits for 1 stages: "attn" reads it in stage 3`},
		{"waits for less, and the bytes are another's", func(p *Plan) { setOrder(p, "head", func(o *ir.Order) { o.Waits = 3 }) }, "hazard", `of "blk.0.residual", of stage 4, overlap in arena ""; it waits for 3 stages`},
		{"waits for its own stage", func(p *Plan) { setOrder(p, "attn", func(o *ir.Order) { o.Waits = 4 }) }, "schema", "in stage 3 it waits for 4 stages"},
		{"queue of none", func(p *Plan) { setOrder(p, "attn", func(o *ir.Order) { o.Queue = ir.Queues }) }, "schema", "queue 16 of 16"},
		{"unknown early start", func(p *Plan) { setOrder(p, "attn", func(o *ir.Order) { o.Early = "soon" }) }, "schema", `early start "soon"`},
		{"queue of the dispatch alone", func(p *Plan) { p.Entries[0].Dispatches[3].Queue = 1 }, "schema", `dispatch 3 "kv", stage=2 waits=2 queue=1: group is "kv", stage=2 waits=2`},

		{"second queue", func(p *Plan) { setOrder(p, "v", func(o *ir.Order) { o.Queue = 1 }) }, "launch", "is on queue 1; backend vulkan has 1"},
		{"early, on Vulkan", func(p *Plan) { setOrder(p, "head", early) }, "launch", "begins early, which the device cannot have"},
		{"early, on sm_89", func(p *Plan) { onCUDA(p, 89); setOrder(p, "head", early) }, "launch", "begins early, which the device cannot have"},
		{"early, beside another", func(p *Plan) { onCUDA(p, 90); setOrder(p, "v", early) }, "launch", "begins early and is not alone in stage 2"},
		{"early, behind two", func(p *Plan) { onCUDA(p, 90); setOrder(p, "attn", early) }, "launch", "begins early and is not alone in stage 3, behind a lone dispatch"},
		{"early, behind nothing", func(p *Plan) { onCUDA(p, 90); setOrder(p, "embed", early) }, "launch", "begins early and is not alone"},
		{"early, in another entry than what is before", func(p *Plan) {
			onCUDA(p, 90)
			early(&p.Entries[1].Dispatches[0].Order)
			early(&p.Program.Funcs[1].Groups[0].Order)
		}, "launch", "begins early and is not alone"},
		{"early, without waiting", func(p *Plan) {
			onCUDA(p, 90)
			setOrder(p, "head", func(o *ir.Order) { early(o); o.Waits-- })
		}, "launch", "for whose end it waits"},
		{"early, on another queue", func(p *Plan) {
			onCUDA(p, 90)
			setOrder(p, "head", func(o *ir.Order) { early(o); o.Queue = 1 })
		}, "launch", "begins early on queue 1, behind queue 0; want 0"},
		{"early, behind another queue", func(p *Plan) {
			onCUDA(p, 90)
			setOrder(p, "blk.0.residual", func(o *ir.Order) { o.Queue = 1 })
			setOrder(p, "head", early)
		}, "launch", "begins early on queue 0, behind queue 1; want 0"},

		{"cache of one sequence", func(p *Plan) { mixRows(p, "v", "attn") }, "sequences", "one sequence, here they may be of 2 kv"},
		{"attention of one sequence", func(p *Plan) { mixRows(p, "kv", "v") }, "sequences", "here they may be of 2 attn"},

		{"steps that begin anywhere", func(p *Plan) { p.Entries[1].Grain = 1 }, "grain", "steps begin at multiples of 1, its dispatches have it 0"},
		{"tiles of rows that no step has", func(p *Plan) { p.Entries[1].Dispatches[0].Grain = maxGrain + 1 }, "schema", "a grain of 65537"},
		{"a grain of more than a step", func(p *Plan) { p.Entries[1].Grain = p.Entries[1].Run + 1 }, "schema", "a grain of 9 with runs of 8"},
		{"a grain below none", func(p *Plan) { p.Entries[1].Grain = -1 }, "schema", "a grain of -1"},

		{"kind of another entry", func(p *Plan) { p.Entries[0].Kind = "prefill" }, "entry", `kind is "prefill"`},
		{"score that chooses", func(p *Plan) { p.Entries[1].Next = "decode/1:%8" }, "entry", `next ids are in region "decode/1:%8"`},
		{"logits of another entry", func(p *Plan) { p.Entries[0].Logits = "score/8:%1" }, "entry", `logits are in region "score/8:%1"`},
		{"next id in the logits", func(p *Plan) { p.Entries[0].Next = "decode/1:%7" }, "entry", `next ids are in region "decode/1:%7"`},
		{"larger ring", func(p *Plan) { p.Header.Ring *= 4 }, "entry", "the header has 64 ids"},
		{"vocabulary cut short", func(p *Plan) { p.Vocab.Tokens, p.Vocab.Types, p.Vocab.Scores = p.Vocab.Tokens[:9], nil, nil }, "entry", "the tokenizer has 9"},
		{"vocabulary cut short, in the header too", func(p *Plan) {
			p.Vocab.Tokens, p.Vocab.Types, p.Vocab.Scores = p.Vocab.Tokens[:9], nil, nil
			p.Header.Model.Vocab = 9
		}, "entry", "of a vocabulary of 9"},
		{"types of some tokens", func(p *Plan) { p.Vocab.Types = p.Vocab.Types[:3] }, "entry", "3 tokens have types"},
		{"scores of some tokens", func(p *Plan) { p.Vocab.Scores = p.Vocab.Scores[:3] }, "entry", "3 tokens have scores"},

		{"position in a constant", func(p *Plan) { p.Pipelines[5].Consts[0].Name = "pos" }, "step-block", "pos"},

		{"workgroup", func(p *Plan) { p.Pipelines[0].Workgroup = 128 }, "requirements", "workgroup of 128"},
		{"push constants", func(p *Plan) { p.Require.Vulkan.PushConstants = 16 }, "requirements", "bytes of push constants"},
		{"subgroup", func(p *Plan) { p.Require.Vulkan.Subgroup = [2]int{64, 64} }, "requirements", "subgroup size 32"},

		{"pipeline unused", func(p *Plan) { p.Pipelines = append(p.Pipelines, p.Pipelines[0]) }, "unused", "no dispatch"},
		{"module unused", func(p *Plan) { p.Modules = append(p.Modules, Module{"m", SPIRV, p.Modules[0].Bytes, Interface{}}) }, "unused", "no pipeline"},
	}
	broken := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := testPlan(t, false)
			tt.mutate(p)
			bad := Check(p)
			broken[tt.rule] = true
			if !slices.ContainsFunc(bad, func(b Problem) bool { return b.Rule == tt.rule && strings.Contains(b.Message+" "+b.Site, tt.message) }) {
				t.Errorf("want %s with %q, have %v", tt.rule, tt.message, bad)
			}
		})
	}
	for _, r := range Rules() {
		if !broken[r.Name] {
			t.Errorf("no test breaks rule %s", r.Name)
		}
		if r.Doc == "" {
			t.Errorf("rule %s has no doc", r.Name)
		}
	}
}

// TestOrdersOfLaunches draws what some dispatches wait for, their queues and early starts, and compares the checker
// with all pairs of dispatches: it refuses an order if one of them leaves two accesses to the same bytes open, or
// begins early where it must not. An order of either kind comes first, whatever is drawn.
func TestOrdersOfLaunches(t *testing.T) {
	for want, change := range map[bool]func(o *ir.Order){
		false: func(o *ir.Order) { o.Queue = 1 },
		true:  func(o *ir.Order) { o.Waits = 0 },
	} {
		p := testPlan(t, false)
		onCUDA(p, 90)
		list := p.Entries[0].Dispatches
		setOrder(p, list[len(list)-1].Site, change)
		if wrong, bad := wrongOrder(list), Check(p); wrong != want || (len(bad) > 0) != want {
			t.Errorf("wrong: %t, %t by all pairs, the checker says %v", want, wrong, bad)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := testPlan(t, false)
		onCUDA(p, 90)
		list := p.Entries[0].Dispatches
		for range rapid.IntRange(1, 3).Draw(rt, "changes") {
			i := rapid.IntRange(0, len(list)-1).Draw(rt, "dispatch")
			setOrder(p, list[i].Site, func(o *ir.Order) {
				o.Waits = rapid.IntRange(0, o.Stage).Draw(rt, "waits")
				o.Queue = rapid.SampledFrom([]int{0, 0, 1, ir.Queues - 1}).Draw(rt, "queue")
				o.Early = rapid.SampledFrom([]ir.Early{ir.NotEarly, ir.NotEarly, ir.WaitsFirst, ir.LoadsFirst}).Draw(rt, "early")
			})
		}
		if wrong, bad := wrongOrder(list), Check(p); (len(bad) > 0) != wrong {
			rt.Fatalf("wrong: %t, the checker says %v", wrong, bad)
		}
	})
}

// wrongOrder compares all pairs of dispatches.
func wrongOrder(list []Dispatch) bool {
	wrong := false
	inStage := map[int]int{}
	for _, d := range list {
		inStage[d.Stage]++
	}
	for i := range list {
		d := &list[i]
		for j := range list[:i] {
			other := &list[j]
			if other.Stage < d.Waits {
				continue
			}
			for _, a := range d.Args {
				for _, b := range other.Args {
					wrong = wrong || (a.Write || b.Write) && a.Space == b.Space && a.Region == b.Region && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes
				}
			}
		}
		if d.Early != ir.NotEarly {
			wrong = wrong || i == 0 || inStage[d.Stage] > 1 || inStage[list[i-1].Stage] > 1 || d.Waits < d.Stage || d.Queue != 0 || list[i-1].Queue != 0
		}
	}
	return wrong
}

func TestCheckOfHostPlans(t *testing.T) {
	for rule, mutate := range map[string]func(p *Plan){
		"aliasing": func(p *Plan) { p.Program.Funcs[0].Groups[2].Ops[0].Result.Offset = 256 },
		"order":    func(p *Plan) { setStage(p, "attn", 2) },
		"memory":   func(p *Plan) { p.Require.Memory = 1 },
		"schema":   func(p *Plan) { p.Entries[0].Dispatches[0].Pipeline = 0 },
	} {
		p := hostPlan(t)
		mutate(p)
		if bad := Check(p); !slices.ContainsFunc(bad, func(b Problem) bool { return b.Rule == rule }) {
			t.Errorf("%s: %v", rule, bad)
		}
	}
}

// TestSweep compares the sweep with all pairs: it must find a hazard if there is
// one, and none that is not.
func TestSweep(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "n")
		var all []access
		for i := range n {
			lo := rapid.Int64Range(0, 12).Draw(rt, "lo")
			size := rapid.Int64Range(1, 6).Draw(rt, "size")
			s := &site{entry: &Entry{}, Dispatch: &Dispatch{Site: string(rune('a' + i))}}
			all = append(all, access{s, &Arg{Read: true, Write: rapid.Bool().Draw(rt, "write")}, lo, lo + size})
		}
		hazards := map[string]bool{} // sites in at least one
		for i, a := range all {
			for _, b := range all[:i] {
				if (a.arg.Write || b.arg.Write) && a.lo < b.hi && b.lo < a.hi {
					hazards[a.site.Site], hazards[b.site.Site] = true, true
				}
			}
		}
		c := &checker{}
		sweep(c, all)
		if (len(c.problems) > 0) != (len(hazards) > 0) {
			rt.Fatalf("%v, want hazards of %v", c.problems, hazards)
		}
		for _, p := range c.problems {
			if !hazards[p.Site] {
				rt.Fatalf("%v, want hazards of %v", p, hazards)
			}
		}
	})
}

// TestAliasingOfRandomPlacements compares rule aliasing with a walk over the steps
// that marks every byte with its owner.
func TestAliasingOfRandomPlacements(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := testPlan(t, false)
		f := p.Program.Funcs[0]
		for _, v := range materialized(f) {
			if v.Class == ir.Arena {
				v.Offset = 16 * rapid.Int64Range(0, 80).Draw(rt, "offset")
			}
		}
		overlap := false
		for step := range 8 {
			owner := map[int64]*ir.Value{}
			for _, v := range materialized(f) {
				first, last := -1, -1
				for _, g := range f.Groups {
					if slices.Contains(g.Ops, v.Def) {
						first, last = g.Stage, max(last, g.Stage)
					}
					if slices.Contains(g.Inputs(), v) {
						last = max(last, g.Stage)
					}
				}
				if v.Class != ir.Arena || step < first || step > last {
					continue
				}
				for b := v.Offset; b < v.Offset+256; b++ {
					overlap = overlap || owner[b] != nil
					owner[b] = v
				}
			}
		}
		c := &checker{plan: p}
		checkAliasing(c)
		if (len(c.problems) > 0) != overlap {
			rt.Fatalf("overlap %t, rule says %v", overlap, c.problems)
		}
	})
}
