package passes

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
)

// randomProgram draws a function of groups of one to three ops over a few KV
// caches: embeds make values of several sizes, argmax and add read any, kvwrite and
// attention write and read the caches.
func randomProgram(t *rapid.T) *ir.Program {
	const width = 16
	p := &ir.Program{Ctx: 8, Slots: 1}
	rows := ir.MakeType(ir.I32, ir.T)
	token, pos, slot := p.AddGlobal("token", ir.Step, rows), p.AddGlobal("pos", ir.Step, rows), p.AddGlobal("slot", ir.Step, rows)
	var tables, caches []*ir.Value
	for i, w := range []ir.Dim{width, 3, 100, 1000} {
		tables = append(tables, p.AddGlobal(fmt.Sprintf("table%d", i), ir.Weight, ir.MakeType(ir.F32, 4, w)))
	}
	for i := range 2 {
		caches = append(caches, p.AddGlobal(fmt.Sprintf("cache%d", i), ir.KV, ir.MakeType(ir.F32, 1, ir.L, width)))
	}
	most := rapid.IntRange(1, 70).Draw(t, "rows")
	f := &ir.Func{Name: "decode/4", Rows: most, Run: most, Class: rapid.SampledFrom([]ir.StepClass{ir.PromptStep, ir.ExactStep}).Draw(t, "class")}
	p.Funcs = []*ir.Func{f}
	b := ir.NewBuilder(f)
	var all, wide []*ir.Value // wide have rows of width
	put := func(kind string, attrs ir.Attrs, args ...*ir.Value) {
		v, err := b.Op(kind, attrs, args...)
		if err != nil {
			t.Fatal(err)
		}
		if v == nil {
			return
		}
		if v.Type.DType == ir.F32 {
			all = append(all, v)
			if v.Type.Last() == width {
				wide = append(wide, v)
			}
		}
		if rapid.IntRange(0, 9).Draw(t, "io") == 0 {
			v.Class = ir.IO
		}
	}
	scale := ir.Attrs{{Name: "scale", Value: 1.0}}
	put("embed", scale, token, tables[0])
	for range rapid.IntRange(1, 40).Draw(t, "ops") {
		cache := rapid.SampledFrom(caches)
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			put("embed", scale, token, rapid.SampledFrom(tables).Draw(t, "table"))
		case 1:
			put("argmax", nil, rapid.SampledFrom(all).Draw(t, "x"))
		case 2:
			put("add", nil, rapid.SampledFrom(wide).Draw(t, "a"), rapid.SampledFrom(wide).Draw(t, "b"))
		case 3:
			put("kvwrite", nil, rapid.SampledFrom(wide).Draw(t, "x"), pos, slot, cache.Draw(t, "cache"))
		case 4:
			put("attention", ir.Attrs{{Name: "head_dim", Value: int64(width)}, {Name: "heads", Value: int64(1)},
				{Name: "kv_heads", Value: int64(1)}, {Name: "scale", Value: 1.0}},
				rapid.SampledFrom(wide).Draw(t, "q"), cache.Draw(t, "k"), cache.Draw(t, "v"), pos, slot)
		}
	}
	single := f.Groups
	f.Groups = nil
	for i, g := range single {
		if last := len(f.Groups) - 1; last >= 0 && len(f.Groups[last].Ops) < 3 && rapid.IntRange(0, 3).Draw(t, "join") == 0 {
			f.Groups[last].Ops = append(f.Groups[last].Ops, g.Ops...)
			continue
		}
		g.Name = fmt.Sprint("g", i)
		f.Groups = append(f.Groups, g)
	}
	if err := ir.VerifyStructure(p); err != nil {
		t.Fatal(err)
	}
	return p
}

// conflict reports whether a and b touch one value and one of them writes it. It
// looks at the op table only, not at what Group computes from it.
func conflict(a, b *ir.Group) bool {
	for _, x := range accesses(a) {
		for _, y := range accesses(b) {
			if x.v == y.v && (x.writes || y.writes) {
				return true
			}
		}
	}
	return false
}

type access struct {
	v      *ir.Value
	writes bool
}

func accesses(g *ir.Group) []access {
	var list []access
	for _, op := range g.Ops {
		for i, v := range op.Args {
			list = append(list, access{v, slices.Contains(op.Kind.Writes, i)})
		}
		if op.Result != nil {
			list = append(list, access{op.Result, true})
		}
	}
	return list
}

func TestAssignSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		before := slices.Clone(p.Funcs[0].Groups)
		p.Stage = ir.Schedule
		assignSteps(p.Funcs[0])
		for j, b := range before {
			bound := 0
			for _, a := range before[:j] {
				if !conflict(a, b) {
					continue
				}
				bound = max(bound, a.Step+1)
				if a.Step >= b.Step {
					t.Errorf("groups %s of step %d and %s of step %d touch one value", a.Name, a.Step, b.Name, b.Step)
				}
			}
			if b.Step != bound {
				t.Errorf("group %s has step %d, could have %d", b.Name, b.Step, bound)
			}
		}
		if len(p.Funcs[0].Groups) != len(before) {
			t.Errorf("%d groups, had %d", len(p.Funcs[0].Groups), len(before))
		}
		if err := ir.VerifyStructure(p); err != nil {
			t.Error(err)
		}
	})
}

func TestFillSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		f := p.Funcs[0]
		f.Rows, f.Run = 512, 512
		before := slices.Clone(f.Groups)
		p.Stage = ir.Schedule
		assignSteps(f)
		earliest, steps := map[*ir.Group]int{}, 0
		for _, g := range f.Groups {
			earliest[g], steps = g.Step, max(steps, g.Step)
		}
		fillSteps(f)
		largestLast(f)
		for i, g := range f.Groups[1:] {
			if a := f.Groups[i]; a.Step > g.Step || a.Step == g.Step && workOf(f, a) > workOf(f, g) {
				t.Errorf("group %s of step %d is before %s of step %d", a.Name, a.Step, g.Name, g.Step)
			}
		}
		for j, b := range before {
			for _, a := range before[:j] {
				if conflict(a, b) && a.Step >= b.Step {
					t.Errorf("groups %s of step %d and %s of step %d touch one value", a.Name, a.Step, b.Name, b.Step)
				}
			}
			if b.Step < earliest[b] || b.Step > steps {
				t.Errorf("group %s has step %d: it could have %d, and there are %d", b.Name, b.Step, earliest[b], steps)
			}
		}
		if err := ir.VerifyStructure(p); err != nil {
			t.Error(err)
		}
	})
}

func TestPlaceArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		f := p.Funcs[0]
		assignSteps(f)
		if err := placeArena(p); err != nil {
			t.Fatal(err)
		}
		size, err := ArenaBytes(f, p.Ctx)
		if err != nil {
			t.Fatal(err)
		}
		placed := liveRanges(t, f, p.Ctx)
		sum := int64(0)
		for i, a := range placed {
			sum += align(a.bytes)
			if a.v.Offset < 0 || a.v.Offset%ArenaAlign != 0 || a.v.Offset+a.bytes > size {
				t.Errorf("%s: %d bytes at %d of %d", a.v, a.bytes, a.v.Offset, size)
			}
			for _, b := range placed[:i] {
				if a.first <= b.last && b.first <= a.last && a.v.Offset < b.v.Offset+b.bytes && b.v.Offset < a.v.Offset+a.bytes {
					t.Errorf("%s (%d bytes at %d, steps %d to %d) and %s (%d bytes at %d, steps %d to %d) overlap",
						a.v, a.bytes, a.v.Offset, a.first, a.last, b.v, b.bytes, b.v.Offset, b.first, b.last)
				}
			}
		}
		if size > sum {
			t.Errorf("arena of %d bytes for values of %d", size, sum)
		}
	})
}

// liveRanges finds, op by op, what must have a place and when it is alive.
func liveRanges(t *rapid.T, f *ir.Func, ctx int) []span {
	var list []span
	for i, g := range f.Groups {
		for _, op := range g.Ops {
			v := op.Result
			if v == nil || v.Class != ir.Arena {
				continue
			}
			n, err := v.Type.Bytes(f.Rows, ctx)
			if err != nil {
				t.Fatal(err)
			}
			s, escapes := span{v, g.Step, g.Step, n}, false
			for _, h := range f.Groups[i+1:] {
				for _, reader := range h.Ops {
					if slices.Contains(reader.Args, v) {
						escapes, s.last = true, max(s.last, h.Step)
					}
				}
			}
			if escapes {
				list = append(list, s)
			} else if v.Offset >= 0 {
				t.Errorf("%s has a place, and nobody outside its group reads it", v)
			}
		}
	}
	return list
}
