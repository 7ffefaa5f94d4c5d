package main

import (
	"fmt"
	"log/slog"
	"strconv"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/host"
	"github.com/zincc-dev/zincc/runtime/keep"
)

// keptFlags say what of prompts is kept beside slots: in memory, and over restarts.
type keptFlags struct {
	dir    string
	size   float64 // GiB
	host   string  // GiB, or auto
	store  *keep.Store
	memory *keep.Memory // of all models
	auto   bool         // only for GPUs
}

func (k *keptFlags) declare(f *pflag.FlagSet) {
	f.StringVar(&k.dir, "cache-dir", "", "folder that keeps what slots hold of prompts over restarts; it has their tokens' keys, values and states")
	f.Float64Var(&k.size, "cache-size", 20, "GiB that --cache-dir may have, at most")
	f.StringVar(&k.host, "host-cache", "auto", "GiB of memory for prompts that slots hold no more; 0: none; auto: of models on GPUs an eighth of what there is, 16 at most")
}

// mostHost is what --host-cache auto takes at most, in bytes.
const mostHost = 16 << 30

func (k *keptFlags) open(log *slog.Logger) (err error) {
	if k.auto = k.host == "auto"; k.auto {
		k.memory = keep.NewMemory(min(host.Available()/8, mostHost))
	} else if gib, err := strconv.ParseFloat(k.host, 64); err != nil || !(gib >= 0 && gib < 1<<20) {
		return cli.Usagef("--host-cache: want auto or a number of GiB, 0 or more")
	} else if gib > 0 {
		k.memory = keep.NewMemory(int64(gib * (1 << 30)))
	}
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

// of returns what keeps prompts of the plan with a digest; nil: nothing does.
func (k *keptFlags) of(digest string, exec runtime.Executor) engine.Keeper {
	m := k.memory
	if x, ok := exec.(runtime.Overlapping); k.auto && !(ok && x.Overlaps()) {
		m = nil
	}
	if m == nil && k.store == nil {
		return nil
	}
	return keep.Of(m, k.store, digest)
}
