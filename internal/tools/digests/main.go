// Command digests compares plans with testdata/digests.txt, a list of the SHA-256 of all that
// the compiler decides: requirements, modules, pipelines, memory, weights, entries, program.
// They are compiled for all targets, from the models in testdata and from headers of models
// in published shapes, of at most 8 layers, since further ones repeat them. Vocabulary and
// template, the model's path, the compiler's version and how the file packs its sections
// do not count, nor does what this computer's drivers say. A change of the compiler that
// means to change no plan leaves the list as it is.
//
//	go run ./internal/tools/digests            compare; exit code 1 and the differences, if there are any
//	go run ./internal/tools/digests --update   write the list
//	go run ./internal/tools/digests --only sm_90,gfx1201 --model qwen3-8b
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// list is the committed list, relative to the module's root.
const list = "testdata/digests.txt"

func main() {
	update := pflag.Bool("update", false, "write the list instead of comparing with it")
	only := pflag.StringSlice("only", nil, "targets, instead of all")
	models := pflag.StringSlice("model", nil, "models, instead of all")
	pflag.Parse()
	if pflag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "digests: takes no arguments")
		os.Exit(2)
	}
	if err := run(".", *update, *only, *models); err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

func run(root string, update bool, only, models []string) error {
	if update && len(only)+len(models) > 0 {
		return errors.New("the list is written for all models and targets")
	}
	dir, err := os.MkdirTemp("", "digests")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	have, err := compute(root, dir, only, models)
	if err != nil {
		return err
	}
	path := root + "/" + list
	if update {
		return os.WriteFile(path, []byte(strings.Join(have, "\n")+"\n"), 0o666)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return compare(strings.Split(strings.TrimSuffix(string(data), "\n"), "\n"), have, len(only)+len(models) == 0)
}

// compute returns the lines of the list, of some or all models and targets.
func compute(root, dir string, only, models []string) ([]string, error) {
	var wanted []planned
	for _, m := range all(root, dir) {
		if len(models) > 0 && !slices.Contains(models, m.name) {
			continue
		}
		for _, t := range targets() {
			if len(only) == 0 || slices.Contains(only, t.Name) {
				wanted = append(wanted, planned{m, t})
			}
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("no such model or target")
	}
	lines := make([]string, len(wanted))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range wanted {
		group.Go(func() error {
			sum, err := p.digest()
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.model.name, p.target.Name, err)
			}
			lines[i] = fmt.Sprintf("%x  %s %s", sum, p.model.name, p.target.Name)
			return nil
		})
	}
	return lines, group.Wait()
}

// targets are all targets but processors, whose machine code LLVM makes. Through CUDA one architecture stands for all. Beside targets
// of Vulkan with cooperative matrices are those without; all cards that CUDA drives have them.
func targets() []*target.Target {
	var list []*target.Target
	for _, t := range target.All() {
		if t.Backend == plans.CPU || t.Backend == plans.CUDA && t.Name != "sm_90"+target.WithCUDA {
			continue
		}
		list = append(list, t)
		if t.Backend == plans.Vulkan && t.Matrix != (target.MatrixShape{}) {
			list = append(list, t.WithoutMatrix())
		}
	}
	return list
}

// compare returns an error that lists the plans that differ; whole says that have should
// be all of want.
func compare(want, have []string, whole bool) error {
	digests := map[string]string{}
	for _, line := range want {
		sum, plan, _ := strings.Cut(line, "  ")
		digests[plan] = sum
	}
	var differ []string
	for _, line := range have {
		sum, plan, _ := strings.Cut(line, "  ")
		switch listed, ok := digests[plan]; {
		case !ok:
			differ = append(differ, plan+" is not listed")
		case listed != sum:
			differ = append(differ, plan+" differs")
		}
		delete(digests, plan)
	}
	if whole {
		for plan := range digests {
			differ = append(differ, plan+" is listed only")
		}
	}
	if len(differ) > 0 {
		return fmt.Errorf("%d of %d plans are not those of %s:\n%s", len(differ), len(have), list, strings.Join(differ, "\n"))
	}
	return nil
}
