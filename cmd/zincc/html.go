package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/sass"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/report"
)

// htmlFlags are the flags of commands that write a report.
type htmlFlags struct {
	out, model, compiler string
	measured             []string
}

func (h *htmlFlags) add(f *pflag.FlagSet) {
	f.StringVar(&h.out, "html", "", "write a report for browsers to this file")
	f.StringVar(&h.compiler, "device-compiler", "auto", "with --html: add machine code: auto (if Mesa's driver for AMD, or NVIDIA's ptxas and nvdisasm, are installed), off or require")
}

func (h *htmlFlags) inspect(ctx context.Context, path string, p *plans.Plan) error {
	if err := h.checkOutput(path, p); err != nil {
		return err
	}
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
		err := h.checkOutput(path, both[i])
		if err != nil {
			return err
		}
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

// checkOutput fails if the report would be written over the plan or what belongs to it.
func (h *htmlFlags) checkOutput(path string, p *plans.Plan) error {
	inputs := append([]string{path}, h.measured...)
	if f, err := plans.OpenModelHeader(p, path, h.model); err == nil {
		inputs = append(inputs, f.Shards()...)
		defer f.Close()
	}
	return cli.CheckOutput(h.out, inputs...)
}

// options finds what the plan itself does not hold.
func (h *htmlFlags) options(ctx context.Context, path string, p *plans.Plan) (report.Options, error) {
	var choice codegen.Choice
	assembler := codegen.Assembler{Required: h.compiler == "require"}
	t, err := target.OfPlan(&p.Header)
	if err == nil {
		mode := h.compiler
		if t.Assembled() && (mode == "auto" || mode == "require") {
			if assembler.Tools, err = sass.Find(ctx); err != nil && assembler.Required {
				return report.Options{}, err
			}
			mode = "off"
		}
		var done func()
		if choice, done, err = (&choiceFlags{compiler: mode}).open(ctx, t); err != nil {
			return report.Options{}, err
		}
		defer done()
	}
	o, err := codegen.ReportOptions(ctx, p, path, h.model, t, choice, assembler)
	for _, path := range h.measured {
		m, err := readProfile(path)
		if err != nil {
			return o, fmt.Errorf("--measured: %w", err)
		}
		o.Profiles = append(o.Profiles, m)
	}
	return o, err
}

func readProfile(path string) (*plans.Profile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := plans.ReadProfile(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}
