// Command radvpeer compares this project's kernels for few rows of x with those of
// llama.cpp's Vulkan back end, by what AMD's compiler makes of both. It finds the peer's
// modules in the file of the back end (libggml-vulkan.so), or in all files of a folder,
// and compiles them on a device without hardware. It wants Mesa 25.
//
//	go run ./codegen/radvpeer [--target gfx1201] FILE-OR-FOLDER
//
// A kernel's cycles are ACO's inverse throughput: those for which 64 lanes keep their
// SIMD busy. ACO takes each loop as eight iterations. For this project's kernels that is
// corrected by what workgroups execute; for the peer's each loop is compiled once on
// its own and once left out, and counts as often as it runs. Two workgroups of each kernel
// also run in the emulator (package emulate), on zeros, and what they execute is counted. The same is done for the
// products with experts of one token.
package main

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
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
	cycles        float64 // of SIMDs for 1,000 weights
	executed      work
	waves         int
	figures       radv.Figures
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
	var lines []line
	for _, k := range peerKernels {
		m, ok := modules[k.module]
		if !ok {
			return fmt.Errorf("%s: none of its %d modules is the %s with x in %s that the table has", path, len(modules), k.weights, k.x)
		}
		for _, columns := range all {
			l, err := k.compile(ctx, o, t, m, columns)
			if err != nil {
				return fmt.Errorf("%s, x in %s, %d columns: %w", k.weights, k.x, columns, err)
			}
			if l.executed, err = k.execute(ctx, d, m, columns); err != nil {
				return fmt.Errorf("%s, x in %s, %d columns: %w", k.weights, k.x, columns, err)
			}
			lines = append(lines, l)
		}
	}
	ours, err := ourLines(ctx, o, d, t)
	if err != nil {
		return err
	}
	lines = append(lines, ours...)
	slices.SortStableFunc(lines, func(a, b line) int { return a.order() - b.order() })
	fmt.Printf("%s, %s, %d modules; busy cycles of a SIMD for 1,000 weights; * is what llama.cpp takes\n\n", t.Name, o.Driver(), len(modules))
	fmt.Printf("| weights | columns | kernel | cycles | executed | instructions executed | bytes a weight | conflicts | VGPRs | waves | instructions | VALU | VMEM |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
	for _, l := range lines {
		what := l.what
		if l.taken {
			what += " *"
		}
		f := &l.figures
		fmt.Printf("| %s | %d | %s | %.0f | %.0f | %.0f | %.2f | %.1f | %d | %d | %d | %d | %d |\n", l.weights, l.columns, what, l.cycles, l.executed.cycles, l.executed.instructions, l.executed.bytes, l.executed.conflicts, f.VGPRs, l.waves, f.Instructions, f.VALU, f.VMEM)
	}
	return experts(ctx, o, d, t, modules)
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

// compile compiles the kernel for some columns.
func (k *peerKernel) compile(ctx context.Context, o *radv.Oracle, t *target.Target, m module, columns int) (line, error) {
	m = m.whole()
	loops := m.loops()
	rows := k.rows[columns]
	kernel := func(m module) radv.Kernel { return kernelOf(k.weights+" "+k.x, m, rows, columns) }
	asked := []radv.Kernel{kernel(m), kernel(m.only(loops, -1))}
	for i := range loops {
		asked = append(asked, kernel(m.only(loops, i)))
	}
	results, err := o.Compile(ctx, asked)
	if err != nil {
		return line{}, err
	}
	for _, r := range results {
		if r.Refused != "" {
			return line{}, fmt.Errorf("%s", r.Refused)
		}
	}
	const assumed = 8 // iterations of a loop
	whole, without := results[0].Figures, float64(results[1].InverseThroughput)
	cycles, trips := without, k.trips
	for _, r := range results[2:] {
		each := (float64(r.InverseThroughput) - without) / assumed
		if each < 1 {
			continue // of the body that is left out
		}
		if len(trips) == 0 {
			return line{}, fmt.Errorf("more loops than the table's %d", len(k.trips))
		}
		cycles, trips = cycles+each*trips[0], trips[1:]
	}
	if len(trips) > 0 {
		return line{}, fmt.Errorf("%d loops less than the table's %d", len(trips), len(k.trips))
	}
	return line{columns: columns, weights: k.weights, what: "llama.cpp, x " + k.x, cycles: cycles / float64(rows*rowLength) * 1000,
		waves: t.AMD.Occupancy(peerWave, whole.VGPRs, peerWave, whole.LDS), figures: whole, taken: slices.Contains(k.takes, columns)}, nil
}

// ourLines returns this project's kernels for the same projections.
func ourLines(ctx context.Context, o *radv.Oracle, d *emulate.Device, t *target.Target) ([]line, error) {
	p, err := ir.Parse(program(formats()))
	if err != nil {
		return nil, err
	}
	if err := weight.Lay(t, p); err != nil {
		return nil, err
	}
	list, err := codegen.BusyCycles(ctx, p, t, o)
	if err != nil {
		return nil, err
	}
	var lines []line
	for _, b := range list {
		var columns int
		if _, err := fmt.Sscanf(b.Entry, "decode/%d", &columns); err != nil {
			return nil, err
		}
		executed, err := executeOurs(ctx, d, b.Candidate, columns, rowLength*rowCount)
		if err != nil {
			return nil, err
		}
		lines = append(lines, line{columns: columns, executed: executed, weights: b.Site, what: "zincc: " + b.Kernel, cycles: b.Cycles / (rowLength * rowCount) * 1000,
			waves: b.Waves, figures: b.Figures})
	}
	return lines, nil
}
