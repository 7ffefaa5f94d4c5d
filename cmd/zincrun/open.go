package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/planstore"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// planFlags are the flags of every command that runs a plan.
type planFlags struct {
	device, model, kv string
	ctx               cli.Positions
}

func (o *planFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&o.device, "device", "auto", "where to run: auto, vulkan, vulkan:I (zincrun probe lists them) or host")
	f.StringVar(&o.model, "model", "", "the model file, when it is not where it was at compilation")
	f.Var(&o.ctx, "ctx", "of a model file: positions of the KV cache, such as 4096 or 128k")
	f.StringVar(&o.kv, "kv", "", "of a model file: type of the KV cache: f16, f32 or q8_0")
}

// plan returns the path of the plan and that of its model if it is not to be looked for. Of a model file it is the
// plan that was made of it before, else zincc makes one.
func (o *planFlags) plan(ctx context.Context, path string) (plan, model string, err error) {
	if !gguf.Is(path) {
		if o.ctx != 0 || o.kv != "" {
			return "", "", cli.Usagef("--ctx and --kv are for model files: a plan has its own")
		}
		return path, o.model, nil
	}
	if o.model != "" {
		return "", "", cli.Usagef("--model is for plans: %s is a model", path)
	}
	store, err := planstore.Open()
	if err != nil {
		return "", "", err
	}
	w := planstore.Wish{Model: path, Device: o.device}
	if o.ctx != 0 {
		w.Flags = append(w.Flags, "--ctx="+o.ctx.String())
	}
	if o.kv != "" {
		w.Flags = append(w.Flags, "--kv="+o.kv)
	}
	plan, made, err := store.Plan(ctx, w, os.Stderr)
	var refused *planstore.CompileError
	if errors.As(err, &refused) && refused.Code == 2 {
		err = cli.Usagef("%s", refused.Said)
	}
	if err == nil && made > 0 {
		fmt.Fprintf(os.Stderr, "zincrun: compiled %s in %s, kept as %s\n", path, made.Round(100*time.Millisecond), plan)
	}
	return plan, path, err
}

// opened is a plan ready to run.
type opened struct {
	path string
	plan *plans.Plan
	src  *plans.Source
	exec runtime.Executor
	tok  *text.Tokenizer // nil unless openText opened it
	load time.Duration
}

// open opens a plan for commands that need no text: its tokenizer may be missing, or one
// that nobody knows.
func (o *planFlags) open(ctx context.Context, path string) (*opened, error) {
	return o.openWith(ctx, path, func(path string) (*plans.Plan, *text.Tokenizer, error) {
		plan, err := plans.Read(path)
		return plan, nil, err
	})
}

// openText opens a plan with its tokenizer.
func (o *planFlags) openText(ctx context.Context, path string) (*opened, error) {
	return o.openWith(ctx, path, readPlan)
}

func (o *planFlags) openWith(ctx context.Context, path string, read func(path string) (*plans.Plan, *text.Tokenizer, error)) (*opened, error) {
	start := time.Now()
	if err := device.CheckName(o.device); err != nil {
		return nil, cli.Usagef("--device: %s", err)
	}
	path, model, err := o.plan(ctx, path)
	if err != nil {
		return nil, err
	}
	plan, tok, err := read(path)
	if err != nil {
		return nil, err
	}
	src, err := plans.OpenSource(plan, path, model)
	if err != nil {
		plan.Close()
		return nil, err
	}
	bar := cli.NewProgress("loading weights", plan.Require.Memory)
	exec, err := device.Open(ctx, o.device, plan, src, bar.Add)
	bar.Done()
	if err != nil {
		src.Close()
		plan.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if x, ok := exec.(*vulkan.Executor); ok {
		for i := range plan.Entries {
			if why := x.Fallback(&plan.Entries[i]); why != "" {
				fmt.Fprintf(os.Stderr, "zincrun: %s runs as dispatches, not as one persistent kernel: %s\n", printable.Name(plan.Entries[i].Name), printable.Line(why))
			}
		}
	}
	return &opened{path, plan, src, exec, tok, time.Since(start)}, nil
}

// checkOutput fails if writing out would destroy the plan, its model or one of the inputs.
func (o *opened) checkOutput(out string, inputs ...string) error {
	return cli.CheckOutput(out, append(append(inputs, o.path), o.src.Files()...)...)
}

func (o *opened) Close() {
	o.exec.Close()
	o.src.Close()
	o.plan.Close()
}

// readPlan reads a plan with its tokenizer.
func readPlan(path string) (*plans.Plan, *text.Tokenizer, error) {
	plan, err := plans.Read(path)
	if err != nil {
		return nil, nil, err
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		plan.Close()
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return plan, tok, nil
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
