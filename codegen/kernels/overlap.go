package kernels

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/ir"
)

// Where a dispatch begins while the one before runs, two things count beside the kernel itself: how
// many registers it leaves to what runs beside it, and that memory has something to do while it waits.
// So each candidate of a step of few rows is offered in several forms, after all others.

// rooms are the lanes of a unit that candidates are offered with registers for. NVIDIA's compiler
// takes as many registers as it likes.
var rooms = []int{512, 768, 1024}

// sameRoom reports whether registers for so many lanes are those for fewer, which are offered, too, or no bound at all:
// as many workgroups of a kernel that has so many fit.
func sameRoom(lanes, room int) bool {
	if lanes == 0 {
		return false
	}
	fewer := 1
	for _, r := range rooms {
		if r < room {
			fewer = max(fewer, r/lanes)
		}
	}
	return room/lanes <= fewer
}

// ahead is the bytes of a later dispatch's weights that are prefetched at a time.
const ahead = 4 << 20

// withForms adds the forms of the candidates, which prefetch the weights that next returns.
func withForms(s *Site, list []Candidate, next prefetched) []Candidate {
	if !s.Target.Overlaps() || s.Func.Class != ir.ExactStep {
		return list
	}
	all := slices.Clone(list)
	for _, room := range rooms {
		if s.Func.Rows > 1 && projects(s.Group) {
			break // they fill a unit's registers
		}
		for _, c := range list {
			if sameRoom(c.Lanes, room) {
				continue
			}
			c.Form.Room = room
			all = append(all, c)
		}
	}
	for _, c := range list {
		all = append(all, prefetching(s, c, next(s, &c), true, false))
	}
	for _, c := range list {
		if c.Family != prefetchesNext || s.Func.Rows > 1 {
			continue
		}
		for _, before := range []bool{false, true} {
			if c := prefetching(s, c, next(s, &c), before, true); slices.ContainsFunc(c.Prefetches, func(p site.Prefetch) bool { return p.After }) {
				all = append(all, c)
			}
		}
	}
	return all
}

// prefetchesNext is the family whose kernels say where they have no more weights to load. Experts lose by it, and
// several rows were not measured well enough (docs/lab/cuda.md).
const prefetchesNext = "gemv"

// projects reports whether the group has a product with weights.
func projects(g *ir.Group) bool {
	return slices.ContainsFunc(g.Ops, func(op *ir.Op) bool { return op.Kind.Name == "linear" || op.Kind.Name == "expert_linear" })
}

// prefetching returns c as it prefetches the next weights: before it waits, behind its own, or at both places, the next
// bytes at the second. Each unit's part of them has the same share. Behind the last weights c prefetches nothing.
func prefetching(s *Site, c Candidate, next []sizedWeight, before, after bool) Candidate {
	const line = 128
	share := min(1, ahead/float64(sizeOf(next)))
	var all []site.Prefetch
	argument := len(c.Operands)
	for _, w := range next {
		p := site.Prefetch{Value: w.value, Argument: argument, Parts: s.Target.Units}
		p.Stride = w.bytes / int64(p.Parts) / line * line
		if p.Lines = int(float64(p.Stride) * share / line); p.Lines > 0 {
			all, argument = append(all, p), argument+1
		}
	}
	if before {
		c.Form.Ahead, c.Prefetches = ahead, slices.Clone(all)
	}
	if !after {
		return c
	}
	c.Form.After = ahead
	for _, p := range all {
		p.After = true
		if before {
			p.First = p.Lines
			p.Lines = min(p.Lines, int(p.Stride/line)-p.First)
		}
		if p.Lines > 0 {
			c.Prefetches = append(c.Prefetches, p)
		}
	}
	return c
}

type sizedWeight struct {
	value *ir.Value
	bytes int64
}

func sizeOf(list []sizedWeight) (n int64) {
	for _, w := range list {
		n += w.bytes
	}
	return n
}

// prefetched returns the weights that a candidate of s prefetches in those of its forms that do.
type prefetched func(s *Site, c *Candidate) []sizedWeight

// nextWeights are those of the first dispatch behind s that reads half of ahead or more.
func nextWeights(s *Site, _ *Candidate) []sizedWeight {
	for _, g := range s.Func.Groups[slices.Index(s.Func.Groups, s.Group)+1:] {
		if list := weightsOf(g); sizeOf(list) >= ahead/2 {
			return list
		}
	}
	return nil
}

// argumentsOf are the weights of the dispatch whose weights the call passes behind its operands. Another may stand
// behind the site by now: dispatches of a stage change places when they get their queues.
func argumentsOf(call *ir.Call) prefetched {
	return func(s *Site, c *Candidate) []sizedWeight {
		if len(call.Args) <= len(c.Operands) {
			return nil
		}
		first, at := call.Args[len(c.Operands)], slices.Index(s.Func.Groups, s.Group)
		for _, g := range slices.Concat(s.Func.Groups[at+1:], s.Func.Groups[:at]) {
			if list := weightsOf(g); slices.ContainsFunc(list, func(w sizedWeight) bool { return w.value == first }) {
				return list
			}
		}
		return nil
	}
}

// weightsOf are the weights of a group's projections. Which experts are read is not known ahead.
func weightsOf(g *ir.Group) (list []sizedWeight) {
	for _, op := range g.Ops {
		if op.Kind.Name != "linear" {
			continue
		}
		if l, err := weight.LayoutOf(op.Args[1]); err == nil {
			list = append(list, sizedWeight{op.Args[1], l.Bytes})
		}
	}
	return list
}
