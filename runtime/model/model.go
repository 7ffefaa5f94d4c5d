// Package model opens a plan, or a model file, for which it has zincc compile a plan once.
package model

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/internal/compiler"
	"github.com/zincc-dev/zincc/runtime/planstore"
	"github.com/zincc-dev/zincc/runtime/text"
)

// Options say how to open a path.
type Options struct {
	Device string // auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host; "": auto
	// Backend is cuda, vulkan, cpu or host to use only that one; "": the fastest.
	Backend string
	Model   string // of a plan: its model file, where that is not where it was
	// Compile are flags of `zincc compile` for a model file, such as --ctx=8k; without --ctx the context
	// is the largest that fits.
	Compile []string
	Several bool // a model file gets as many slots as fit, unless Compile says how many
	// KeepLayout is a folder in which a processor's weights are kept in their layout in memory; "": they are not kept.
	KeepLayout string
	// Memory says how many bytes a plan may take whose caches lie in pages: its pool becomes as large as fits. 0, or
	// nil: the pool that the plan states.
	Memory func(*plans.Plan) int64
	// Said gets lines: messages of zincc while it compiles, that it compiled, and about kept weights; nil: nobody
	// listens.
	Said func(line string)
	// Watch watches what takes long: compiling, checking a plan, loading weights.
	Watch progress.Watcher
}

// Opened is a plan on a device.
type Opened struct {
	Path   string // of the plan
	Plan   *plans.Plan
	Source *plans.Source
	Exec   runtime.Executor
	Took   time.Duration

	tokenizer func() (*text.Tokenizer, error)
}

// Open opens the plan at path, or the plan of the model file at path, on a device.
func Open(ctx context.Context, path string, o Options) (*Opened, error) {
	start := time.Now()
	var err error
	if o.Device, err = device.Name(o.Device, o.Backend); err != nil {
		return nil, &OptionError{err.Error()}
	}
	plan, path, file, err := Plan(ctx, path, o)
	if err != nil {
		return nil, err
	}
	if err := o.fillPool(plan); err != nil {
		plan.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	src, err := plans.OpenSource(plan, path, file)
	if err != nil {
		plan.Close()
		return nil, err
	}
	// That of a large vocabulary takes as long as some hundred tokens: it is made while weights are loaded.
	tokenizer := sync.OnceValues(func() (*text.Tokenizer, error) { return text.New(plan.Vocab) })
	go tokenizer()
	loading, read := o.Watch.Begin("loading"), int64(0)
	arrived := func(bytes int64) {
		loading.At(progress.Report{Done: atomic.AddInt64(&read, bytes), Total: plan.Require.Memory})
	}
	exec, err := device.Open(ctx, o.Device, plan, src, device.Options{Progress: arrived, Keep: o.KeepLayout, Said: o.Said})
	loading.Done()
	if err != nil {
		src.Close()
		plan.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &Opened{path, plan, src, exec, time.Since(start), tokenizer}, nil
}

// fillPool gives the pool of a plan the pages that fit.
func (o *Options) fillPool(plan *plans.Plan) error {
	if plan.Paged() == nil || o.Memory == nil {
		return nil
	}
	pages := plan.PagesIn(o.Memory(plan))
	if o.Said != nil {
		o.Said(fmt.Sprintf("a pool of %d pages of %d positions", pages, plan.Paged().Page))
	}
	return plan.SetPages(pages)
}

// Plan returns the plan at path, or that of the model file at path, once it is known that it may run here. It also
// returns the path of the plan and that of its model file, if that is already known.
func Plan(ctx context.Context, path string, o Options) (plan *plans.Plan, at, file string, err error) {
	said := o.Said
	if said == nil {
		said = func(string) {}
	}
	if !gguf.Is(path) {
		if len(o.Compile) > 0 {
			return nil, "", "", &OptionError{fmt.Sprintf("%s: only for model files: a plan has its own", strings.Join(o.Compile, " "))}
		}
		plan, err := trusted(ctx, path, said, o.Watch)
		return plan, path, o.Model, err
	}
	if o.Model != "" {
		return nil, "", "", &OptionError{fmt.Sprintf("--model is for plans: %s is a model", path)}
	}
	store, err := planstore.Open()
	if err != nil {
		store = &planstore.Store{None: err}
	}
	flags := slices.Clone(o.Compile)
	if !names(flags, "--ctx") {
		flags = append(flags, "--ctx=max")
	}
	if o.Several && !names(flags, "--slots") {
		flags = append(flags, "--slots=max")
	}
	plan, at, err = store.Plan(ctx, planstore.Wish{Model: path, Device: o.Device, Flags: flags, Watch: o.Watch}, said)
	var refused *compiler.Error
	if errors.As(err, &refused) && refused.Code == 2 {
		err = &OptionError{refused.Said}
	}
	return plan, at, path, err
}

// names reports whether flags set the flag of that name.
func names(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+"=") })
}

// OptionError says what is wrong with an option.
type OptionError struct{ Problem string }

func (e *OptionError) Error() string { return e.Problem }

// Tokenizer returns the tokenizer of the plan.
func (o *Opened) Tokenizer() (*text.Tokenizer, error) {
	tok, err := o.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Path, err)
	}
	return tok, nil
}

// Close frees the device and the files.
func (o *Opened) Close() {
	o.Exec.Close()
	o.Source.Close()
	o.Plan.Close()
}
