package codegen

import (
	"context"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
)

// prepare finds the candidates that the calls of all groups were made of, or name, and builds their
// kernels, on all processors. What is emitted does not depend on the order.
func (e *emitter) prepare(ctx context.Context) error {
	type call struct {
		f    *ir.Func
		g    *ir.Group
		uses map[*ir.Value][]*ir.Op
	}
	var calls []call
	for _, f := range e.p.Funcs {
		uses := f.Uses()
		for _, g := range f.Groups {
			calls = append(calls, call{f, g, uses})
		}
	}
	found := make([]made, len(calls))
	err := parallel(len(calls), func(i int) error {
		call := calls[i]
		c, err := e.known.candidate(e.p, call.f, call.g, call.uses, e.t)
		found[i] = made{c, call.g.Call}
		return err
	})
	if err != nil {
		return err
	}
	var different []made
	seen := map[string]bool{}
	e.chosen = map[*ir.Group]*kernels.Candidate{}
	for i, m := range found {
		e.chosen[calls[i].g] = m.Candidate
		if key := e.backend.moduleKey(m); !seen[key] {
			seen[key] = true
			if e.wants == nil || e.wants(m.Kernel) {
				different = append(different, m)
			}
		}
	}
	modules := make([]*built, len(different))
	progress, ready := e.progress.of("building kernels"), atomic.Int64{}
	err = parallel(len(different), func(i int) (err error) {
		modules[i], err = e.backend.build(ctx, different[i], e.t)
		progress(int(ready.Add(1)), len(different))
		return err
	})
	if err != nil {
		return err
	}
	for i, m := range different {
		e.built[e.backend.moduleKey(m)] = modules[i]
	}
	return nil
}

// parallel runs do for 0 to n-1 on all processors and returns the error of the least i that has one.
func parallel(n int, do func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	errs := make([]error, n)
	for i := range n {
		group.Go(func() error {
			errs[i] = do(i)
			return errs[i]
		})
	}
	if group.Wait() == nil {
		return nil
	}
	return errs[slices.IndexFunc(errs, func(err error) bool { return err != nil })]
}
