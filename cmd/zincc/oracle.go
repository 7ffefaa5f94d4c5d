package main

import (
	"context"
	"errors"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
)

// openOracle returns AMD's compiler for the target, or nil where it is not to be
// asked: with auto, that is for other targets and where neither driver nor known
// answers are there.
func openOracle(ctx context.Context, mode string, t *target.Target) (*radv.Oracle, error) {
	switch mode {
	case "off":
		return nil, nil
	case "auto", "require":
	default:
		return nil, cli.Usagef("--oracle: want auto, off or require, have %q", mode)
	}
	if t.AMD == nil {
		if mode == "require" {
			return nil, cli.Usagef("--oracle: there is none for target %s", t.Name)
		}
		return nil, nil
	}
	o, err := radv.Open(ctx, t.AMD.Family, t.AMD.StandIn)
	switch {
	case mode == "auto" && errors.Is(err, radv.ErrNoDriver):
		return nil, nil
	case err == nil && mode == "require" && o.Driver() == "":
		_, err := radv.Record(ctx, t.AMD.Family, t.AMD.StandIn) // says what is missing
		return nil, err
	}
	return o, err
}
