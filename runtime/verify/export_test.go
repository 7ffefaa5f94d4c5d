package verify

import (
	"context"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// CutSteps compares steps of prompts with the same steps cut, behind nothing, on an executor that no dispatch of is
// compared.
func CutSteps(ctx context.Context, plan *plans.Plan, dev CutDevice) (*Report, error) {
	v := &verifier{plan: plan, report: &Report{Device: dev.Device()}}
	return v.report, (&cutter{v, dev}).compare(ctx)
}

// CutDevice is what CutSteps needs.
type CutDevice interface {
	runtime.Executor
	runtime.SpanCopier
}

// AlikeSteps compares steps of entries that are alike, behind nothing, as CutSteps does those that are cut.
func AlikeSteps(ctx context.Context, plan *plans.Plan, dev CutDevice) (*Report, error) {
	v := &verifier{plan: plan, report: &Report{Device: dev.Device()}}
	return v.report, (&cutter{v, dev}).compareAlike(ctx)
}
