package codegen

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
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

// moduleKey tells modules of one backend apart: by kernel and, where the code has the values of
// constants, by these and the subgroup size.
func (b *backend) moduleKey(c *kernels.Candidate) string {
	if b.open {
		return c.Kernel
	}
	return pipelineKey(c) + constants(c)
}

// pipelineKey tells pipelines apart.
func pipelineKey(c *kernels.Candidate) string { return fmt.Sprint(c.Kernel, c.Consts, c.Wave) }

// built is a module and the kernel that it is of.
type built struct {
	fn     *kernel.Func
	module plans.Module
}

// build builds and lowers the kernel of a candidate.
func (b *backend) build(ctx context.Context, c *kernels.Candidate, t *target.Target) (*built, error) {
	fn, err := c.Build()
	if err != nil {
		return nil, err
	}
	k, err := specialize(fn, c, t)
	if err != nil {
		return nil, err
	}
	m, err := b.module(ctx, k, c, t)
	return &built{fn, m}, err
}
