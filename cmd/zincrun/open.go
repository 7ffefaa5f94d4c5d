package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/model"
	"github.com/zincc-dev/zincc/runtime/text"
)

// planFlags are the flags of every command that runs a plan.
type planFlags struct {
	device, backend, model, kv, keep string
	ctx                              cli.Positions
	exact                            bool
	candidates                       string // of a model file: an entry or all; else the plan is the one to run
}

func (o *planFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&o.device, "device", "auto", "where to run: auto, cuda, cuda:I, vulkan, vulkan:I (zincrun devices lists them), cpu, host, or rdna:gfx1100 and the like: AMD's code without the GPU, slowly")
	f.StringVar(&o.backend, "backend", "", "with a model file: use only this backend: cuda, vulkan, cpu or host (default the fastest)")
	f.StringVar(&o.model, "model", "", "the model file, if it has moved since compilation")
	f.Var(&o.ctx, "ctx", "with a model file: positions of the KV cache, such as 4096 or 128k (default as many as fit the memory and the model has)")
	f.StringVar(&o.keep, "keep-layout", "", "on processors: keep the weights in this folder in their layout in memory, and map them the next time")
	f.StringVar(&o.kv, "kv", "", "with a model file: type of the KV cache: "+ir.CacheTypeNames())
	f.BoolVar(&o.exact, "exact", false, "with a model file: read prompts as exactly as answers; slower")
}

// options are what the flags say.
func (o *planFlags) options() model.Options {
	var compile []string
	if o.ctx != 0 {
		compile = append(compile, "--ctx="+o.ctx.String())
	}
	if o.kv != "" {
		compile = append(compile, "--kv="+o.kv)
	}
	if o.exact {
		compile = append(compile, "--exact")
	}
	if o.candidates != "" {
		compile = append(compile, "--candidates="+o.candidates)
	}
	return model.Options{Device: o.device, Backend: o.backend, Model: o.model, Compile: compile, KeepLayout: o.keep, Said: said, Watch: watch}
}

func said(line string) { fmt.Fprintf(cli.Stderr, "zincrun: %s\n", printable.Line(line)) }

// watch shows how far a task is on a terminal.
func watch(what string) progress.Task { return cli.NewProgress(what, 0) }

// opened is a plan ready to run.
type opened struct {
	*model.Opened
	tok *text.Tokenizer // nil unless openText opened it
}

// open opens a plan or a model for commands that need no text: its tokenizer may be missing, or one
// that nobody knows.
func (o *planFlags) open(ctx context.Context, path string) (*opened, error) {
	path, err := models.Path(ctx, path)
	if err != nil {
		return nil, err
	}
	m, err := model.Open(ctx, path, o.options())
	if err != nil {
		return nil, usage(err)
	}
	return &opened{Opened: m}, nil
}

// usage makes a usage error of an option that does not fit.
func usage(err error) error {
	var option *model.OptionError
	if errors.As(err, &option) {
		return cli.Usagef("%s", option.Problem)
	}
	return err
}

// openText opens a plan with its tokenizer.
func (o *planFlags) openText(ctx context.Context, path string) (*opened, error) {
	opened, err := o.open(ctx, path)
	if err != nil {
		return nil, err
	}
	if opened.tok, err = opened.Tokenizer(); err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// checkOutput fails if writing out would destroy the plan, its model or one of the inputs.
func (o *opened) checkOutput(out string, inputs ...string) error {
	return cli.CheckOutput(out, append(append(inputs, o.Path), o.Source.Files()...)...)
}

// encode returns the tokens of a prompt, special ones included.
func encode(tok *text.Tokenizer, prompt string) []int32 {
	return tok.Encode(prompt, text.EncodeOptions{AddSpecial: true, ParseSpecial: true})
}

// promptFlags name the text to work on.
type promptFlags struct {
	text, file string
}

func (p *promptFlags) declare(f *pflag.FlagSet) {
	f.StringVarP(&p.text, "prompt", "p", "", "the text")
	f.StringVarP(&p.file, "file", "f", "", "the file that holds the text; - for standard input")
}

// read returns the text; false if neither flag was given.
func (p *promptFlags) read(ctx context.Context, f *pflag.FlagSet) (string, bool, error) {
	switch {
	case f.Changed("prompt") && p.file != "":
		return "", false, cli.Usagef("give either -p or -f")
	case p.file == "-":
		b, err := io.ReadAll(cli.Stdin(ctx))
		return string(b), true, err
	case p.file != "":
		b, err := os.ReadFile(p.file)
		return string(b), true, err
	}
	return p.text, f.Changed("prompt"), nil
}

// planAndText returns the path of the plan, the one argument, and the text. question
// is what to ask where no text was given.
func (p *promptFlags) planAndText(ctx context.Context, f *pflag.FlagSet, args []string, question string) (path, text string, err error) {
	if path, err = cli.OneArg(args, "plan"); err != nil {
		return "", "", err
	}
	text, given, err := p.read(ctx, f)
	if err == nil && !given {
		err = cli.Usagef("%s give -p or -f", question)
	}
	return path, text, err
}

// reading shows how much of a prompt is read, until done is called.
func reading(r *engine.Request) (done func()) {
	bar := cli.NewProgress("reading the prompt", 0)
	kept := -1 // what was there from before, and the first step
	r.Reading = func(tokens int) {
		if kept < 0 {
			kept = tokens
		}
		bar.At(progress.Report{Done: int64(tokens - kept), Total: int64(len(r.Prompt) - kept)})
	}
	return bar.Done
}
