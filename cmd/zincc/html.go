package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// htmlFlags are the flags of commands that write a report.
type htmlFlags struct{ out, model, target, oracle string }

func (h *htmlFlags) add(f *pflag.FlagSet) {
	f.StringVar(&h.out, "html", "", "write a report for browsers to this file")
	f.StringVar(&h.oracle, "oracle", "auto", "of --html: ask AMD's compiler for its assembly: auto, where Mesa's driver is there; off; or require")
}

func (h *htmlFlags) inspect(ctx context.Context, path string, p *plans.Plan) error {
	o, err := h.options(ctx, path, p)
	if err != nil {
		return err
	}
	r, err := report.New(p, o)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return h.write(r)
}

func (h *htmlFlags) diff(ctx context.Context, paths []string, both [2]*plans.Plan) error {
	var o [2]report.Options
	for i, path := range paths {
		var err error
		if o[i], err = h.options(ctx, path, both[i]); err != nil {
			return err
		}
	}
	r, err := report.Diff(both[0], both[1], o[0], o[1])
	if err != nil {
		return err
	}
	return h.write(r)
}

func (h *htmlFlags) write(r *report.Report) error {
	return outfile.Write(h.out, func(w io.Writer) error { return r.WriteHTML(w) })
}

// reportOptions are a report's, as they are found.
type reportOptions struct{ report.Options }

func (o *reportOptions) note(format string, args ...any) {
	o.Notes = append(o.Notes, fmt.Sprintf(format, args...))
}

// options finds what the plan itself does not hold. Whatever cannot be had becomes a
// note of the report.
func (h *htmlFlags) options(ctx context.Context, path string, p *plans.Plan) (report.Options, error) {
	o := reportOptions{report.Options{Path: path}}
	t, err := h.targetOf(p)
	if err != nil {
		return o.Options, err
	}
	if t == nil {
		o.note("What is known of target %s is not here: there are no roofs and no passes.", p.Header.Target)
		return o.Options, nil
	}
	o.Figures = report.Figures{Bandwidth: t.Bandwidth, FLOPs: t.FLOPs, MatrixFLOPs: t.MatrixFLOPs}
	choice, done, err := (&choiceFlags{oracle: h.oracle}).open(ctx, t)
	if err != nil {
		return o.Options, err
	}
	defer done()
	if t.AMD != nil {
		if err := o.assembly(ctx, p, choice.Oracle); err != nil {
			return o.Options, err
		}
	}
	if !slices.ContainsFunc(p.Pipelines, func(pl plans.Pipeline) bool { return pl.Machine != nil }) {
		choice.Oracle = nil // it was not asked when the kernels were chosen
	}
	err = o.trace(ctx, path, h.model, p, t, choice)
	return o.Options, err
}

// targetOf returns the target of the plan, nil if it was a device that was probed and
// nobody names the file.
func (h *htmlFlags) targetOf(p *plans.Plan) (*target.Target, error) {
	if h.target == "" {
		t, err := target.Lookup(p.Header.Target)
		if err != nil {
			return nil, nil
		}
		return t, nil
	}
	t, _, err := findTarget(h.target)
	if err == nil && t.Name != p.Header.Target {
		err = cli.Usagef("--target: the plan is for %s, not %s", p.Header.Target, t.Name)
	}
	return t, err
}

// assembly asks AMD's compiler for its instructions.
func (o *reportOptions) assembly(ctx context.Context, p *plans.Plan, oracle *radv.Oracle) error {
	if oracle == nil || oracle.Driver() == "" {
		o.note("AMD's compiler was not asked, so the kernels are shown as SPIR-V only.")
		return nil
	}
	var err error
	o.Assembler = oracle.Driver()
	o.Assembly, err = codegen.Assembly(ctx, p, oracle)
	if none := slices.Contains(o.Assembly, ""); none && err == nil {
		o.note("%s does not compile every kernel for %s without hardware: the others are shown as SPIR-V only.", oracle.Driver(), p.Header.Target)
	}
	return err
}

// trace runs the passes again.
func (o *reportOptions) trace(ctx context.Context, path, model string, p *plans.Plan, t *target.Target, c codegen.Choice) error {
	f, err := plans.OpenModelHeader(p, path, model)
	if err != nil {
		if model != "" {
			return err
		}
		o.note("The passes were not run again: %s.", err)
		return nil
	}
	defer f.Close()
	trace, same, err := codegen.Trace(ctx, p, f, t, c)
	if err != nil {
		return err
	}
	o.Trace = trace
	if !same {
		o.note("The passes of this compiler do not make the program of the plan, which another version made, or which was edited: the last column is the plan's.")
	}
	return nil
}
