// Command digests compares plans with testdata/digests.txt, which has a line with a SHA-256 for each entry of a plan,
// of all that the compiler decides for it (dispatches, pipelines, modules, its function), and one for the rest of the
// plan: requirements, memory, weights. They are compiled for all targets, from the models in testdata and from headers
// of models in published shapes, of at most 8 layers, since further ones repeat them. Vocabulary and template, the
// model's path, the compiler's version and how the file packs its sections do not count, nor does what this computer's
// drivers say. Of kernels for processors their text for LLVM counts, which machine code follows from. A change of the
// compiler that means to change no plan leaves the list as it is.
//
//	go run ./internal/tools/digests            compare; exit code 1 and the differences, if there are any
//	go run ./internal/tools/digests --update   write the list; of some models or targets alone their lines
//	go run ./internal/tools/digests --only sm_90,gfx1201 --model qwen3-8b
//	go run ./internal/tools/digests --code main~3   compare code with that of a commit, see code.go
package main

import (
	"cmp"
	"context"
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
	commit := pflag.String("code", "", "compare code, constants, grids and offsets with those of this commit, instead of digests with the list")
	printCode := pflag.Bool("print-code", false, "print what --code compares")
	pflag.Parse()
	if pflag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "digests: takes no arguments")
		os.Exit(2)
	}
	var err error
	switch some := (selection{*only, *models}); {
	case *printCode:
		err = listCode(os.Stdout, ".", some)
	case *commit != "":
		err = compareCode(context.Background(), ".", *commit, some)
	default:
		err = run(".", *update, some)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "digests:", err)
		os.Exit(1)
	}
}

// selection are targets and models; none are all.
type selection struct{ targets, models []string }

func (s selection) all() bool { return len(s.targets)+len(s.models) == 0 }

func run(root string, update bool, some selection) error {
	have, err := compute(root, some, digests)
	if err != nil {
		return err
	}
	path := root + "/" + list
	if update && some.all() {
		return os.WriteFile(path, []byte(strings.Join(have, "\n")+"\n"), 0o666)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	listed := strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
	if update {
		return os.WriteFile(path, []byte(strings.Join(replaced(listed, have), "\n")+"\n"), 0o666)
	}
	return compare(listed, have, some.all(), list)
}

// compute returns the lines that of makes of each plan, of some models and targets.
func compute(root string, some selection, of func(*plans.Plan) ([]string, error)) ([]string, error) {
	dir, err := os.MkdirTemp("", "digests")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var wanted []planned
	for _, m := range all(root, dir) {
		if len(some.models) > 0 && !slices.Contains(some.models, m.name) {
			continue
		}
		for _, t := range targets() {
			if len(some.targets) == 0 || slices.Contains(some.targets, t.Name) {
				wanted = append(wanted, planned{m, t})
			}
		}
	}
	if len(wanted) == 0 {
		return nil, errors.New("no such model or target")
	}
	lines := make([][]string, len(wanted))
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, p := range wanted {
		group.Go(func() error {
			plan, err := p.plan()
			if err == nil {
				lines[i], err = of(plan)
			}
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.model.name, p.target.Name, err)
			}
			for j, line := range lines[i] {
				sum, part, _ := strings.Cut(line, "  ")
				lines[i][j] = fmt.Sprintf("%s  %s %s %s", sum, p.model.name, p.target.Name, part)
			}
			return nil
		})
	}
	err = group.Wait()
	return slices.Concat(lines...), err
}

// replaced returns the lines of a list with those of have in place of the lines for the same parts. Parts that are not
// listed are left out: only the whole list says where they belong.
func replaced(listed, have []string) []string {
	now := map[string]string{}
	for _, line := range have {
		_, part, _ := strings.Cut(line, "  ")
		now[part] = line
	}
	lines := slices.Clone(listed)
	for i, line := range lines {
		_, part, _ := strings.Cut(line, "  ")
		lines[i] = cmp.Or(now[part], line)
	}
	return lines
}

// targets are all targets, but through CUDA two architectures for all: the newest that runs kernels of its own, and one
// without them. Beside targets of Vulkan with cooperative matrices are those without; all cards that CUDA drives have
// them.
func targets() []*target.Target {
	var list []*target.Target
	for _, t := range target.All() {
		if t.CUDA > 0 && t.Name != "sm_90"+target.WithCUDA && t.Name != "sm_86"+target.WithCUDA {
			continue
		}
		list = append(list, t)
		if t.CUDA == 0 && t.HasMatrices() {
			list = append(list, t.WithoutMatrix())
		}
	}
	return list
}

// compare returns an error that lists the parts of plans that differ from those of a list; whole says that have should
// be all of want. A line is sums and, behind two blanks, model, target and part.
func compare(want, have []string, whole bool, listed string) error {
	sums := map[string]string{}
	for _, line := range want {
		sum, part, _ := strings.Cut(line, "  ")
		sums[part] = sum
	}
	var differ []string
	for _, line := range have {
		sum, part, _ := strings.Cut(line, "  ")
		switch before, ok := sums[part]; {
		case !ok:
			differ = append(differ, part+" is not listed")
		case before != sum:
			differ = append(differ, part+" differs"+columns(before, sum))
		}
		delete(sums, part)
	}
	if whole {
		for part := range sums {
			differ = append(differ, part+" is listed only")
		}
	}
	if len(differ) > 0 {
		slices.Sort(differ)
		return fmt.Errorf("%d of %d parts of plans are not those of %s:\n%s", len(differ), len(have), listed, strings.Join(differ, "\n"))
	}
	return nil
}
