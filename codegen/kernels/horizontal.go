package kernels

import (
	"cmp"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels/matmul"
	"github.com/zincc-dev/zincc/codegen/kernels/recurrent"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// A delta rule of one row has a workgroup for each head, so most units of a large GPU have nothing to do. Beside it
// they project what gates its result: the group is that of the rule and of one projection, with what is before it.

// gatePrefix begins the names of the projection's arguments.
const gatePrefix = "gate_"

// horizontalParts returns the two parts of the group as sites of their own; nil if it is none of this kind.
func horizontalParts(s *Site) (rule, gate *Site) {
	var parts [2]ir.Group // the rule's, the projection's
	j := slices.IndexFunc(s.Group.Ops, func(op *ir.Op) bool { return op.Kind.Name == "linear" })
	if j < 0 || s.Func.Rows != 1 {
		return nil, nil
	}
	for n, op := range s.Group.Ops {
		of := &parts[0]
		if n <= j {
			of = &parts[1]
		}
		of.Ops = append(of.Ops, op)
	}
	var sites [2]*Site
	for n := range parts {
		g := &parts[n]
		g.Name, g.Order = s.Group.Name, s.Group.Order
		part := *s
		part.Group, part.Outputs = g, nil
		for _, v := range s.Outputs {
			if slices.Contains(g.Ops, v.Def) {
				part.Outputs = append(part.Outputs, v)
			}
		}
		sites[n] = &part
	}
	return sites[0], sites[1]
}

// horizontalCandidates has each shape of the rule with those of the projection that have as many lanes, on the units
// that the rule leaves: first those of most lanes, and of these those of which no workgroup waits for room.
func horizontalCandidates(s *Site, op *ir.Op) []Candidate {
	rule, gate := horizontalParts(s)
	if rule == nil {
		return nil
	}
	workgroups := func(lanes int) int { return s.Target.Units * max(1, unitLanes/lanes) } // that run at once
	var list []Candidate
	for _, c := range recurrent.DeltaHorizontal(rule, op) {
		rest := *s.Target
		rest.Units = workgroups(c.Lanes) - c.Grid[0]
		if rest.Units <= 0 || c.Grid[1] > 1 || c.Grid[2] > 1 {
			continue
		}
		gate.Target = &rest
		for _, other := range matmul.GemvHorizontal(gate, c.Lanes) {
			list = append(list, site.Horizontal(c, other, gatePrefix))
		}
	}
	slices.SortStableFunc(list, func(a, b Candidate) int {
		return cmp.Or(cmp.Compare(b.Lanes, a.Lanes), cmp.Compare(max(0, a.Grid[0]-workgroups(a.Lanes)), max(0, b.Grid[0]-workgroups(b.Lanes))))
	})
	return list
}

// unitLanes is the lanes of a unit for which both have registers.
const unitLanes = 512

// horizontalWants is what the projection wants.
func horizontalWants(s *Site, _ *ir.Op) []Rewrite {
	if _, gate := horizontalParts(s); gate != nil {
		return gemv.wants(gate, matmul.Match(gate))
	}
	return nil
}
