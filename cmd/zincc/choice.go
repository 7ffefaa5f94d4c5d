package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// choiceFlags say by what kernels are chosen.
type choiceFlags struct {
	compiler   string
	tuning     []string
	candidates string
}

func (c *choiceFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&c.compiler, "device-compiler", "auto", "rank kernels by asking AMD's compiler: auto (if Mesa's driver is installed), off or require")
	f.StringArrayVar(&c.tuning, "tuning", nil, "choose kernels by this file of zincrun tune or zincc tune (repeatable); off: use no measurement at all")
	f.StringVar(&c.candidates, "candidates", "", "make a plan of all candidates for zincrun tune; with a value, of this entry only, such as --candidates=decode/1")
	f.Lookup("candidates").NoOptDefVal = codegen.AllEntries
}

// open reads the tuning files and starts AMD's compiler, if they are wanted; done ends it.
func (c *choiceFlags) open(ctx context.Context, t *target.Target) (choice codegen.Choice, done func(), err error) {
	choice.Copies = c.candidates
	var lists [][]tuning.Row
	off := len(c.tuning) == 1 && c.tuning[0] == "off"
	if !off {
		for _, path := range c.tuning {
			rows, err := tuning.Read(path)
			if err != nil {
				return choice, nil, err
			}
			lists = append(lists, rows)
		}
		rows, err := target.Tuned(t)
		if err != nil {
			return choice, nil, err
		}
		lists = append(lists, rows)
	}
	choice.Tuned = tuning.NewTable(lists...)
	known := radv.Known{}
	for _, rows := range lists {
		for _, r := range rows {
			if r.Compiled == "" || t.AMD == nil || r.Device != t.AMD.Family {
				continue
			}
			if err := known.Add(r.Compiled, r.Driver); err != nil {
				return choice, nil, fmt.Errorf("tuning of %s: compiled: %w", r.Site, err)
			}
		}
	}
	if choice.Compiler, err = openCompiler(ctx, c.compiler, t, known); err != nil {
		return choice, nil, err
	}
	return choice, func() {
		if choice.Compiler != nil {
			choice.Compiler.Close()
		}
	}, nil
}

// openCompiler returns AMD's compiler for the target, or nil where it is not to be
// asked: with auto, that is for other targets and where neither driver nor known
// answers are there.
func openCompiler(ctx context.Context, mode string, t *target.Target, known radv.Known) (*radv.Compiler, error) {
	switch mode {
	case "off":
		return nil, nil
	case "auto", "require":
	default:
		return nil, cli.Usagef("--device-compiler: want auto, off or require, have %q", mode)
	}
	if t.AMD == nil {
		if mode == "require" {
			return nil, cli.Usagef("--device-compiler: target %s has none", t.Name)
		}
		return nil, nil
	}
	if mode == "require" {
		o, err := radv.Open(ctx, t.AMD.Family, t.AMD.StandIn, nil) // says what is missing
		if err != nil {
			return nil, err
		}
		o.Close()
	}
	o, err := radv.Open(ctx, t.AMD.Family, t.AMD.StandIn, known)
	if errors.Is(err, radv.ErrNoDriver) {
		return nil, nil
	}
	return o, err
}
