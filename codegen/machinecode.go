package codegen

import (
	"context"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/objects"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans"
)

// machineOf returns the processor that a target's code is for.
func machineOf(t *target.Target) (*llvm.Machine, error) { return llvm.MachineOf(t.Machine) }

func objectFormat(t *target.Target) string {
	m, err := machineOf(t)
	if err != nil {
		return ""
	}
	return plans.ObjectFormat(m.Arch)
}

// lowerObject returns an object file of machine code.
func lowerObject(ctx context.Context, k *specialized, c *kernels.Candidate, t *target.Target) ([]byte, string, error) {
	m, err := machineOf(t)
	if err != nil {
		return nil, "", err
	}
	code, err := objects.Of(ctx, objects.Wanted{Kernel: c.Kernel, Machine: m, Text: func(m *llvm.Machine) (string, error) {
		return llvm.Lower(k.fn, llvm.Fixed(k.fn, k.spec), m)
	}})
	return code, llvm.Symbol, err
}

func requireCPU(p *plans.Plan, _ []*kernel.Func, t *target.Target) {
	if m, err := machineOf(t); err == nil {
		p.Require.CPU = &plans.CPURequirements{Arch: m.Arch, Features: m.Features}
	}
}
