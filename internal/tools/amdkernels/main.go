// Command amdkernels lists the kernels of plans for AMD's targets, with what their machine code does: some workgroups
// of each run in the interpreter of the kernel language and in the emulator, on the same random inputs, and the results
// are compared.
//
//	go run ./internal/tools/amdkernels -o docs/backends/amd-kernels.txt
//	go run ./internal/tools/amdkernels --target gfx1201 --shape qwen3-8b:4 --entry decode/1 --cycles
//
// Each module runs with every set of constants that a plan has. With -o it runs what the file lacks, and removes from
// the file what plans no longer have. Its exit code is 1 if a kernel is at fault or differs, or if less than 99 of 100
// of those that the driver makes code of run.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// options are the flags.
type options struct {
	targets, shapes, entries []string
	layers                   int
	cycles                   bool
	out, export              string
}

func main() {
	radv.Main()
	o := options{}
	pflag.StringSliceVar(&o.targets, "target", []string{"gfx1201", "gfx1200", "gfx1100", "gfx1151"}, "targets")
	pflag.StringSliceVar(&o.shapes, "shape", nil, "shapes, instead of the published ones")
	pflag.StringSliceVar(&o.entries, "entry", nil, "entries, instead of all")
	pflag.IntVar(&o.layers, "layers", 8, "layers of a model at most: further ones repeat them")
	pflag.BoolVar(&o.cycles, "cycles", false, "also compare the cost model's cycles with those of what was executed")
	pflag.StringVarP(&o.out, "output", "o", "", "make this file the list: what it has already does not run")
	pflag.StringVar(&o.export, "export", "", "also write launches into this folder, for tinygrad.py")
	pflag.Parse()
	if pflag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "amdkernels: takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "amdkernels:", err)
		os.Exit(1)
	}
}

func (o *options) run(ctx context.Context) error {
	shapes, err := o.models()
	if err != nil {
		return err
	}
	units, err := o.units(ctx, shapes)
	if err != nil {
		return err
	}
	out, sum := io.Writer(os.Stdout), &summary{}
	if o.out != "" {
		f, left, err := resume(o.out, units, sum)
		if err != nil {
			return fmt.Errorf("%s: %w", o.out, err)
		}
		defer f.Close()
		out, units = f, left
	}
	err = errors.Join(o.list(ctx, units, sum, out), sum.err(os.Stderr))
	if o.cycles {
		err = errors.Join(err, sum.writeCycles(os.Stderr))
	}
	return err
}

// resume opens a list to write more lines to, and returns the units that it lacks. Its lines of modules that plans no
// longer have, or have with other numbers of sets of constants, are removed.
func resume(name string, units [][]*unit, sum *summary) (*os.File, [][]*unit, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, nil, err
	}
	kept, left, err := current(f, units, sum)
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt([]byte(kept), 0)
	}
	if err == nil {
		_, err = f.Seek(0, io.SeekEnd)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, left, nil
}

// current returns the lines of a list that are of the units, and the units of which it has none.
func current(list io.Reader, units [][]*unit, sum *summary) (kept string, left [][]*unit, err error) {
	has := map[string]map[string]int{} // sets of constants of a module's targets
	for _, sets := range units {
		on := map[string]int{}
		for _, u := range sets {
			for _, name := range u.targets {
				on[name]++
			}
		}
		has[sets[0].module()] = on
	}
	err = read(list, func(text, module string, rows []*row) {
		on := map[string]int{}
		for _, r := range rows {
			for _, name := range r.targets {
				on[name] = r.sets
			}
		}
		if !maps.Equal(on, has[module]) {
			return
		}
		delete(has, module)
		kept += text + "\n"
		for _, r := range rows {
			sum.add(r)
		}
	})
	left = slices.DeleteFunc(slices.Clone(units), func(sets []*unit) bool { return has[sets[0].module()] == nil })
	return kept, left, err
}

// list runs units and writes a line for each module.
func (o *options) list(ctx context.Context, units [][]*unit, sum *summary, out io.Writer) error {
	devices := map[string]*emulate.Device{}
	for _, name := range o.targets {
		d, err := emulate.Open(ctx, name)
		if err != nil {
			return err
		}
		defer d.Close()
		devices[name] = d
	}
	x := exporter{dir: o.export}
	var mu sync.Mutex
	done := 0
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, sets := range units {
		group.Go(func() error {
			var all []*row
			for _, u := range sets {
				if err := ctx.Err(); err != nil {
					return err
				}
				rows, err := u.run(ctx, devices, &x, o.cycles)
				if err != nil {
					return fmt.Errorf("%s: %s: %w", u.fn.Name, u.c.Kernel, err)
				}
				all = append(all, rows...)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			fmt.Fprintf(os.Stderr, "\r%d of %d %s \033[K", done, len(units), sets[0].c.Kernel)
			for _, r := range all {
				sum.addCycles(r)
			}
			rows := merge(all, o.targets)
			for _, r := range rows {
				sum.add(r)
			}
			_, err := fmt.Fprintln(out, line(rows))
			return err
		})
	}
	return group.Wait()
}

// merge makes one row of all sets of constants that a target has run, and of targets for which those are the same.
func merge(all []*row, targets []string) (list []*row) {
	for _, name := range targets {
		var sum *row
		for _, r := range all {
			switch {
			case !slices.Contains(r.targets, name):
			case sum == nil:
				sum = &row{kernel: r.kernel, wave: r.wave, targets: []string{name}, sets: r.sets, result: r.result, worst: r.worst, instructions: r.instructions}
			default:
				sum.sets, sum.worst, sum.instructions = sum.sets+r.sets, max(sum.worst, r.worst), sum.instructions+r.instructions
				if severity(r.result) > severity(sum.result) {
					sum.result = r.result
				}
			}
		}
		if sum == nil {
			continue
		}
		same := func(r *row) bool {
			return r.sets == sum.sets && r.worst == sum.worst && r.instructions == sum.instructions && r.result == sum.result
		}
		if i := slices.IndexFunc(list, same); i >= 0 {
			list[i].targets = append(list[i].targets, name)
			continue
		}
		list = append(list, sum)
	}
	return list
}

// severity orders results: the worst is a module's. Those that are none of these are faults.
func severity(result string) int {
	order := []string{bits, near, noCode, inputs, differs}
	if i := slices.Index(order, result); i >= 0 {
		return i
	}
	return len(order)
}

// line is the rows of a kernel: its name and the lanes of a wave, and of each row the targets, the sets of constants
// that ran, the largest error, the instructions that waves have executed, and the result.
func line(rows []*row) string {
	list := []string{rows[0].kernel, strconv.Itoa(rows[0].wave)}
	for _, r := range rows {
		list = append(list, fmt.Sprintf("%s %d %.0g %d %s", strings.Join(r.targets, ","), r.sets, r.worst, r.instructions, r.result))
	}
	return strings.Join(list, "\t")
}

// read calls f with the lines of a list, and what each says.
func read(r io.Reader, f func(text, module string, rows []*row)) error {
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		words := strings.Split(lines.Text(), "\t")
		if len(words) < 3 {
			return fmt.Errorf("line %d is not of this list", n)
		}
		var rows []*row
		for _, w := range words[2:] {
			var targets string
			r := &row{kernel: words[0]}
			if _, err := fmt.Sscanf(w, "%s %d %g %d", &targets, &r.sets, &r.worst, &r.instructions); err != nil {
				return fmt.Errorf("line %d is not of this list: %w", n, err)
			}
			r.targets, r.result = strings.Split(targets, ","), strings.SplitN(w, " ", 5)[4]
			rows = append(rows, r)
		}
		f(lines.Text(), words[1]+" "+words[0], rows)
	}
	return lines.Err()
}

// cycles are those that the cost model has for waves, relative to those of what was executed, by family and wave.
type cycles struct {
	n                 int
	logs, least, most float64
}

// mean is geometric.
func (c *cycles) mean() float64 { return math.Exp(c.logs / float64(c.n)) }

// writeCycles prints them as a table.
func (s *summary) writeCycles(w io.Writer) error {
	t := &table.Table{Title: "cycles of a wave by the cost model, relative to what was executed", Columns: []string{"family", "lanes", "kernels", "mean", "least", "most"}}
	for _, name := range slices.Sorted(maps.Keys(s.cycles)) {
		family, wave, _ := strings.Cut(name, " ")
		c := s.cycles[name]
		t.Add(family, wave, c.n, c.mean(), c.least, c.most)
	}
	return table.WriteText(w, t)
}

// add adds a row that has run.
func (c *cycles) add(ratio float64) {
	c.least, c.most = min(c.least, ratio), max(c.most, ratio)
	c.n, c.logs = c.n+1, c.logs+math.Log(ratio)
}

// summary counts kernels of targets by what came of them.
type summary struct {
	all, none, unfit, bits, near, bad int
	sets                              int                // of constants, of all
	worst                             float64            // error
	cycles                            map[string]*cycles // by family and wave
}

func (s *summary) add(r *row) {
	n := len(r.targets)
	s.sets += n * r.sets
	s.worst = max(s.worst, r.worst)
	s.all += n
	switch r.result {
	case noCode:
		s.none += n
	case inputs:
		s.unfit += n
	case bits:
		s.bits += n
	case near:
		s.near += n
	default:
		s.bad += n
	}
}

// addCycles adds those of a row that has run.
func (s *summary) addCycles(r *row) {
	if r.busy == 0 || r.model == 0 {
		return
	}
	family, _, _ := strings.Cut(r.kernel, " ")
	key := fmt.Sprint(family, " ", r.wave)
	if s.cycles == nil {
		s.cycles = map[string]*cycles{}
	}
	if s.cycles[key] == nil {
		s.cycles[key] = &cycles{least: math.Inf(1)}
	}
	s.cycles[key].add(r.model / r.busy)
}

// err says what came of all, and fails for a kernel that differs or is at fault, and if too few ran.
func (s *summary) err(w io.Writer) error {
	fmt.Fprintf(w, "%d kernels of targets with %d sets of constants: %d ran (%d to the bit, the largest error is %.0g), the driver makes no code of %d, no inputs fit %d, %d differ or are at fault\n",
		s.all, s.sets, s.bits+s.near, s.bits, s.worst, s.none, s.unfit, s.bad)
	switch {
	case s.bad > 0:
		return fmt.Errorf("%d kernels differ or are at fault", s.bad)
	case 100*(s.bits+s.near) < 99*(s.all-s.none):
		return fmt.Errorf("only %d of %d kernels that have code ran", s.bits+s.near, s.all-s.none)
	}
	return nil
}

// models are the shapes to compile.
func (o *options) models() (list []synth.Shape, err error) {
	list = slices.Clone(synth.Published)
	if len(o.shapes) > 0 {
		list = nil
		for _, name := range o.shapes {
			s, err := synth.Parse(name)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// units are the kernels of all plans, and of each its sets of constants.
func (o *options) units(ctx context.Context, shapes []synth.Shape) (list [][]*unit, err error) {
	dir, err := os.MkdirTemp("", "amdkernels")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	had, at := map[string]*unit{}, map[string]int{}
	for _, s := range shapes {
		s.Layers = min(s.Layers, o.layers)
		m, err := synth.New(s)
		if err != nil {
			return nil, err
		}
		path := dir + "/" + s.Name + ".gguf"
		if err := m.WriteHeader(path); err != nil {
			return nil, err
		}
		for _, name := range o.targets {
			err := o.calls(ctx, path, name, func(u *unit) {
				module := u.module()
				key := module + fmt.Sprint(u.c.Consts)
				i, has := at[module]
				if !has {
					i, at[module], list = len(list), len(list), append(list, nil)
				}
				if had[key] == nil {
					had[key], list[i] = u, append(list[i], u)
				}
				if first := had[key]; !slices.Contains(first.targets, name) {
					first.targets = append(first.targets, name)
				}
			})
			if err != nil {
				return nil, fmt.Errorf("%s: %s: %w", s.Name, name, err)
			}
		}
	}
	return list, nil
}

// calls calls f with every call of the entries of a model's plan for a target.
func (o *options) calls(ctx context.Context, path, name string, f func(*unit)) error {
	on, err := target.Lookup(name)
	if err != nil {
		return err
	}
	tuned, err := target.Tuned(on)
	if err != nil {
		return err
	}
	model, err := gguf.OpenHeader(path)
	if err != nil {
		return err
	}
	defer model.Close()
	program, err := codegen.Import(model, frontend.Options{KV: ir.F16, Ctx: maxCtx})
	if err != nil {
		return err
	}
	return codegen.Calls(ctx, codegen.Source{Model: model, Program: program}, codegen.Options{Target: on, Choice: codegen.Choice{Tuned: tuning.NewTable(tuned)}},
		func(p *ir.Program, fn *ir.Func, _ *ir.Group, c *kernels.Candidate) error {
			if o.wants(fn.Name) {
				f(&unit{on: on, p: p, fn: fn, c: c})
			}
			return nil
		})
}

// maxCtx is the positions of caches: those that are there are the first ones.
const maxCtx = 4096

func (o *options) wants(entry string) bool {
	return len(o.entries) == 0 || slices.ContainsFunc(o.entries, func(e string) bool { return strings.EqualFold(e, entry) })
}
