package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime/host"
)

// most is what "max" stands for: as much as fits the memory.
const most = -1

// ctxFlag is --ctx of compile: positions, or max.
type ctxFlag struct{ n int }

func (c *ctxFlag) String() string {
	if c.n == most {
		return "max"
	}
	return strconv.Itoa(c.n)
}

func (c *ctxFlag) Set(s string) error {
	if s == "max" {
		c.n = most
		return nil
	}
	var p cli.Positions
	if err := p.Set(s); err != nil {
		return fmt.Errorf("%w, or max", err)
	}
	c.n = int(p)
	return nil
}

func (c *ctxFlag) Type() string { return "positions" }

// slotsFlag is --slots of compile: a number, or max.
type slotsFlag struct{ n int }

func (s *slotsFlag) String() string { return (&ctxFlag{s.n}).String() }

func (s *slotsFlag) Set(text string) error {
	if text == "max" {
		s.n = most
		return nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > ir.MaxSlots {
		return fmt.Errorf("want 1 to %d, or max", ir.MaxSlots)
	}
	s.n = n
	return nil
}

func (s *slotsFlag) Type() string { return "slots" }

// fill imports the model with what is to be max replaced by what fits the device.
func (c *compileFlags) fill(ctx context.Context, path string, f *gguf.File, t *target.Target, probe *target.Probe, progress codegen.Progress) (*ir.Program, error) {
	if filepath.Ext(path) == ".zir" {
		return nil, cli.Usagef("--ctx max and --slots max are for models; a program has its own context and slots")
	}
	kv, err := kvType(c.kv)
	if err != nil {
		return nil, err
	}
	memory := spare(t, probe)
	if memory == 0 {
		return nil, cli.Usagef("--ctx max and --slots max: target %s has no known memory size", t.Name)
	}
	o, err := codegen.Fill(ctx, f, t, frontend.Options{Ctx: c.ctx.n, Slots: c.slots.n, KV: kv, Page: c.pages.page, Pool: int(c.pages.pool)}, memory, progress)
	if err != nil {
		return nil, err
	}
	return codegen.Import(f, o)
}

// spare is how much of its memory a plan may take of a device, in bytes; 0 where that is not known. Nine
// tenths of a GPU's free memory leave the rest to what else is shown or runs there; where memory is the
// processor's, half of what is available.
func spare(t *target.Target, probe *target.Probe) int64 {
	switch {
	case t.IsHost(), isHere(t), probe != nil && probe.Type == "cpu":
		return host.Available() / 2
	case probe != nil && probe.Type == "discrete":
		return probe.Free() / 10 * 9
	case probe != nil:
		return min(probe.Free(), host.Available()) / 2
	}
	return t.Memory / 10 * 9
}

// isHere reports whether the target is this computer's processor, or a simpler one of its kind.
func isHere(t *target.Target) bool {
	m, err := llvm.MachineOf(t.Machine)
	return err == nil && m.Here()
}
