package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/sass"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// Assembler is NVIDIA's assembler; nil Tools mean that it is not asked. A kernel that it cannot compile is an error if
// Required, and a note of the report otherwise.
type Assembler struct {
	Tools    *sass.Tools
	Required bool
}

// reportOptions are a report's, as they are found.
type reportOptions struct{ report.Options }

func (o *reportOptions) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// ReportOptions collects what a report of the plan at path shows besides the plan. t is the plan's
// target, nil if unknown; c says how its kernels are chosen; model is the model's
// file, empty to look where the plan says; a is NVIDIA's assembler.
// Missing parts become notes of the report.
func ReportOptions(ctx context.Context, p *plans.Plan, path, model string, t *target.Target, c Choice, a Assembler) (report.Options, error) {
	r := reportOptions{report.Options{Path: path}}
	if t == nil {
		r.note("What is known of target %s is not here: there are no roofs and no passes.", p.Header.Target)
		return r.Options, nil
	}
	if err := Reproducible(p); err != nil {
		r.note("Candidates of call sites are not shown: %v.", err)
	} else {
		r.Candidates = Offered(p.Program, t)
	}
	r.Figures = report.Figures{Bandwidth: t.Bandwidth, FLOPs: t.FLOPs, MatrixFLOPs: t.MatrixFLOPs}
	var err error
	switch {
	case t.AMD != nil:
		err = r.assembly(ctx, p, c.Compiler)
	case t.Assembled():
		err = r.sass(ctx, p, a)
	}
	if err != nil {
		return r.Options, err
	}
	if !slices.ContainsFunc(p.Pipelines, func(pl plans.Pipeline) bool { return pl.Machine != nil }) {
		c.Compiler = nil // it was not asked when the kernels were chosen
	}
	err = r.trace(ctx, path, model, p, t, c)
	return r.Options, err
}

// assembly asks AMD's compiler for its instructions.
func (o *reportOptions) assembly(ctx context.Context, p *plans.Plan, compiler *radv.Compiler) error {
	if compiler == nil || compiler.Driver() == "" {
		o.note("AMD's compiler was not asked, so the kernels are shown as SPIR-V only.")
		return nil
	}
	asked, err := pipelineKernels(p)
	if err != nil {
		return err
	}
	o.Assembler = compiler.Driver()
	o.Assembly, err = compiler.Assembly(ctx, asked)
	if none := slices.Contains(o.Assembly, ""); none && err == nil {
		o.note("%s does not compile every kernel for %s without hardware: the others are shown as SPIR-V only.", compiler.Driver(), p.Header.Target)
	}
	return err
}

// sassKernels is of how many pipelines the machine code is asked: half a second each.
const sassKernels = 40

// sass asks NVIDIA's assembler for the instructions of the pipelines with the largest shares of time.
func (o *reportOptions) sass(ctx context.Context, p *plans.Plan, a Assembler) error {
	if a.Tools == nil {
		o.note("NVIDIA's assembler was not asked, so the kernels are shown as PTX only.")
		return nil
	}
	texts := make([]string, len(p.Pipelines))
	for n, i := range report.Slowest(p) {
		if n < sassKernels {
			texts[i] = string(p.Modules[p.Pipelines[i].Module].Bytes)
		}
	}
	list, err := a.Tools.All(ctx, texts)
	if err != nil {
		if a.Required || ctx.Err() != nil {
			return err
		}
		o.note("%s: %v: the kernels are shown as PTX only.", a.Tools.Version(), err)
		return nil
	}
	o.Assembler, o.Assembly = a.Tools.Version(), list
	if left := len(texts) - sassKernels; left > 0 {
		o.note("%s was not asked about the %d pipelines with the least of an entry's time.", o.Assembler, left)
	}
	return nil
}

// trace runs the passes again.
func (o *reportOptions) trace(ctx context.Context, path, model string, p *plans.Plan, t *target.Target, c Choice) error {
	f, err := plans.OpenModelHeader(p, path, model)
	if err != nil {
		if model != "" {
			return err
		}
		o.note("The passes were not run again: %s.", err)
		return nil
	}
	defer f.Close()
	trace, same, err := Trace(ctx, p, f, t, c)
	if err != nil {
		return err
	}
	o.Trace = trace
	if !same {
		o.note("The passes of this compiler do not make the program of the plan, which another version made, or which was edited: the last column is the plan's.")
	}
	return nil
}
