package matmul

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// expertSum is a group of the form
//
//	expert_sum [gate_rows] [add]...
//
// or gate_rows on its own, element by element.
type expertSum struct {
	x, weights *ir.Value // of expert_sum, or nil
	slots      int
	gated      *ir.Op // gate_rows, or nil
	terms      []*ir.Value
	result     *ir.Value
	loop       bool // over slots, as on processors, so that one kernel serves all numbers of them
}

func matchExpertSum(s *site.Site) *expertSum {
	g := &expertSum{}
	for _, op := range s.Group.Ops {
		ok := false
		switch op.Kind.Name {
		case "expert_sum":
			ok = g.x == nil
			g.x, g.weights, g.slots, g.result = op.Args[0], op.Args[1], int(op.Args[1].Type.Last()), op.Result
		case "gate_rows":
			ok = g.gated == nil
			g.gated = op
		case "add":
			other := op.Args[1]
			if other == g.result {
				other = op.Args[0]
			}
			if ok = g.result != nil && slices.Contains(op.Args, g.result) && other != g.result; ok {
				g.terms, g.result = append(g.terms, other), op.Result
			}
		}
		if !ok {
			return nil
		}
	}
	if g.x == nil && g.gated != nil && len(s.Group.Ops) == 1 {
		g.terms, g.result = []*ir.Value{g.gated.Result}, g.gated.Result
	}
	if g.x != nil && g.slots > maxSlots || g.result == nil || len(s.Outputs) != 1 || s.Outputs[0] != g.result {
		return nil
	}
	for _, t := range g.terms {
		if inside := t.Def != nil && slices.Contains(s.Group.Ops, t.Def); inside != g.isGated(t) {
			return nil
		}
	}
	if g.gated != nil && !slices.Contains(g.terms, g.gated.Result) {
		return nil
	}
	return g
}

// isGated reports whether a term is the result of the group's gate_rows.
func (g *expertSum) isGated(t *ir.Value) bool { return g.gated != nil && g.gated.Result == t }

func ExpertSumCandidates(s *site.Site, _ *ir.Op) []site.Candidate {
	g := matchExpertSum(s)
	if g == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, g.result)
	if !ok {
		return nil
	}
	a := site.AccessesOf(int(g.result.Type.Last()), s.Target)
	g.loop = s.Target.FewKernels && g.x != nil
	return []site.Candidate{site.Implement(site.Candidate{
		Kernel: fmt.Sprintf("expert_sum %s v=%d%s", g.key(), a.Vec, rows.Key()),
		Grid:   a.Grid(rows.Max),
		Cover:  a.Cover(rows.Max),
	}, "expert_sum", func(s *site.Signature) func(b *kernel.Builder) { return g.kernel(s, rows, a) })}
}

func (g *expertSum) key() string {
	var words []string
	if g.loop {
		words = append(words, "slots")
	} else if g.x != nil {
		words = append(words, fmt.Sprint("slots=", g.slots))
	}
	for _, t := range g.terms {
		if g.isGated(t) {
			words = append(words, "gated")
		} else {
			words = append(words, "add")
		}
	}
	return strings.Join(words, "+")
}

func (g *expertSum) kernel(s *site.Signature, rows site.Extent, accesses site.Accesses) func(b *kernel.Builder) {
	extent := rows.Declare(s)
	var x, weights *kernel.Buffer
	if g.x != nil {
		x, weights = s.Read("x", g.x), s.Read("weights", g.weights)
	}
	var gate *kernel.Buffer
	terms := make([]*kernel.Buffer, len(g.terms))
	for i, t := range g.terms {
		if g.isGated(t) {
			terms[i], gate = s.Read("gated", g.gated.Args[0]), s.Read("gate", g.gated.Args[1])
		} else {
			terms[i] = s.Read(fmt.Sprint("add", i), t)
		}
	}
	y, a := s.Write("y", g.result), accesses.Declare(s)
	var slots kernel.Value
	if g.loop {
		slots = s.U32("slots", g.slots, 8, "experts of a row")
	}
	return func(b *kernel.Builder) {
		bound, row, t := extent.Load(b), b.WorkgroupID(1), kernel.F32.Vec(accesses.Vec)
		a.Each(b, func(i, n kernel.Value) {
			b.If(b.Lt(row, bound), func() {
				at := b.Add(b.Mul(row, n), i)
				var sum *kernel.Value
				add := func(v kernel.Value) {
					if sum != nil {
						v = b.Add(*sum, v)
					}
					sum = &v
				}
				product := func(slot kernel.Value) kernel.Value {
					w := weights.Load(kernel.F32, slot)
					return b.Mul(x.Load(t, b.Add(b.Mul(slot, n), i)), lane.Splat(b, w, accesses.Vec))
				}
				if g.loop {
					first := b.Mul(row, slots)
					all := b.Var(t, product(first))
					b.For(1, slots, 1, func(s kernel.Value) { all.Set(b.Add(all.Get(), product(b.Add(first, s)))) })
					add(all.Get())
				} else {
					for s := range g.slots {
						add(product(b.Add(b.Mul(row, g.slots), s)))
					}
				}
				for j, term := range g.terms {
					if !g.isGated(term) {
						add(terms[j].Load(t, at))
						continue
					}
					scale := lane.Logistic(b, b.F32(1), gate.Load(kernel.F32, row))
					add(b.Mul(terms[j].Load(t, at), lane.Splat(b, scale, accesses.Vec)))
				}
				y.Store(at, *sum)
			})
		})
	}
}
