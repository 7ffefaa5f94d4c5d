// Command headers says what `zincc compile` takes in time and memory, of models of published shapes and of one shape in
// every quantization, for each target. The files have no weights. Each compilation is a process of its own with
// nothing in its cache.
//
//	go run ./internal/tools/headers                                         all rows; some minutes
//	go run ./internal/tools/headers --target gfx1201 --shape gemma3-12b     some
//	go run ./internal/tools/headers --types off --target gfx1201,gfx1100    shapes, in their own types
//
// It ends with exit code 1 if a compilation fails or takes more than --seconds or --mb.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
)

// shapes are those whose compilation is watched: of the largest number of different call sites.
var shapes = []string{
	"gemma4-26b-a4b", "gemma4-12b", "gpt-oss-20b", "glm47-flash", "nemotron3-nano", "lfm2-8b-a1b", "qwen35-27b", "qwen35-35b-a3b", "gemma3-12b",
}

// typed is the shape that is compiled in every quantization, for some targets.
const typed = "qwen3-8b"

var typedTargets = []string{"gfx1201", "sm_90", "sm_90-cuda"}

// options are the flags.
type options struct {
	zincc                  string
	targets, shapes, types []string
	seconds, mb            float64
}

// row is a compilation.
type row struct {
	shape  synth.Shape
	target string
}

func main() {
	o := options{}
	pflag.StringVar(&o.zincc, "zincc", "bin/zincc", "the program that compiles")
	pflag.StringSliceVar(&o.targets, "target", nil, "targets, instead of all but host and those of arm64")
	pflag.StringSliceVar(&o.shapes, "shape", nil, "shapes, instead of "+strings.Join(shapes, ", "))
	pflag.StringSliceVar(&o.types, "types", synth.Quants(), "quantizations of "+typed+", for "+strings.Join(typedTargets, ", ")+"; off: none")
	pflag.Float64Var(&o.seconds, "seconds", 10, "how long a compilation may take")
	pflag.Float64Var(&o.mb, "mb", 500, "how much memory it may take, in millions of bytes")
	pflag.Parse()
	if pflag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "headers: takes no arguments")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := o.run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "headers:", err)
		os.Exit(1)
	}
}

// rows lists what to compile.
func (o *options) rows() ([]row, error) {
	all := o.targets
	if len(all) == 0 {
		for _, t := range target.All() {
			if !t.IsHost() && !strings.Contains(t.Name, "arm64") { // needs LLVM
				all = append(all, t.Name)
			}
		}
	}
	names := o.shapes
	if len(names) == 0 {
		names = shapes
	}
	var list []row
	for _, name := range names {
		s, err := synth.Parse(name)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			list = append(list, row{s, t})
		}
	}
	if len(o.shapes) > 0 && !pflag.CommandLine.Changed("types") || slices.Equal(o.types, []string{"off"}) {
		return list, nil
	}
	for _, quant := range o.types {
		s, err := synth.Parse(typed + ":" + quant)
		if err != nil {
			return nil, err
		}
		for _, t := range typedTargets {
			if slices.Contains(all, t) {
				list = append(list, row{s, t})
			}
		}
	}
	return list, nil
}

func (o *options) run(ctx context.Context) error {
	rows, err := o.rows()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "headers")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	over := 0
	fmt.Printf("%-16s %-10s %-14s %8s %7s %6s %6s\n", "shape", "type", "target", "seconds", "user s", "MB", "asked")
	for _, r := range rows {
		u, err := o.compile(ctx, dir, r)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		note := ""
		switch {
		case errors.Is(err, errLarge):
			fmt.Printf("%-16s %-10s %-14s %s\n", r.shape.Name, r.shape.Quant, r.target, err)
			continue
		case err != nil:
			note = "  " + err.Error()
		case u.seconds > o.seconds || u.mb > o.mb:
			note = "  too much"
		}
		if note != "" {
			over++
		}
		fmt.Printf("%-16s %-10s %-14s %8.2f %7.2f %6.0f %6d%s\n", r.shape.Name, r.shape.Quant, r.target, u.seconds, u.user, u.mb, u.asked, note)
	}
	if over > 0 {
		return fmt.Errorf("%d of %d compilations failed, or took more than %g s or %g MB", over, len(rows), o.seconds, o.mb)
	}
	return nil
}

// usage is what a compilation took, with the processes that it started.
type usage struct {
	seconds, user float64
	mb            float64 // of the largest process, in 1e6 bytes
	asked         int     // questions to AMD's compiler
}

var errLarge = errors.New("larger than the target's memory")

func (o *options) compile(ctx context.Context, dir string, r row) (u usage, err error) {
	path := filepath.Join(dir, r.shape.Name+"-"+r.shape.Quant+".gguf")
	m, err := synth.New(r.shape)
	if err != nil {
		return u, err
	}
	if t, err := target.Lookup(r.target); err != nil {
		return u, err
	} else if t.Memory > 0 && m.Bytes() > int64(t.Memory) {
		return u, errLarge
	}
	if _, err := os.Stat(path); err != nil {
		if err := m.WriteHollow(path); err != nil {
			return u, err
		}
	}
	cache := filepath.Join(dir, "cache")
	defer os.RemoveAll(cache)
	c := exec.CommandContext(ctx, o.zincc, "compile", path, "--target", r.target, "--ctx", "2048", "--force", "-o", filepath.Join(dir, "plan.bin"))
	c.Env = append(os.Environ(), "XDG_CACHE_HOME="+cache, "XDG_DATA_HOME="+cache)
	start := time.Now()
	said, err := c.CombinedOutput()
	u.seconds = time.Since(start).Seconds()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(string(said)), "\n")
		return u, errors.New(lines[len(lines)-1])
	}
	u.user = c.ProcessState.UserTime().Seconds()
	u.mb = float64(c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024 / 1e6
	answers, err := filepath.Glob(filepath.Join(cache, "zincc", "radv", "*", "*", "*.json"))
	u.asked = len(answers)
	return u, err
}
