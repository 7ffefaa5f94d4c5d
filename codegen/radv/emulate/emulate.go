// Package emulate runs kernels as AMD's GPUs would, without one: Mesa's compiler makes their machine code (package
// radv), and internal/rdna executes it. It is also a driver of the runtime, so that whole plans run.
package emulate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/internal/rdna"
)

// ErrNoCode says that the driver makes no code of the kernel for the device, such as of matrices for RDNA4.
var ErrNoCode = errors.New("the driver makes no code of it for this device")

// chip is a GPU that is emulated.
type chip struct {
	name   string
	family string // RADV's name
	gen    rdna.Gen
}

var chips = []chip{
	{"gfx1201", "GFX1201", rdna.GFX12}, {"gfx1200", "GFX1200", rdna.GFX12}, {"gfx1100", "NAVI31", rdna.GFX11}, {"gfx1151", "GFX1151", rdna.GFX11},
}

// Device is an AMD device that is emulated. Its methods may be called from several goroutines.
type Device struct {
	chip
	compiler *radv.Compiler

	mu   sync.Mutex
	made map[string]*compiled
}

type compiled struct {
	once    sync.Once
	kernel  *rdna.Kernel
	program *rdna.Program
	err     error
}

// Open starts Mesa's compiler for a GPU, such as gfx1201.
func Open(ctx context.Context, name string) (*Device, error) {
	var known []string
	for _, c := range chips {
		if c.name != name {
			known = append(known, c.name)
			continue
		}
		o, err := radv.Open(ctx, c.family, "", nil)
		if err != nil {
			return nil, err
		}
		return &Device{chip: c, compiler: o, made: map[string]*compiled{}}, nil
	}
	return nil, fmt.Errorf("no AMD device %q is emulated, but %s", name, strings.Join(known, ", "))
}

// Close ends the compiler.
func (d *Device) Close() { d.compiler.Close() }

// Gen is the generation of the device's instructions.
func (d *Device) Gen() rdna.Gen { return d.gen }

// Code returns the machine code of a kernel, decoded.
func (d *Device) Code(ctx context.Context, k *radv.Kernel) (*rdna.Kernel, *rdna.Program, error) {
	id := radv.Line(k, &radv.Result{})
	d.mu.Lock()
	c := d.made[id]
	if c == nil {
		c = &compiled{}
		d.made[id] = c
	}
	d.mu.Unlock()
	c.once.Do(func() {
		list, err := d.compiler.Machines(ctx, []radv.Kernel{*k})
		switch {
		case err != nil:
			c.err = err
		case list[0] == nil:
			c.err = ErrNoCode
		default:
			m := rdna.Kernel(*list[0])
			c.kernel = &m
			if c.program, c.err = rdna.Decode(d.gen, m.Wave, m.Code); c.err != nil {
				c.err = fmt.Errorf("%s: %w", k.Name, c.err)
			}
		}
	})
	return c.kernel, c.program, c.err
}

// Figures are what the compiler says of a kernel.
func (d *Device) Figures(ctx context.Context, k *radv.Kernel) (radv.Figures, error) {
	list, err := d.compiler.Compile(ctx, []radv.Kernel{*k})
	if err != nil {
		return radv.Figures{}, err
	}
	return list[0].Figures, nil
}

// Run launches a kernel. The launch has all but what comes from the kernel's code; a kernel and a program that it has
// stay.
func (d *Device) Run(ctx context.Context, k *radv.Kernel, l rdna.Launch) (rdna.Counts, error) {
	l.Gen = d.gen
	if l.Kernel == nil {
		var err error
		if l.Kernel, l.Program, err = d.Code(ctx, k); err != nil {
			return rdna.Counts{}, err
		}
	}
	n, err := rdna.Run(&l)
	if err != nil {
		err = fmt.Errorf("%s: %w", k.Name, err)
	}
	return n, err
}
