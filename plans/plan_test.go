package plans

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans/layout"
)

// testProgram is two entries of a model with one attention layer.
const testProgram = `zir 1
stage place
model arch="qwen3" name="tiny" path="tiny.gguf" source="c0ffee" target="llvmpipe" ctx=64 slots=1 layers=1

weight @embd : q8_0[32, 64] as planes
weight @norm : f32[64] as raw
weight @wq : q4_0[64, 64] as planes
weight @wk : f16[64, 64] as raw
table @rope {kind="rope", freqs=[1.0, 0.1], mscale=1.0} : f32[L, 8]
kv @k : f16[1, L, 64]
kv @v : f16[1, L, 64]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @out : i32[16]
step @count : i32[1]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "embed" stage=0 waits=0 {
    call "embed.q8_0/" kernel="embed.q8_0" wave=32 grid=[4, 1, 1] const={k=64} args=[@token, @embd, %0] why="only candidate"
    %0 = embed @token, @embd {scale=1.0} : f32[T, 64] at 0
  }
  group "q" stage=1 waits=1 {
    call "gemv.q4_0/" kernel="gemv.q4_0" wave=32 grid=[4, 1, 1] const={k=64, n=64} args=[%0, @norm, @wq, %2] why="cost model"
    %1 = rmsnorm %0, @norm {eps=1e-06, group=64} : f32[T, 64]
    %2 = linear %1, @wq : f32[T, 64] at 256
  }
  group "k" stage=1 waits=1 {
    call "gemv.f16/" kernel="gemv.f16" wave=32 grid=[4, 1, 1] const={k=64, n=64} args=[%0, @wk, %3] why="cost model"
    %3 = linear %0, @wk : f32[T, 64] at 512
  }
  group "kv" stage=2 waits=2 {
    call "kvwrite/" kernel="kvwrite" wave=32 grid=[4, 1, 1] const={w=64} args=[%3, @rope, @pos, @slot, @k] why=""
    %4 = rope %3, @pos, @rope {kind="neox", head_dim=16, n_rot=8} : f32[T, 64]
    kvwrite %4, @pos, @slot, @k
  }
  group "v" stage=2 waits=2 {
    call "kvcopy/" kernel="kvcopy" wave=32 grid=[4, 1, 1] const={w=64} args=[%3, @pos, @slot, @v] why=""
    kvwrite %3, @pos, @slot, @v
  }
  group "attn" stage=3 waits=3 {
    call "attn/" kernel="attn" wave=32 grid=[4, 1, 1] const={hd=16} args=[%2, @k, @v, @pos, @slot, %5] why=""
    %5 = attention %2, @k, @v, @pos, @slot {head_dim=16, heads=4, kv_heads=4, scale=0.25} : f32[T, 64] at 512
  }
  group "blk.0.residual" stage=4 waits=4 {
    call "add/" kernel="add" wave=32 grid=[4, 1, 1] const={w=64} args=[%0, %5, %6] why=""
    %6 = add %0, %5 : f32[T, 64] at 256
  }
  group "head" stage=5 waits=5 {
    call "gemv.q8_0/" kernel="gemv.q8_0" wave=32 grid=[2, 1, 1] const={k=64, n=32} args=[%6, @embd, %7] why="cost model"
    %7 = linear %6, @embd : io f32[T, 32]
  }
  group "argmax" stage=6 waits=6 {
    call "argmax/" kernel="argmax" wave=32 grid=[1, 1, 1] const={w=32} args=[%7, %8] why=""
    %8 = argmax %7 : io i32[T]
  }
  group "advance" stage=7 waits=7 {
    call "advance/" kernel="advance" wave=0 grid=[1, 1, 1] const={ring=16} args=[%8, @token, @pos, @slot, @n, @out, @count] why=""
    advance %8, @token, @pos, @slot, @n, @out, @count
  }
}

func "score/8" rows=8 sequences=one run=8 class=prompt {
  group "embed" stage=0 waits=0 {
    call "embed.q8_0/" kernel="embed.q8_0" wave=32 grid=[4, 1, 1] const={k=64} args=[@token, @embd, %0] why="only candidate"
    %0 = embed @token, @embd {scale=1.0} : f32[T, 64] at 0
  }
  group "head" stage=1 waits=1 {
    call "gemv.q8_0/" kernel="gemv.q8_0" wave=32 grid=[2, 1, 1] const={k=64, n=32} args=[%0, @embd, %1] why="cost model"
    %1 = linear %0, @embd : io f32[T, 32]
  }
}
`

// testPlan builds a plan for testProgram, with or without embedded weights.
func testPlan(t testing.TB, embed bool) *Plan {
	prog, err := ir.Parse(testProgram)
	if err != nil {
		t.Fatal(err)
	}
	p := &Plan{
		Header: Header{Compiler: "v0.1", Target: "llvmpipe", Ctx: 64, Slots: 1, KV: "f16", MaxRows: 8, Ring: 16,
			Model: Model{Arch: "qwen3", Name: "tiny", Path: "tiny.gguf", Fingerprint: "c0ffee", Shards: 1, Layers: 1, Vocab: 32, Parameters: 10304}},
		Require: Requirements{Backend: Vulkan, Vulkan: &VulkanRequirements{
			Features: []string{"bufferDeviceAddress"}, Subgroup: [2]int{32, 32}, Workgroup: 64, Shared: 256, PushConstants: 64}},
		Program: prog,
		Memory:  Memory{Arena: 2048},
		Vocab: Vocab{Model: "gpt2", Pre: "qwen2", Tokens: []string{"a", "b", "\x00\xff", ""}, Types: []int32{1, 1, 3, -1},
			Scores: []float32{0, 1, -1, 0.5}, Merges: []string{"a b"}, BOS: new(int32(2)), AddBOS: new(false), ChatTemplate: "{{ x }}"},
	}
	for v := &p.Vocab; len(v.Tokens) < p.Header.Model.Vocab; {
		v.Tokens, v.Types, v.Scores = append(v.Tokens, "t"), append(v.Types, 1), append(v.Scores, 0)
	}
	offset := int64(4096)
	for _, g := range prog.Globals {
		size, err := g.Type.Bytes(p.Header.MaxRows, prog.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		region := Region{Name: g.Name, Bytes: size}
		if r, ok := prog.Regions()[g]; ok {
			region.Kept = KeptOf(r, size)
		}
		switch g.Class {
		case ir.Weight:
			w := Weight{Name: g.Name, DType: g.Type.DType, Offset: offset, Size: size, At: -1}
			for _, d := range g.Type.Shape {
				w.Shape = append(w.Shape, int64(d))
			}
			l, err := layout.New(w.DType, w.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			w.Layout, w.Bytes = l.Name, l.Bytes
			if embed {
				w.At = int64(len(p.Embedded))
				rng := rand.New(rand.NewPCG(1, 2))
				for range size {
					p.Embedded = append(p.Embedded, byte(rng.Uint32()))
				}
			}
			offset += size
			p.Weights = append(p.Weights, w)
		case ir.KV:
			p.Memory.KV = append(p.Memory.KV, region)
		case ir.Table:
			p.Memory.Tables = append(p.Memory.Tables, region)
		case ir.Step:
			p.Memory.Step = append(p.Memory.Step, region)
		}
	}
	p.Entries = []Entry{
		{Name: "decode/1", Kind: "decode", Rows: 1, Run: 1, Class: "exact", Reach: 1, Logits: "decode/1:%7", Next: "decode/1:%8"},
		{Name: "score/8", Kind: "score", Rows: 8, Run: 8, Class: "prompt", Reach: 8, Logits: "score/8:%1"},
	}
	modules := map[string]int{}
	for i, f := range prog.Funcs {
		for _, v := range materialized(f) {
			if v.Class == ir.IO {
				size, _ := v.Type.Bytes(f.Rows, prog.Ctx)
				p.Memory.IO = append(p.Memory.IO, Region{Name: IORegion(f.Name, v), Bytes: size})
			}
		}
		for _, g := range f.Groups {
			p.Entries[i].Dispatches = append(p.Entries[i].Dispatches, testDispatch(p, f, g, modules))
		}
	}
	p.Require.Memory = p.MemoryBytes()
	return p
}

func testDispatch(p *Plan, f *ir.Func, g *ir.Group, modules map[string]int) Dispatch {
	c := g.Call
	pipeline, ok := modules[c.Kernel]
	if !ok {
		pipeline = len(p.Modules)
		modules[c.Kernel] = pipeline
		p.Modules = append(p.Modules, testModule(c, pipeline))
		pl := Pipeline{Module: pipeline, Wave: c.Wave, Workgroup: 64, Shared: 256}
		for i, k := range c.Consts {
			pl.Consts = append(pl.Consts, Const{uint32(i), k.Name, k.Value, k.Float})
		}
		p.Pipelines = append(p.Pipelines, pl)
	}
	d := Dispatch{Site: g.Name, Pipeline: pipeline, Grid: c.Grid, Order: g.Order, Why: c.Why, Cost: testCost(g)}
	outs := append(g.Outputs(f.Uses()), g.Writes()...)
	for _, v := range c.Args {
		space, region, offset := place(f.Name, v)
		size, _ := v.Type.Bytes(f.Rows, p.Program.Ctx)
		a := Arg{Name: v.String(), Space: space, Region: region, Offset: offset, Bytes: size}
		for _, in := range g.Inputs() {
			a.Read = a.Read || in == v
		}
		for _, out := range outs {
			a.Write = a.Write || out == v
		}
		if cover := (Cover{Arg: a.Name, Dims: []int{f.Rows}, Tile: []int{1}, Axis: []int{-1}}); a.Write && v.Class != ir.Step {
			if len(v.Type.Shape) > 1 {
				cover.Dims = append(cover.Dims, int(v.Type.Last()))
				cover.Tile = append(cover.Tile, 16)
				cover.Axis = append(cover.Axis, 0)
			}
			d.Cover = append(d.Cover, cover)
		}
		d.Args = append(d.Args, a)
	}
	return d
}

// testCost is bound by bytes, by operations or by its stage, and depends on the
// depth if g attends.
func testCost(g *ir.Group) Cost {
	c := Cost{ReadBytes: 100, WriteBytes: 10, FLOPs: 1000, Predicted: Times{Bytes: 3e-6, Operations: 1e-6, Stage: 2e-6}}
	switch g.Ops[0].Kind.Name {
	case "attention":
		c.BytesPerPos, c.FLOPsPerPos = 200, 500
	case "rmsnorm":
		c.Predicted.Operations = 4e-6
	case "kvwrite":
		c.Predicted = Times{Bytes: 1e-6}
	case "add":
		c.Predicted.Bytes = 1e-6
	}
	return c
}

// testModule has the interface of the kernel of a call and no code but its number.
func testModule(c *ir.Call, number int) Module {
	m := Module{Name: c.Kernel, Format: SPIRV, Interface: Interface{Entry: "main", Args: len(c.Args)}}
	for i, k := range c.Consts {
		m.Interface.Open = append(m.Interface.Open, OpenConst{uint32(i), k.Name})
	}
	for _, w := range []uint32{0x07230203, 0x10500, 0, 100, 0, 1<<16 | uint32(number)} {
		m.Bytes = le.AppendUint32(m.Bytes, w)
	}
	return m
}

func encoded(t testing.TB, p *Plan) []byte {
	var b bytes.Buffer
	if err := Write(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
