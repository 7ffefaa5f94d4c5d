package codegen

import (
	"context"
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// specialized is a kernel with a candidate's constants.
type specialized struct {
	fn        *kernel.Func
	spec      map[uint32]uint32 // constants by id
	workgroup int               // invocations
	shared    int               // bytes
}

// specialize sets the candidate's constants and holds what follows from them
// against the target's limits.
func specialize(fn *kernel.Func, c *kernels.Candidate, t *target.Target) (*specialized, error) {
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	s := &specialized{fn: fn}
	var err error
	if s.spec, err = fn.SpecValues(byName); err != nil {
		return nil, err
	}
	size, err := fn.WorkgroupSize(s.spec)
	if err != nil {
		return nil, err
	}
	shared, err := fn.SharedBytes(s.spec)
	if err != nil {
		return nil, err
	}
	if int(size) > t.Workgroup || shared > uint64(max(t.Shared, t.SharedOptIn)) {
		return nil, fmt.Errorf("kernel %q needs a workgroup of %d with %d bytes of shared memory; target %s has %d and %d",
			c.Kernel, size, shared, t.Name, t.Workgroup, max(t.Shared, t.SharedOptIn))
	}
	s.workgroup, s.shared = int(size), int(shared)
	return s, nil
}

// moduleKey tells modules of one backend apart: by kernel and, where the code has the values of constants, by these,
// the subgroup size, form and overlap, and whether weights are evicted first: types of prefetched ones count, too.
func (b *backend) moduleKey(m made) string {
	if b.open {
		return m.Kernel
	}
	key := pipelineKey(m) + overlapKey(m.call)
	if room := m.RoomFor(); room > 0 {
		key += fmt.Sprint(" room ", room)
	}
	if evictsFirst(m) {
		key += " evict first"
	}
	if len(m.Prefetches) > 0 {
		key += fmt.Sprint(" grid ", m.Grid)
	}
	for _, p := range m.Prefetches {
		key += fmt.Sprint(" ", p.Argument, p.Parts, p.Lines, p.First, p.Stride, p.After)
	}
	return key
}

// pipelineKey tells pipelines apart.
func pipelineKey(m made) string { return fmt.Sprint(m.Kernel, m.Consts, m.Wave) }

// made is a call and the candidate that it is made of.
type made struct {
	*kernels.Candidate
	call *ir.Call
}

// built is a module and the kernel that it is of.
type built struct {
	fn     *kernel.Func
	module plans.Module
}

// build builds and lowers the kernel of a call.
func (b *backend) build(ctx context.Context, m made, t *target.Target) (*built, error) {
	fn, err := m.Build()
	if err != nil {
		return nil, err
	}
	for _, o := range m.Arguments()[len(m.Operands):] {
		fn.Args = append(slices.Clip(fn.Args), kernel.Arg{Name: o.Name, Access: o.Access})
	}
	k, err := specialize(fn, m.Candidate, t)
	if err != nil {
		return nil, err
	}
	module, err := b.module(ctx, k, m, t)
	return &built{fn, module}, err
}
