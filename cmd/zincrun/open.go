package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/text"
)

// planFlags are the flags of every command that runs a plan.
type planFlags struct {
	device, model string
}

func (o *planFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&o.device, "device", "auto", "where to run: auto, vulkan, vulkan:I (zincrun probe lists them) or host")
	f.StringVar(&o.model, "model", "", "the model file, when it is not where it was at compilation")
}

// opened is a plan ready to run.
type opened struct {
	plan *plans.Plan
	src  *plans.Source
	exec runtime.Executor
	tok  *text.Tokenizer
	load time.Duration
}

func (o *planFlags) open(ctx context.Context, path string) (*opened, error) {
	start := time.Now()
	if err := device.CheckName(o.device); err != nil {
		return nil, cli.Usagef("--device: %s", err)
	}
	plan, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	tok, err := text.New(plan.Vocab)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	src, err := plans.OpenSource(plan, path, o.model)
	if err != nil {
		return nil, err
	}
	bar := cli.NewProgress("loading weights", plan.Require.Memory)
	exec, err := device.Open(ctx, o.device, plan, src, bar.Add)
	bar.Done()
	if err != nil {
		src.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &opened{plan, src, exec, tok, time.Since(start)}, nil
}

func (o *opened) Close() {
	o.exec.Close()
	o.src.Close()
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
