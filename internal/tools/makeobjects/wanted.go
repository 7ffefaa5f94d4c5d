package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// program is a model whose kernels are held, with a cache of a type.
type program struct {
	name  string
	exact bool // for the target that is exact in prompts
	load  func() (*ir.Program, error)
}

// programs are models that between them need every kernel: kernels for processors leave sizes open, and a dispatch of
// theirs has weights of one type. So these are enough: each weight type, in rows of whole and of other super-blocks,
// dense and of experts; every architecture, by its tiny model; the models of testdata; and what is fixed in kernels of
// attention, the width of heads and how many share what a workgroup reads, in published shapes and those that others
// may have; with every type of cache. The headers of shapes are written into dir, each once.
func programs(root, dir string) ([]program, error) {
	w := &listing{dir: dir}
	for _, s := range synth.Small() {
		w.add(s, ir.F16)
		if s.Experts.Count == 0 && s.Quant != "UD-Q4_K_M" { // which wants super-blocks
			s.Name, s.Embd, s.FF = s.Name+"-fine", 960, 960
			w.add(s, ir.F16)
			s.Name, s.Embd, s.FF = s.Name+"-odd", 992, 992
			w.add(s, ir.F16)
		}
	}
	for _, p := range w.list { // whatever the weights' type
		p.exact = true
		w.list = append(w.list, p)
	}
	w.published()
	w.heads()
	if err := w.files(root); err != nil {
		return nil, err
	}
	return w.list, nil
}

// listing is the programs as far as they are listed. Headers of models are written into dir.
type listing struct {
	dir     string
	headers int
	list    []program
}

// header returns what writes the header of a model of that shape when it is first asked for, and its path.
func (w *listing) header(s synth.Shape) func() (string, error) {
	w.headers++
	path := filepath.Join(w.dir, fmt.Sprint(w.headers, ".gguf"))
	return sync.OnceValues(func() (string, error) {
		m, err := synth.New(s)
		if err != nil {
			return "", err
		}
		return path, m.WriteHeader(path)
	})
}

// takes: rows of q4_0 are not those of latent attention, and blocks are whole.
func takes(s *synth.Shape, kv ir.DType) bool {
	return s.HeadDim%kv.Block() == 0 && (kv != ir.Q4_0 || s.Latent.Width == 0)
}

// add lists a model with each of the caches that it takes.
func (w *listing) add(s synth.Shape, caches ...ir.DType) {
	w.with(s, "", frontend.Options{}, caches)
}

func (w *listing) with(s synth.Shape, suffix string, o frontend.Options, caches []ir.DType) {
	written := w.header(s)
	for _, kv := range caches {
		if !takes(&s, kv) {
			continue
		}
		at := o
		at.KV = kv
		w.list = append(w.list, program{fmt.Sprintf("%s %s%s", s.Name, kv, suffix), false, func() (*ir.Program, error) { return load(written, at) }})
	}
}

// published lists models in published shapes: short ones with a small vocabulary, and those of several users with long
// conversations, and the whole vocabulary.
func (w *listing) published() {
	for _, s := range synth.Published {
		whole := s.Vocab
		s.Layers, s.Vocab = min(s.Layers, 8), 4096
		if o := &s.Windows; o.Own > 0 { // layers of both kinds that read others' caches
			o.Own, s.Layers = o.Period, 2*o.Period
		}
		w.add(s, ir.CacheTypes...)
		if s.Windows.Size > 0 { // caches that are no rings
			short := s
			short.Name, short.Ctx = s.Name+"-short", s.Windows.Size
			w.add(short, ir.CacheTypes...)
		}
		s.Vocab = whole
		w.with(s, " of users", frontend.Options{Slots: 8, Ctx: 16384}, ir.CacheTypes)
	}
}

// heads lists models with heads of many widths, and several of them for each KV head.
func (w *listing) heads() {
	for _, arch := range []string{"llama", "qwen2", "qwen3"} {
		for _, dim := range []int{64, 80, 96, 128, 256} {
			for _, group := range []int{1, 2, 3, 4} {
				if group > 1 && group*dim > 256 {
					continue // they do not share
				}
				w.add(synth.Shape{
					Name: fmt.Sprintf("%s-%dx%d", arch, dim, group), Arch: arch, Quant: "Q8_0", Layers: 1, Embd: 512, FF: 512, Vocab: 4096, Ctx: 4096,
					Heads: 4 * group, KVHeads: 4, HeadDim: dim, RopeBase: 1e4,
				}, ir.CacheTypes...)
			}
		}
	}
}

// files lists the programs and models of the tests.
func (w *listing) files(root string) error {
	tiny, err := filepath.Glob(filepath.Join(root, "ir/frontend/testdata/*.zir"))
	if err != nil {
		return err
	}
	for _, path := range tiny {
		w.list = append(w.list, program{strings.TrimSuffix(filepath.Base(path), ".zir"), false, func() (*ir.Program, error) {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			return ir.Parse(string(text))
		}})
	}
	models, err := filepath.Glob(filepath.Join(root, "testdata/models/*.gguf"))
	if err != nil {
		return err
	}
	for _, path := range models {
		for _, kv := range ir.CacheTypes {
			w.list = append(w.list, program{fmt.Sprintf("%s %s", filepath.Base(path), kv), false, func() (*ir.Program, error) { return open(path, frontend.Options{KV: kv}) }})
		}
	}
	return nil
}

// load imports a shape, as what it is written to is read.
func load(written func() (string, error), o frontend.Options) (*ir.Program, error) {
	path, err := written()
	if err != nil {
		return nil, err
	}
	return open(path, o)
}

// open imports a model file.
func open(path string, o frontend.Options) (*ir.Program, error) {
	f, err := gguf.OpenHeader(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return codegen.Import(f, o)
}

// keyed is an object that is wanted, with its key.
type keyed struct {
	objects.Wanted
	key string
}

// choice are the machines of some that a kernel is wanted for.
type choice func(kernel string, machines []*llvm.Machine) []*llvm.Machine

func allOf(_ string, machines []*llvm.Machine) []*llvm.Machine { return machines }

// wanted returns the kernels of one in every so many programs for the targets, each once. Targets that differ in their
// machine alone have the same kernels, which are looked for once.
func wanted(ctx context.Context, root string, targets []*target.Target, every int, on choice) ([]keyed, error) {
	dir, err := os.MkdirTemp("", "makeobjects")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	all, err := programs(root, dir)
	if err != nil {
		return nil, err
	}
	var some []program
	for i := 0; i < len(all); i += every {
		some = append(some, all[i])
	}
	var list []keyed
	for len(targets) > 0 {
		first := targets[0]
		var machines []*llvm.Machine
		targets = slices.DeleteFunc(slices.Clone(targets), func(t *target.Target) bool {
			one := *t
			one.Name, one.Doc, one.Machine = first.Name, first.Doc, first.Machine
			if !reflect.DeepEqual(&one, first) {
				return false
			}
			m, mErr := llvm.MachineOf(t.Machine)
			machines, err = append(machines, m), errors.Join(err, mErr)
			return true
		})
		if err != nil {
			return nil, err
		}
		kernels, err := kernelsOf(ctx, some, first, machines, on)
		if err != nil {
			return nil, err
		}
		list = append(list, kernels...)
	}
	return list, nil
}

// kernelsOf returns the kernels of programs for a target, for each of those of some machines that on chooses.
func kernelsOf(ctx context.Context, all []program, t *target.Target, machines []*llvm.Machine, on choice) ([]keyed, error) {
	var mu sync.Mutex
	var list []keyed
	seen := map[string]bool{}
	first := func(kernel string) bool {
		mu.Lock()
		defer mu.Unlock()
		again := seen[kernel]
		seen[kernel] = true
		return !again
	}
	ctx = objects.Listing(ctx, func(w objects.Wanted) error {
		for _, m := range on(w.Kernel, machines) {
			text, err := w.Text(m)
			if err != nil {
				return err
			}
			one := objects.Wanted{Kernel: w.Kernel, Machine: m, Text: func(*llvm.Machine) (string, error) { return text, nil }}
			mu.Lock()
			list = append(list, keyed{one, objects.Key(m, text)})
			mu.Unlock()
		}
		return nil
	})
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, p := range all {
		group.Go(func() error {
			imported, err := p.load()
			if err == nil {
				to := t
				if p.exact {
					to = t.Exactly()
				}
				err = codegen.Kernels(ctx, imported, to, first)
			}
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, t.Name, err)
			}
			return nil
		})
	}
	err := group.Wait()
	return list, err
}
