package codegen

import (
	"context"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// Estimate compiles the model without touching its weights, for plans.Estimate. With
// no Ctx in o.Import it takes the model's own context, which it returns, or the largest that
// fits.
func Estimate(ctx context.Context, f *gguf.File, o Options) (*plans.Plan, int, error) {
	t, in := o.Target, &o.Import
	if t.Bandwidth == 0 {
		return nil, 0, ir.Unsupported("target %s has no figures to predict with", t.Name)
	}
	own, err := frontend.Context(f)
	if err != nil {
		return nil, 0, err
	}
	given := in.Ctx != 0
	if !given {
		in.Ctx = own
	}
	r, err := Compile(ctx, Source{Model: f}, o)
	if err != nil {
		return nil, 0, err
	}
	if largest := LargestCtx(r.Plan, t); !given && t.Memory != 0 && 0 < largest && largest < own {
		in.Ctx = largest
		if r, err = Compile(ctx, Source{Model: f}, o); err != nil {
			return nil, 0, err
		}
	}
	return r.Plan, own, nil
}
