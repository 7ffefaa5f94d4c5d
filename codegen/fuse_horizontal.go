package codegen

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/passes"
)

// fuseHorizontally moves the projection of what gates a delta rule's result from the dispatch before the rule into that
// of the rule, and the gated norm into the projection behind it, in entries of one row, where kernels compute that.
func fuseHorizontally(p *ir.Program, t *target.Target) error {
	for _, f := range p.Funcs {
		if f.Rows != 1 || t.IsHost() {
			continue
		}
		b, uses := ir.NewBuilder(f), f.Uses()
		for _, op := range f.Ops() {
			m := moveOf(f, uses, op)
			if m == nil || !strategy.FusesHorizontally(t, op.Args[0].Def.Attrs.Int("v_heads")) {
				continue
			}
			if err := m.make(f, b); err != nil {
				return err
			}
			if !m.computed(p, f, t) {
				m.undo(f)
			}
		}
	}
	return nil
}

// gateMove is three groups between which ops move: that of the gate's projection, that of the rule, and that of the
// projection which reads the gated norm.
type gateMove struct {
	groups, moved [3]*ir.Group
	gate, norm    *ir.Op // the projection and the gated norm
}

// moveOf returns how the ops around norm move, nil if they are not those of a gated delta rule.
func moveOf(f *ir.Func, uses map[*ir.Value][]*ir.Op, norm *ir.Op) *gateMove {
	if norm.Kind.Name != "gated_rmsnorm" {
		return nil
	}
	only := func(v *ir.Value, by string) *ir.Op {
		if len(uses[v]) == 1 && uses[v][0].Kind.Name == by && v.Class == ir.Arena {
			return uses[v][0]
		}
		return nil
	}
	rule, gate, rounds := norm.Args[0].Def, norm.Args[2].Def, only(norm.Result, "fixed12")
	if rule == nil || rule.Kind.Name != "deltanet" || only(rule.Result, "gated_rmsnorm") == nil || gate == nil || gate.Kind.Name != "linear" ||
		only(gate.Result, "gated_rmsnorm") == nil || rounds == nil {
		return nil
	}
	m := &gateMove{gate: gate, norm: norm}
	for i, op := range []*ir.Op{gate, rule, rounds} {
		m.groups[i] = f.Groups[slices.IndexFunc(f.Groups, func(g *ir.Group) bool { return slices.Contains(g.Ops, op) })]
	}
	before, of, behind := m.groups[0], m.groups[1], m.groups[2]
	x := gate.Args[0].Def
	if before == of || of == behind || behind.Ops[0] != rounds || !slices.Contains(of.Ops, norm) || x == nil || x.Kind.Name != "fixed12" ||
		!slices.Contains(before.Ops, x) || len(uses[x.Result]) < 2 {
		return nil
	}
	return m
}

// make makes the groups as they are to be, and puts them in place.
func (m *gateMove) make(f *ir.Func, b *ir.Builder) error {
	before, of, behind := m.groups[0], m.groups[1], m.groups[2]
	joint := &ir.Group{Name: of.Name}
	if _, err := remake(b, before, joint, m.gate.Kind.Name, m.gate.Attrs, m.gate.Args...); err != nil {
		return err
	}
	gate := joint.Ops[len(joint.Ops)-1]
	gate.Result, m.gate.Result.Def = m.gate.Result, gate // what reads it goes on to do so
	joint.Ops = append(joint.Ops, without(of.Ops, m.norm)...)
	m.moved = [3]*ir.Group{{Name: before.Name, Ops: without(before.Ops, m.gate)}, joint, {Name: behind.Name, Ops: append([]*ir.Op{m.norm}, behind.Ops...)}}
	m.put(f, m.groups, m.moved)
	for _, g := range m.moved {
		passes.Rename(g)
	}
	return nil
}

// computed reports whether kernels compute the groups.
func (m *gateMove) computed(p *ir.Program, f *ir.Func, t *target.Target) bool {
	uses := f.Uses()
	return !slices.ContainsFunc(m.moved[:], func(g *ir.Group) bool {
		return len(strategy.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t})) == 0
	})
}

// undo puts the groups back as they were.
func (m *gateMove) undo(f *ir.Func) {
	m.gate.Result.Def = m.gate
	m.put(f, m.moved, m.groups)
}

func (m *gateMove) put(f *ir.Func, old, now [3]*ir.Group) {
	for i, g := range old {
		f.Groups[slices.Index(f.Groups, g)] = now[i]
	}
}

func without(ops []*ir.Op, op *ir.Op) []*ir.Op {
	return slices.DeleteFunc(slices.Clone(ops), func(o *ir.Op) bool { return o == op })
}
