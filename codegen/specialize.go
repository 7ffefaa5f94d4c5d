package codegen

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
)

// modules are the kernels that were built so far, by candidate's key.
type modules map[string]*module

// module is a kernel with its constants open.
type module struct {
	fn    *kernel.Func
	words []uint32
}

// get builds the kernel of a candidate on first use.
func (m modules) get(c *kernels.Candidate) (*module, error) {
	if have, ok := m[c.Kernel]; ok {
		return have, nil
	}
	have, err := build(c)
	if err != nil {
		return nil, err
	}
	m[c.Kernel] = have
	return have, nil
}

// build builds the kernel of a candidate.
func build(c *kernels.Candidate) (*module, error) {
	fn, err := c.Build()
	if err != nil {
		return nil, err
	}
	words, err := kernelspirv.Lower(fn)
	if err != nil {
		return nil, err
	}
	return &module{fn, words}, nil
}

// specialized is a kernel with a candidate's constants.
type specialized struct {
	*module
	spec      map[uint32]uint32 // constants by id
	workgroup int               // invocations
	shared    int               // bytes
}

// specialize sets the candidate's constants and holds what follows from them
// against the target's limits.
func (m modules) specialize(c *kernels.Candidate, t *target.Target) (*specialized, error) {
	mod, err := m.get(c)
	if err != nil {
		return nil, err
	}
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	s := &specialized{module: mod}
	if s.spec, err = mod.fn.SpecValues(byName); err != nil {
		return nil, err
	}
	size, err := mod.fn.WorkgroupSize(s.spec)
	if err != nil {
		return nil, err
	}
	shared, err := mod.fn.SharedBytes(s.spec)
	if err != nil {
		return nil, err
	}
	if int(size) > t.Workgroup || shared > uint64(t.Shared) {
		return nil, fmt.Errorf("kernel %q needs a workgroup of %d with %d bytes of shared memory; target %s has %d and %d",
			c.Kernel, size, shared, t.Name, t.Workgroup, t.Shared)
	}
	s.workgroup, s.shared = int(size), int(shared)
	return s, nil
}
