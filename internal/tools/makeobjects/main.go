// Command makeobjects writes the folders codegen/objects/ARCH: the machine code of the kernels that models of all
// architectures, weight types and types of cache need, for all kinds of processor that there is code for: see
// programs. It needs LLVM for those that have changed. With --check it compares what it makes with what is there; that
// nothing is missing there, a test finds without LLVM.
//
//	go run ./internal/tools/makeobjects [--check] [--arch amd64|arm64]
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/outfile"
)

// archiveOf is the folder of the objects of an architecture, below the module's root.
func archiveOf(root, arch string) string {
	return filepath.Join(root, "codegen/objects", arch)
}

func main() {
	check := pflag.Bool("check", false, "compare with what is there instead of writing it")
	only := pflag.String("arch", "", "make those of this architecture alone (default all)")
	pflag.Parse()
	if err := run(context.Background(), *check, *only); err != nil {
		fmt.Fprintln(os.Stderr, "makeobjects:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, check bool, only string) error {
	if pflag.NArg() > 0 {
		return errors.New("takes no arguments")
	}
	list, err := wanted(ctx, ".", processors(only), 1, allOf)
	if err != nil {
		return err
	}
	held := map[string]*objects.Archive{} // this program embeds one; those of the others need not be made again either
	for _, w := range list {
		arch := w.Machine.Arch
		if held[arch] != nil || check {
			continue
		}
		if held[arch], err = objects.Open(os.DirFS(archiveOf(".", arch))); err != nil {
			return err
		}
	}
	byArch := map[string][]objects.Object{}
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, w := range list {
		group.Go(func() error {
			var code []byte
			var err error
			if a := held[w.Machine.Arch]; a != nil {
				code, err = a.Find(w.key)
			}
			if code == nil && err == nil {
				code, err = objects.Of(ctx, w.Wanted)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			fmt.Fprintf(os.Stderr, "\r%d of %d objects", done, len(list))
			arch := w.Machine.Arch
			byArch[arch] = append(byArch[arch], objects.Object{Kernel: w.Kernel, Machine: w.Machine.Name, Key: w.key, Code: code})
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr)
	for arch, list := range byArch {
		if err := write(archiveOf(".", arch), list, check); err != nil {
			return err
		}
	}
	return nil
}

// write writes the archive of an architecture, or compares it with what is there: files that have not changed are left
// alone, those of kernels that are gone go.
func write(folder string, list []objects.Object, check bool) error {
	files, err := objects.Files(list)
	if err != nil {
		return err
	}
	there, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return err
	}
	bytesOf, changed := 0, 0
	for _, path := range there {
		if files[filepath.Base(path)] == nil {
			changed++
			if !check {
				err = errors.Join(err, os.Remove(path))
			}
		}
	}
	for name, data := range files {
		bytesOf += len(data)
		path := filepath.Join(folder, name)
		if have, missing := os.ReadFile(path); missing == nil && bytes.Equal(have, data) {
			continue
		}
		changed++
		if !check {
			err = errors.Join(err, os.MkdirAll(folder, 0o777), outfile.Write(path, func(w io.Writer) error { _, err := w.Write(data); return err }))
		}
	}
	fmt.Fprintf(os.Stderr, "%s: %d objects in %d files, %d bytes; %d files differ\n", folder, len(list), len(files), bytesOf, changed)
	if check && changed > 0 {
		return fmt.Errorf("%s is not what is made of the kernels: `make objects` writes it anew", folder)
	}
	return err
}

// processors returns the targets for processors, or those of an architecture.
func processors(arch string) []*target.Target {
	return slices.DeleteFunc(slices.Clone(target.All()), func(t *target.Target) bool {
		m, err := llvm.MachineOf(t.Machine)
		return !t.Processor() || err != nil || arch != "" && m.Arch != arch
	})
}
