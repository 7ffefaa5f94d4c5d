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

func ExpertSumCandidates(s *site.Site) []site.Candidate {
	g := matchExpertSum(s)
	if g == nil {
		return nil
	}
	rows, ok := site.ExtentOf(s, g.result)
	if !ok {
		return nil
	}
	a := site.AccessesOf(int(g.result.Type.Last()), s.Target)
	return []site.Candidate{{
		Kernel: fmt.Sprintf("expert_sum %s v=%d%s", g.key(), a.Vec, rows.Key()),
		Build: func() (*kernel.Func, error) {
			return kernel.Build("expert_sum", func(b *kernel.Builder) { g.emit(b, rows.Bound(b), a) })
		},
		Consts:   append(rows.Consts(), a.Consts()...),
		Grid:     a.Grid(rows.Max),
		Operands: append(rows.Operands(), g.operands()...),
		Cover:    a.Cover(rows.Max),
	}}
}

func (g *expertSum) key() string {
	var words []string
	if g.x != nil {
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

func (g *expertSum) operands() []site.Operand {
	var list []site.Operand
	if g.x != nil {
		list = append(list, site.Operand{Name: "x", Value: g.x, Access: kernel.Read}, site.Operand{Name: "weights", Value: g.weights, Access: kernel.Read})
	}
	for i, t := range g.terms {
		if g.isGated(t) {
			list = append(list, site.Operand{Name: "gated", Value: g.gated.Args[0], Access: kernel.Read}, site.Operand{Name: "gate", Value: g.gated.Args[1], Access: kernel.Read})
		} else {
			list = append(list, site.Operand{Name: fmt.Sprint("add", i), Value: t, Access: kernel.Read})
		}
	}
	return append(list, site.Operand{Name: "y", Value: g.result, Access: kernel.Write})
}

func (g *expertSum) emit(b *kernel.Builder, rows kernel.Value, a site.Accesses) {
	bufs := map[string]*kernel.Buffer{}
	for _, o := range g.operands() {
		bufs[o.Name] = b.Arg(o.Name, o.Access)
	}
	row, t := b.WorkgroupID(1), kernel.F32.Vec(a.Vec)
	a.Run(b, func(i, n kernel.Value) {
		b.If(b.Lt(row, rows), func() {
			at := b.Add(b.Mul(row, n), i)
			var y *kernel.Value
			add := func(v kernel.Value) {
				if y != nil {
					v = b.Add(*y, v)
				}
				y = &v
			}
			for s := range g.slots {
				slot := b.Add(b.Mul(row, g.slots), s)
				w := bufs["weights"].Load(kernel.F32, slot)
				add(b.Mul(bufs["x"].Load(t, b.Add(b.Mul(slot, n), i)), lane.Splat(b, w, a.Vec)))
			}
			for j, term := range g.terms {
				if !g.isGated(term) {
					add(bufs[fmt.Sprint("add", j)].Load(t, at))
					continue
				}
				gate := lane.Logistic(b, b.F32(1), bufs["gate"].Load(kernel.F32, row))
				add(b.Mul(bufs["gated"].Load(t, at), lane.Splat(b, gate, a.Vec)))
			}
			bufs["y"].Store(at, *y)
		})
	})
}
