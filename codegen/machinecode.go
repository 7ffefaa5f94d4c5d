package codegen

import (
	"context"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
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
func lowerObject(ctx context.Context, k *specialized, m made, t *target.Target) ([]byte, string, error) {
	machine, err := machineOf(t)
	if err != nil {
		return nil, "", err
	}
	code, err := objects.Of(ctx, objects.Wanted{Kernel: m.Kernel, Machine: machine, Text: func(m *llvm.Machine) (string, error) {
		return llvm.Lower(k.fn, llvm.Fixed(k.fn, k.spec), m)
	}})
	return code, llvm.Symbol, err
}

func requireCPU(p *plans.Plan, _ []*kernel.Func, t *target.Target) {
	if m, err := machineOf(t); err == nil {
		p.Require.CPU = &plans.CPURequirements{Arch: m.Arch, Features: m.Features}
	}
}
