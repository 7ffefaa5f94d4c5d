package codegen

import (
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

// Estimate compiles the model without touching its weights, for plans.Estimate. With
// no Ctx in o it takes the model's own context, which it returns, or the largest that
// fits.
func Estimate(f *gguf.File, t *target.Target, o frontend.Options) (*plans.Plan, int, error) {
	if t.Bandwidth == 0 {
		return nil, 0, ir.Unsupported("target %s has no figures to predict with", t.Name)
	}
	own, err := frontend.Context(f)
	if err != nil {
		return nil, 0, err
	}
	given := o.Ctx != 0
	if !given {
		o.Ctx = own
	}
	plan, err := compile(f, t, o)
	if err != nil {
		return nil, 0, err
	}
	if largest := LargestCtx(plan, t); !given && t.Memory != 0 && 0 < largest && largest < own {
		o.Ctx = largest
		plan, err = compile(f, t, o)
	}
	return plan, own, err
}

// compile makes the plan of a model that nobody asked the target's compiler about.
func compile(f *gguf.File, t *target.Target, o frontend.Options) (*plans.Plan, error) {
	p, err := frontend.Load(f, o)
	if err != nil {
		return nil, err
	}
	if _, err := passes.Run(p, Table(t, p.Funcs[0].Rows), passes.Options{StopAfter: ir.Place}); err != nil {
		return nil, err
	}
	return Emit(p, f, t, false)
}
