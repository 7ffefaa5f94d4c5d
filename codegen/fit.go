package codegen

import (
	"fmt"
	"slices"
	"sort"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// CheckMemory fails if the plan needs more memory than the target has, and says with
// which context it would fit.
func CheckMemory(p *plans.Plan, t *target.Target) error {
	need := p.MemoryBytes()
	if t.Memory == 0 || need <= t.Memory {
		return nil
	}
	advice := "no context fits"
	if n := LargestCtx(p, t); n > 0 {
		advice = fmt.Sprintf("the largest context that fits is %d", n)
	}
	return fmt.Errorf("context %d needs %s, target %s has %s: %s", p.Header.Ctx, gib(need), t.Name, gib(t.Memory), advice)
}

// LargestCtx is the largest context with which the plan fits the target's memory and kernels
// can index its caches, 0 if there is none.
func LargestCtx(p *plans.Plan, t *target.Target) int {
	return min(p.LargestCtx(t.Memory), indexable(p.Program, t, p.LargestCtx(t.Memory)))
}

// indexable is the largest context, up to most, in which kernels can index the caches of p, 0
// if there is none.
func indexable(p *ir.Program, t *target.Target, most int) int {
	if t.IsHost() {
		return most
	}
	type cached struct {
		f       *ir.Func
		g       *ir.Group
		outputs []*ir.Value
	}
	var groups []cached // one of those that are alike
	seen := map[string]bool{}
	for _, f := range p.Funcs {
		uses := f.Uses()
		for _, g := range f.Groups {
			isKV := func(v *ir.Value) bool { return v.Class == ir.KV }
			if !slices.ContainsFunc(g.Inputs(), isKV) && !slices.ContainsFunc(g.Writes(), isKV) {
				continue
			}
			if key := f.Name + tuning.SiteOf(f, g); !seen[key] {
				seen[key] = true
				groups = append(groups, cached{f, g, g.Outputs(uses)})
			}
		}
	}
	q := *p
	// The smallest context with which a group has no kernel, less one.
	return sort.Search(most, func(less int) bool {
		q.Ctx = less + 1
		return slices.ContainsFunc(groups, func(c cached) bool {
			return len(kernels.Candidates(&kernels.Site{Program: &q, Func: c.f, Group: c.g, Outputs: c.outputs, Target: t})) == 0
		})
	})
}

func gib(n int64) string { return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30)) }
