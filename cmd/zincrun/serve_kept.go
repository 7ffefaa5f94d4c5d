package main

import (
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/keep"
)

// keptFlags say what of prompts is kept over restarts.
type keptFlags struct {
	dir   string
	size  float64     // GiB
	store *keep.Store // nil: nothing
}

func (k *keptFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&k.dir, "cache-dir", "", "folder that keeps what slots hold of prompts over restarts; it has their tokens' keys and values")
	f.Float64Var(&k.size, "cache-size", 20, "GiB that --cache-dir may have, at most")
}

func (k *keptFlags) open(log *slog.Logger) (err error) {
	if k.dir == "" {
		return nil
	}
	if !(k.size > 0 && k.size < 1<<20) {
		return cli.Usagef("--cache-size: want more than 0")
	}
	k.store, err = keep.Open(k.dir, int64(k.size*(1<<30)), func(line string) { log.Warn("cache-dir", "line", printable.Line(line)) })
	if err != nil {
		return fmt.Errorf("--cache-dir: %w", err)
	}
	return nil
}
