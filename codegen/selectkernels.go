package codegen

import (
	"context"
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// site is a group that wants a kernel.
type site struct {
	f          *ir.Func
	g          *ir.Group
	outputs    []*ir.Value
	candidates []kernels.Candidate
	rated      []*rated
}

// take makes c the call of the site's group.
func (s *site) take(c *kernels.Candidate, t *target.Target, why string) {
	s.g.Call = &ir.Call{Kernel: c.Kernel, Consts: c.Consts, Grid: c.Grid, Wave: t.Wave, Why: why}
	for _, o := range c.Operands {
		s.g.Call.Args = append(s.g.Call.Args, o.Value)
	}
}

// sitesOf lists the groups of all functions with their candidates.
func sitesOf(p *ir.Program, t *target.Target) ([]*site, error) {
	var sites []*site
	for _, f := range p.Funcs {
		uses := f.Uses()
		for _, g := range f.Groups {
			s := &site{f: f, g: g, outputs: g.Outputs(uses)}
			s.candidates = kernels.Candidates(&kernels.Site{Program: p, Func: f, Group: g, Outputs: s.outputs, Target: t})
			if len(s.candidates) == 0 {
				return nil, ir.Unsupported("%s: %s: no kernel of target %s computes this group (%s)", f.Name, g.Name, t.Name, describe(g))
			}
			sites = append(sites, s)
		}
	}
	return sites, nil
}

// selectKernels chooses a candidate for every group: with an oracle the one that
// the cost model predicts to be fastest, else the first, as families offer their
// best guess first.
func selectKernels(ctx context.Context, p *ir.Program, t *target.Target, o *radv.Oracle) error {
	p.Target = t.Name
	if t.Host {
		for _, f := range p.Funcs {
			for _, g := range f.Groups {
				g.Call = &ir.Call{Kernel: "oracle", Grid: [3]int{1, 1, 1}, Why: "the host evaluates the ops as they are"}
			}
		}
		return nil
	}
	sites, err := sitesOf(p, t)
	if err != nil {
		return err
	}
	if o != nil {
		if err := rate(ctx, sites, t, o); err != nil {
			return err
		}
	}
	for _, s := range sites {
		c, why := &s.candidates[0], fmt.Sprintf("best guess of %d", len(s.candidates))
		if o != nil {
			work, err := cost(p, s.f, s.g, s.outputs)
			if err != nil {
				return fmt.Errorf("%s: %s: %w", s.f.Name, s.g.Name, err)
			}
			c, why = best(s.rated, t, work)
		}
		s.take(c, t, why)
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
