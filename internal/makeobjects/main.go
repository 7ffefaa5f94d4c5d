// Command makeobjects writes codegen/objects/objects.zip: the machine code of the kernels that models of all
// architectures, weight types and types of cache need, for the kinds of processor whose code zincc holds, x86-64-v3 and x86-64-v4: see
// programs. It needs LLVM for those that have changed. With --check it compares what it makes with what is there; that
// nothing is missing there, a test finds without LLVM.
//
//	go run ./internal/makeobjects [--check] [--target NAME,...]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"sync/atomic"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/plans"
)

// out is relative to the module's root.
const out = "codegen/objects/objects.zip"

func main() {
	check := pflag.Bool("check", false, "compare with what is there instead of writing it")
	only := pflag.StringSlice("target", nil, "count and make objects of these targets alone, and write nothing")
	pflag.Parse()
	if err := run(context.Background(), *check, *only); err != nil {
		fmt.Fprintln(os.Stderr, "makeobjects:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool, only []string) error {
	if pflag.NArg() > 0 {
		return errors.New("takes no arguments")
	}
	list, err := wanted(ctx, ".", processors(only))
	if err != nil {
		return err
	}
	made := make([]objects.Object, len(list))
	var done atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, w := range list {
		group.Go(func() error {
			code, err := objects.Of(ctx, w.Wanted)
			made[i] = objects.Object{Kernel: w.Kernel, Machine: w.Machine.Name, Key: w.key, Code: code}
			fmt.Fprintf(os.Stderr, "\r%d of %d objects", done.Add(1), len(list))
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	var packed bytes.Buffer
	if err := objects.Write(&packed, made); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "\r%d objects, %d bytes\n", len(made), packed.Len())
	switch {
	case len(only) > 0:
		return nil
	case check:
		have, err := os.ReadFile(out)
		if err == nil && !bytes.Equal(have, packed.Bytes()) {
			err = fmt.Errorf("%s is not what is made of the kernels: `make objects` writes it anew", out)
		}
		return err
	}
	return outfile.Write(out, func(w io.Writer) error { _, err := w.Write(packed.Bytes()); return err })
}

// processors returns the targets whose machine code zincc holds, or those of these names.
func processors(only []string) []*target.Target {
	return slices.DeleteFunc(slices.Clone(target.All()), func(t *target.Target) bool {
		if t.Backend != plans.CPU || len(only) > 0 {
			return t.Backend != plans.CPU || !slices.Contains(only, t.Name)
		}
		m, err := llvm.MachineOf(t.Machine)
		return err != nil || !m.Held
	})
}
