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

func TestAssignStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		before := slices.Clone(p.Funcs[0].Groups)
		p.Stage = ir.Schedule
		assignStages(p.Funcs[0])
		for j, b := range before {
			bound := 0
			for _, a := range before[:j] {
				if !conflict(a, b) {
					continue
				}
				bound = max(bound, a.Stage+1)
				if a.Stage >= b.Stage {
					t.Errorf("groups %s of stage %d and %s of stage %d touch one value", a.Name, a.Stage, b.Name, b.Stage)
				}
			}
			if b.Stage != bound {
				t.Errorf("group %s has stage %d, could have %d", b.Name, b.Stage, bound)
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

func TestFillStages(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		f := p.Funcs[0]
		f.Rows, f.Run = 512, 512
		before := slices.Clone(f.Groups)
		p.Stage = ir.Schedule
		assignStages(f)
		earliest, stages := map[*ir.Group]int{}, 0
		for _, g := range f.Groups {
			earliest[g], stages = g.Stage, max(stages, g.Stage)
		}
		fillStages(f)
		for j, b := range before {
			for _, a := range before[:j] {
				if conflict(a, b) && a.Stage >= b.Stage {
					t.Errorf("groups %s of stage %d and %s of stage %d touch one value", a.Name, a.Stage, b.Name, b.Stage)
				}
			}
			if b.Stage < earliest[b] || b.Stage > stages {
				t.Errorf("group %s has stage %d: it could have %d, and there are %d", b.Name, b.Stage, earliest[b], stages)
			}
		}
		if err := ir.VerifyStructure(p); err != nil {
			t.Error(err)
		}
	})
}

// TestOrderLaunches holds that groups stay in their stages and wait for all before; that those of a stage begin on
// queues of their own, of tiles the largest first and on queue 0, of few rows the first last and there; and that only
// lone ones behind lone ones begin early.
func TestOrderLaunches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		f := p.Funcs[0]
		f.Class = rapid.SampledFrom([]ir.StepClass{ir.PromptStep, ir.ExactStep}).Draw(t, "class")
		d := Device{Queues: rapid.Bool().Draw(t, "queues"), Overlaps: true}
		p.Stage = ir.Schedule
		assignStages(f)
		before := stagesOf(f)
		orderLaunches(f, d)
		after := stagesOf(f)
		if err := ir.VerifyStructure(p); err != nil {
			t.Error(err)
		}
		if len(before) != len(after) {
			t.Fatalf("%d stages, %d before", len(after), len(before))
		}
		for n, list := range after {
			was, last := before[n], len(list)-1
			for i, g := range list {
				if !slices.Contains(was, g) || len(was) != len(list) || g.Waits != n {
					t.Errorf("group %s, %s: in another stage, or waits for less than all before", g.Name, g.Order)
				}
				if want := last == 0 && n > 0 && len(after[n-1]) == 1; (g.Early == EarlyOf(f, true)) != want {
					t.Errorf("group %s begins early: %t, want %t", g.Name, !want, want)
				}
				queue := i
				switch {
				case !d.Queues:
					queue = 0
				case f.Class == ir.ExactStep:
					queue = (i + 1) % len(list)
				}
				if g.Queue != queue {
					t.Errorf("group %s, number %d of %d: queue %d, want %d", g.Name, i, len(list), g.Queue, queue)
				}
				switch {
				case !d.Queues && g != was[i], d.Queues && f.Class == ir.ExactStep && g != was[(i+1)%len(list)]:
					t.Errorf("group %s is launched as number %d of %d", g.Name, i, len(list))
				case d.Queues && f.Class == ir.PromptStep && i > 0 && workOf(f, list[i-1]) < workOf(f, g):
					t.Errorf("group %s is launched behind less work", g.Name)
				}
			}
		}
	})
}

// TestWideStage holds that a stage of more dispatches than there are queues takes all of them.
func TestWideStage(t *testing.T) {
	for _, class := range []ir.StepClass{ir.PromptStep, ir.ExactStep} {
		f := &ir.Func{Class: class}
		for range 3 * ir.Queues {
			f.Groups = append(f.Groups, &ir.Group{})
		}
		orderLaunches(f, Device{Queues: true})
		count := map[int]int{}
		for _, g := range f.Groups {
			count[g.Queue]++
		}
		if len(count) != ir.Queues || count[0] != 1 || count[1] > count[ir.Queues-1]+1 {
			t.Errorf("%s: dispatches by queue: %v", class, count)
		}
	}
}

func TestPlaceArena(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := randomProgram(t)
		f := p.Funcs[0]
		assignStages(f)
		orderLaunches(f, Device{})
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
			s, escapes := span{v, g.Stage, g.Stage, n}, false
			for _, h := range f.Groups[i+1:] {
				for _, reader := range h.Ops {
					if slices.Contains(reader.Args, v) {
						escapes, s.last = true, max(s.last, h.Stage)
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
