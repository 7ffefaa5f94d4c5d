package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/sass"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/modules"
)

var dumpCommand = cli.Command{
	Name:  "dump",
	Args:  "MODEL.gguf|X.zir|plan.bin",
	Short: "print the op program, or the kernels of a plan",
	Long: `
Prints a model or program at a stage (import, fuse, specialize, schedule, place) as .zir
text, JSON or a graph for dot. For a plan it prints the op program of its dispatches. --code
disassembles the plan's kernels instead, with --sass down to NVIDIA's machine code.

  zincc dump model.gguf --stage fuse --entry decode/1
  zincc dump plan.bin --entry decode/1 --format dot | dot -Tsvg >decode.svg
  zincc dump plan.bin --entry decode/1 --code --sass`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		d := dumpFlags{}
		f.StringVar(&d.stage, "stage", "", "stage to compile to (default import for a model, the file's own stage otherwise)")
		f.StringVar(&d.target, "target", "host", "target for stages from specialize on: a name of zincc targets, or a probe's .json")
		f.StringVar(&d.entry, "entry", "", "only this entry, such as decode/1")
		f.StringVar(&d.format, "format", "text", "text, json or dot")
		f.BoolVar(&d.code, "code", false, "disassemble the kernels of a plan, one for each pipeline, with its constants")
		f.BoolVar(&d.sass, "sass", false, "with --code: also the machine code that NVIDIA's ptxas makes of PTX")
		return d.run
	},
}

type dumpFlags struct {
	stage, target, entry, format string
	code, sass                   bool
}

func (d *dumpFlags) run(ctx context.Context, args []string) error {
	path, err := input(ctx, args, "model, .zir file or plan")
	if err != nil {
		return err
	}
	if d.code {
		return d.kernels(ctx, path)
	}
	if d.sass {
		return cli.Usagef("--sass goes with --code")
	}
	p, err := d.program(ctx, path)
	if err != nil {
		return err
	}
	if d.entry != "" {
		f := p.Func(d.entry)
		if f == nil {
			return cli.Usagef("--entry: %s has no entry %q", path, d.entry)
		}
		p.Funcs = []*ir.Func{f}
	}
	switch d.format {
	case "text":
		_, err = io.WriteString(cli.Stdout, ir.Print(p))
	case "json":
		err = json.NewEncoder(cli.Stdout).Encode(ir.Describe(p))
	case "dot":
		_, err = io.WriteString(cli.Stdout, ir.Dot(p))
	default:
		err = cli.Usagef("--format: want text, json or dot, have %q", d.format)
	}
	return err
}

// program reads path, whatever it is, and compiles it up to the wanted stage.
func (d *dumpFlags) program(ctx context.Context, path string) (*ir.Program, error) {
	p, err := readProgram(path)
	if err != nil || d.stage == "" {
		return p, err
	}
	stop, ok := ir.ParseStage(d.stage)
	if !ok {
		return nil, cli.Usagef("--stage: unknown stage %q", d.stage)
	}
	if stop < p.Stage {
		return nil, cli.Usagef("--stage: %s is at stage %s already", path, p.Stage)
	}
	name := d.target
	if p.Target != "" && !strings.HasPrefix(p.Target, target.ProbePrefix) {
		name = p.Target
	}
	t, _, err := findTarget(ctx, name)
	if err != nil {
		return nil, err
	}
	c, done, err := (&choiceFlags{compiler: "off"}).open(ctx, t)
	if err != nil {
		return nil, err
	}
	defer done()
	p, _, err = codegen.Lower(ctx, codegen.Source{Program: p}, codegen.Options{Target: t, Choice: c}, stop)
	return p, err
}

func readProgram(path string) (*ir.Program, error) {
	what, err := kindOf(path)
	if err != nil {
		return nil, err
	}
	switch what {
	case modelFile:
		f, err := gguf.Open(path)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return codegen.Import(f, frontend.Options{KV: ir.F16})
	case programFile:
		return readProgramFile(path)
	case planFile:
		plan, err := plans.Read(path)
		if err != nil {
			return nil, err
		}
		defer plan.Close()
		return plan.Program, nil
	}
	return nil, fmt.Errorf("%s: neither %s nor %s nor %s%s", path, modelFile, programFile, planFile, butIs(path))
}

// kernels prints every pipeline's module with its constants, of one entry if that is asked.
func (d *dumpFlags) kernels(ctx context.Context, path string) error {
	plan, err := plans.Read(path)
	if err != nil {
		return err
	}
	defer plan.Close()
	used := make([]bool, len(plan.Pipelines))
	entries := plan.Entries
	if d.entry != "" {
		e, err := plan.EntryNamed(d.entry)
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		entries = []plans.Entry{*e}
	}
	for _, e := range entries {
		for _, dispatch := range e.Dispatches {
			if dispatch.Pipeline >= 0 {
				used[dispatch.Pipeline] = true
			}
		}
	}
	var tools *sass.Tools
	if d.sass {
		if tools, err = sass.Find(ctx); err != nil {
			return err
		}
	}
	for i := range plan.Pipelines {
		if !used[i] {
			continue
		}
		p := &plan.Pipelines[i]
		m := &plan.Modules[p.Module]
		line := fmt.Sprintf("; pipeline %d: %s", i, m.Name)
		for _, c := range p.Consts {
			line += " " + c.String()
		}
		text, err := d.listing(ctx, m, p, tools)
		if err != nil {
			return fmt.Errorf("%s: pipeline %d: module %q: %w", path, i, m.Name, err)
		}
		fmt.Fprintf(cli.Stdout, "%s\n%s\n", printable.Line(line), printable.Text(text))
	}
	return nil
}

// listing is a pipeline's code, and below PTX what tools make of it.
func (d *dumpFlags) listing(ctx context.Context, m *plans.Module, p *plans.Pipeline, tools *sass.Tools) (string, error) {
	text, err := modules.Disassemble(m, modules.Constants(p))
	if err != nil || tools == nil {
		return text, err
	}
	if m.Format != plans.PTX {
		return "", fmt.Errorf("--sass: the code is %s, not PTX", m.Format)
	}
	code, err := tools.Assembly(ctx, text)
	return fmt.Sprintf("%s\n// %s\n%s", text, tools.Version(), code), err
}
