package codegen

import (
	"context"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
)

// Calls lowers src and calls f with every call of the program and the kernel that it was chosen to be. It makes no
// plan.
func Calls(ctx context.Context, src Source, o Options, f func(p *ir.Program, fn *ir.Func, g *ir.Group, c *kernels.Candidate) error) error {
	var calls chosen
	p, _, err := lower(ctx, src, o, ir.Place, func(p *ir.Program) (_ chosen, err error) {
		calls, err = selectKernels(ctx, p, o.Target, o.Choice)
		return calls, err
	})
	if err != nil {
		return err
	}
	for _, fn := range p.Funcs {
		for _, g := range fn.Groups {
			if err := f(p, fn, g, calls.of[g.Call]); err != nil {
				return err
			}
		}
	}
	return nil
}
