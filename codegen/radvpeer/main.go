// Command radvpeer compares this project's kernels for few rows of x with those of
// llama.cpp's Vulkan back end, by what both execute on an AMD GPU. It finds the peer's
// modules in the file of the back end (libggml-vulkan.so), or in all files of a folder,
// and compiles them on a device without hardware. It wants Mesa 25.
//
//	go run ./codegen/radvpeer [--target gfx1201] FILE-OR-FOLDER
//
// Two workgroups of each kernel run in the emulator (package emulate), on zeros, and what they execute is counted. The
// same is done for the products with experts of one token.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
)

func main() {
	radv.Main()
	name := pflag.String("target", "gfx1201", "the AMD device")
	pflag.Parse()
	if pflag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "radvpeer: want the file of the peer's Vulkan back end, or a folder")
		os.Exit(2)
	}
	if err := run(context.Background(), *name, pflag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "radvpeer:", err)
		os.Exit(1)
	}
}

// line is a row of the result.
type line struct {
	columns       int
	weights, what string
	executed      work
	taken         bool
}

func run(ctx context.Context, name, path string) error {
	t, err := target.Lookup(name)
	if err != nil {
		return err
	}
	if t.AMD == nil {
		return fmt.Errorf("%s is not an AMD device", name)
	}
	modules, err := modulesOf(path)
	if err != nil {
		return err
	}
	o, err := radv.Open(ctx, t.AMD.Family, t.AMD.StandIn, nil)
	if err != nil {
		return err
	}
	defer o.Close()
	d, err := emulate.Open(ctx, name)
	if err != nil {
		return err
	}
	defer d.Close()
	r := &runner{t: t, o: o, d: d}
	var lines []line
	for _, k := range peerKernels {
		m, ok := modules[k.module]
		if !ok {
			return fmt.Errorf("%s: none of its %d modules is the %s with x in %s that the table has", path, len(modules), k.weights, k.x)
		}
		for _, columns := range all {
			l := line{columns: columns, weights: k.weights, what: "llama.cpp, x " + k.x, taken: slices.Contains(k.takes, columns)}
			if l.executed, err = r.linear(ctx, &k, m, columns); err != nil {
				return fmt.Errorf("%s, x in %s, %d columns: %w", k.weights, k.x, columns, err)
			}
			lines = append(lines, l)
		}
	}
	err = r.ours(ctx, program(formats()), func(columns int, weights, kernel string, w work) {
		lines = append(lines, line{columns: columns, weights: weights, what: "zincc: " + kernel, executed: w})
	}, func(string) float64 { return rowLength * rowCount })
	if err != nil {
		return err
	}
	slices.SortStableFunc(lines, func(a, b line) int { return a.order() - b.order() })
	fmt.Printf("%s, %s, %d modules; of 1,000 weights; * is what llama.cpp takes\n\n", t.Name, o.Driver(), len(modules))
	fmt.Printf("| weights | columns | kernel | %s |\n|---|---|---|%s\n", strings.Join(workColumns, " | "), strings.Repeat("---|", len(workColumns)))
	for _, l := range lines {
		if l.taken {
			l.what += " *"
		}
		fmt.Printf("| %s | %d | %s | %s |\n", l.weights, l.columns, l.what, &l.executed)
	}
	return r.experts(ctx, modules)
}

// order sorts by format and columns.
func (l *line) order() int {
	return 100*slices.Index(formats(), l.weights) + l.columns
}

func formats() []string {
	var list []string
	for _, k := range peerKernels {
		if !slices.Contains(list, k.weights) {
			list = append(list, k.weights)
		}
	}
	return list
}

// modulesOf returns the modules in a file or in all files of a folder.
func modulesOf(path string) (map[string]module, error) {
	all := map[string]module{}
	err := filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		maps.Copy(all, findModules(data))
		return err
	})
	return all, err
}
