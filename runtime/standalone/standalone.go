// Package standalone is what programs are built on that zincc writes as Go source
// (zincc compile --emit-go): it puts the plan together and continues a text.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Model is a plan in parts: what is Go, and the names of what is in files.
type Model struct {
	Plan    plans.Plan // without modules, program, vocabulary and weights
	Kernels []Kernel
	Program string // the op program as .zir text
	Vocab   string // as Vocab.MarshalBinary encodes it
	Files   fs.FS
	Weights []byte // as Plan.Embedded
}

// Kernel is a module of the plan and the file that holds its code.
type Kernel struct {
	Name, Format string
	Interface    plans.Interface
	File         string
}

// Assemble puts the plan together. It encodes to the bytes of the plan that the
// model was made from.
func (m *Model) Assemble() (*plans.Plan, error) {
	p := m.Plan
	for _, k := range m.Kernels {
		data, err := fs.ReadFile(m.Files, k.File)
		if err != nil {
			return nil, err
		}
		m := plans.Module{Name: k.Name, Format: k.Format, Bytes: data, Interface: k.Interface}
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("%s: %w", k.File, err)
		}
		p.Modules = append(p.Modules, m)
	}
	program, err := fs.ReadFile(m.Files, m.Program)
	if err != nil {
		return nil, err
	}
	if p.Program, err = ir.Parse(string(program)); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Program, err)
	}
	vocab, err := fs.ReadFile(m.Files, m.Vocab)
	if err != nil {
		return nil, err
	}
	if err := p.Vocab.UnmarshalBinary(vocab); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Vocab, err)
	}
	p.Embedded = m.Weights
	return &p, plans.Validate(&p)
}

// Main runs the model with the process's arguments and ends the process, with the exit
// codes of zincrun: 0 ok, 1 failed, 2 wrong usage, 3 unsupported device.
func Main(m *Model) {
	ctx, stop := cli.Interruptible()
	defer stop()
	os.Exit(cli.Exit(os.Stderr, os.Args[0], m.run(ctx, os.Args, os.Stdin, cli.Stdout, cli.Stderr)))
}

// run reads a prompt from in and writes the text to out and what else is to be said to notes.
func (m *Model) run(ctx context.Context, args []string, in io.Reader, out, notes io.Writer) error {
	h := &m.Plan.Header
	f := pflag.NewFlagSet(args[0], pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SortFlags = false
	o := options{}
	f.StringVarP(&o.prompt, "prompt", "p", "", "the text to continue; without it, standard input")
	f.IntVarP(&o.n, "n-predict", "n", 128, "tokens to generate, at most")
	f.StringVar(&o.model, "model", "", "the model file, if it has moved since compilation")
	f.StringVar(&o.device, "device", "auto", "where to run: auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host")
	f.StringVar(&o.plan, "write-plan", "", "write the plan to this file, for zincc and zincrun, and end")
	f.Usage = func() {
		fmt.Fprintf(out, "Continues a text on standard output: model %s for %s.\n\n%s", printable.Name(h.Model.Name), printable.Name(h.Target), f.FlagUsages())
	}
	switch err := f.Parse(args[1:]); {
	case errors.Is(err, pflag.ErrHelp):
		return err
	case err != nil:
		return cli.Usagef("%s", err)
	case f.NArg() > 0:
		return cli.Usagef("unexpected argument %q", f.Arg(0))
	}
	if err := device.CheckName(o.device); err != nil {
		return cli.Usagef("--device: %s", err)
	}
	if o.n < 0 {
		return cli.Usagef("-n is %d, want 0 or more", o.n)
	}
	o.promptGiven = f.Changed("prompt")
	return m.do(ctx, args[0], o, in, out, notes)
}

type options struct {
	prompt, model, device, plan string
	promptGiven                 bool
	n                           int
}

func (m *Model) do(ctx context.Context, self string, o options, in io.Reader, out, notes io.Writer) error {
	plan, err := m.Assemble()
	if err != nil {
		return err
	}
	if o.plan != "" {
		inputs := []string{o.model}
		if src, err := plans.OpenSource(plan, self, o.model); err == nil {
			inputs = append(inputs, src.Files()...)
			src.Close()
		}
		if exe, err := os.Executable(); err == nil {
			inputs = append(inputs, exe)
		}
		if err := cli.CheckOutput(o.plan, inputs...); err != nil {
			return err
		}
		_, err = plans.WriteFile(o.plan, plan)
		return err
	}
	if !o.promptGiven {
		data, err := io.ReadAll(cli.Input(ctx, in))
		if err != nil {
			return err
		}
		o.prompt = string(data)
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		return err
	}
	src, err := plans.OpenSource(plan, self, o.model)
	if err != nil {
		return err
	}
	defer src.Close()
	exec, err := device.Open(ctx, o.device, plan, src, device.Options{})
	if err != nil {
		return err
	}
	defer exec.Close()
	ids := tok.Encode(o.prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
	if len(ids) == 0 {
		return fmt.Errorf("the prompt has no tokens")
	}
	e, err := engine.New(plan, exec, tok, engine.Options{ITL: engine.Unhurried})
	if err != nil {
		return err
	}
	defer e.Close()
	done, err := e.Answer(ctx, engine.Request{Prompt: ids, Max: o.n, TopLogprobs: -1}, out)
	if err == nil && done.Reason == engine.Context {
		fmt.Fprintf(notes, "\n%s: stopped: the context of %d is full\n", self, plan.Header.Ctx)
	}
	return err
}
