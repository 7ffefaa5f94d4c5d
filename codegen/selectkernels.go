package codegen

import (
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// selectKernels chooses the first candidate of every group: families offer their
// best guess first.
func selectKernels(p *ir.Program, t *target.Target) error {
	p.Target = t.Name
	for _, f := range p.Funcs {
		uses := f.Uses()
		for _, g := range f.Groups {
			if t.Host {
				g.Call = &ir.Call{Kernel: "oracle", Grid: [3]int{1, 1, 1}, Why: "the host evaluates the ops as they are"}
				continue
			}
			all := kernels.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t})
			if len(all) == 0 {
				return ir.Unsupported("%s: %s: no kernel of target %s computes this group (%s)", f.Name, g.Name, t.Name, describe(g))
			}
			c := all[0]
			g.Call = &ir.Call{Kernel: c.Kernel, Consts: c.Consts, Grid: c.Grid, Wave: t.Wave,
				Why: fmt.Sprintf("best guess of %d", len(all))}
			for _, o := range c.Operands {
				g.Call.Args = append(g.Call.Args, o.Value)
			}
		}
	}
	return nil
}

// describe says what a group computes and on which weight types.
func describe(g *ir.Group) string {
	var parts []string
	for _, op := range g.Ops {
		s := op.Kind.Name
		for _, a := range op.Args {
			if a.Class == ir.Weight {
				s += " " + a.Type.String()
			}
		}
		parts = append(parts, s)
	}
	return strings.Join(parts, ", ")
}

// findCandidate returns the candidate that g.Call names.
func findCandidate(p *ir.Program, f *ir.Func, g *ir.Group, uses map[*ir.Value][]*ir.Op, t *target.Target) (*kernels.Candidate, error) {
	all := kernels.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: g.Outputs(uses), Target: t})
	for i, c := range all {
		if c.Kernel == g.Call.Kernel && equalConsts(c.Consts, g.Call.Consts) {
			return &all[i], nil
		}
	}
	return nil, fmt.Errorf("%s: %s: no candidate is kernel %q with these constants", f.Name, g.Name, g.Call.Kernel)
}

func equalConsts(a, b []ir.Const) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
