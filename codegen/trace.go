package codegen

import (
	"context"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// Trace compiles the model of a plan again with the plan's options, and
// records the program after each pass that changed it. same reports whether the result is
// the program of the plan. It is not if another version of the compiler made the plan, or if the plan
// was made from an edited program.
func Trace(ctx context.Context, plan *plans.Plan, f *gguf.File, t *target.Target, c Choice) (trace *report.Trace, same bool, err error) {
	kv, ok := ir.ParseDType(plan.Header.KV)
	if !ok {
		kv = ir.F16 // of a model that has no cache
	}
	o := frontend.Options{Ctx: plan.Header.Ctx, Slots: plan.Header.Slots, KV: kv}
	if k := plan.Paged(); k != nil {
		o.Page, o.Pool = k.Page, (k.Pages-1)*k.Page
	}
	p, err := Import(f, o)
	if err != nil {
		return nil, false, err
	}
	p.Path = plan.Program.Path // the file may have moved
	trace = &report.Trace{}
	trace.Add(report.Pass{Name: "import", Stage: p.Stage.String(), Doc: "the model as the frontend built it"}, p)
	lower := Options{Target: t, Choice: c, Dump: func(s passes.Snapshot) error {
		trace.Add(report.Pass{Name: s.Pass.Name, Stage: s.Pass.Stage.String(), Doc: s.Pass.Doc}, p)
		return ctx.Err()
	}}
	if _, _, err = Lower(ctx, Source{Program: p}, lower, ir.Place); err != nil {
		return nil, false, err
	}
	return trace, ir.Print(p) == ir.Print(plan.Program), nil
}
