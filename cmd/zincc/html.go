package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// htmlFlags are the flags of commands that write a report.
type htmlFlags struct{ out, model, oracle string }

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

// options finds what the plan itself does not hold. Whatever cannot be had becomes a
// note of the report.
func (h *htmlFlags) options(ctx context.Context, path string, p *plans.Plan) (report.Options, error) {
	o := report.Options{Path: path}
	note := func(format string, args ...any) { o.Notes = append(o.Notes, fmt.Sprintf(format, args...)) }
	t, err := target.Lookup(p.Header.Target)
	if err != nil {
		note("This compiler does not know target %s: there are no rooflines and no passes.", p.Header.Target)
		return o, nil
	}
	o.Figures = report.Figures{Bandwidth: t.Bandwidth, FLOPs: t.FLOPs, MatrixFLOPs: t.MatrixFLOPs}
	oracle, err := openOracle(ctx, h.oracle, t)
	if err != nil {
		return o, err
	}
	if oracle != nil {
		defer oracle.Close()
	}
	f, err := plans.OpenModelHeader(p, path, h.model)
	if err != nil {
		if h.model != "" {
			return o, err
		}
		note("The passes were not run again: %s.", err)
		return o, nil
	}
	defer f.Close()
	trace, same, err := codegen.Trace(ctx, p, f, t, oracle)
	if err != nil {
		return o, err
	}
	o.Trace = trace
	if !same {
		note("The passes of this compiler do not make the program of the plan, which another version made, or which was edited: the last column is the plan's.")
		trace.Add(report.Pass{Name: "plan", Stage: p.Program.Stage.String(), Doc: "the program as the plan holds it"}, p.Program)
	}
	return o, nil
}
