package kerneltest

import (
	"bytes"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
)

// Launcher runs a candidate: it is launch, onDevice or interpretOnly. data has the bytes of the operands that are read,
// in the device's layout; results come back for those that are written, over NaNs where there is no data.
type Launcher func(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte

// Launch runs a candidate on the first device that it shows something, else in the interpreter. Bits may differ between
// them.
func Launch(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	return newLaunch(t, c).on((*device).shows, sizes, data)
}

// OnDevice is launch on any device that has what the candidate needs.
func OnDevice(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	return newLaunch(t, c).on(func(d *device, c kernels.Candidate, f *kernel.Func) bool { d.shows(c, f); return true }, sizes, data)
}

// InterpretOnly is launch in the interpreter, whatever the candidate.
func InterpretOnly(t testing.TB, c kernels.Candidate, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	t.Helper()
	f, spec := build(t, c)
	return (&launchOf{t, c, f, spec, nil}).interpret(sizes, data)
}

// Showing reports whether launch runs a candidate on a device: for tests that otherwise want the interpreter's bits.
func Showing(t testing.TB, c kernels.Candidate) bool {
	t.Helper()
	l := newLaunch(t, c)
	return slices.ContainsFunc(devices, func(d *device) bool { return d.fits(c, l.f) && d.shows(c, l.f) })
}

// launchOf is a candidate that is about to run.
type launchOf struct {
	t      testing.TB
	c      kernels.Candidate
	f      *kernel.Func
	spec   map[uint32]uint32
	module []uint32
}

func newLaunch(t testing.TB, c kernels.Candidate) *launchOf {
	t.Helper()
	f, spec, module := Lowered(t, c)
	return &launchOf{t, c, f, spec, module}
}

// on runs the candidate on the first device that has what it needs and that takes it.
func (l *launchOf) on(takes func(d *device, c kernels.Candidate, f *kernel.Func) bool, sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	l.t.Helper()
	for _, d := range devices {
		if !d.fits(l.c, l.f) || !takes(d, l.c, l.f) {
			continue
		}
		if shared, err := l.f.SharedBytes(l.spec); err != nil || shared > 32<<10 {
			l.t.Fatalf("%s: %d bytes of shared memory, %v", l.c.Kernel, shared, err)
		}
		if racetest.First(l.c.Kernel, l.c.Wave) {
			l.interpret(sizes, data)
		}
		values, args := l.buffers(sizes, data)
		d.run(l, args)
		return values
	}
	return l.interpret(sizes, data)
}

// interpret is launch on this computer's processor, with subgroups of the candidate's size.
func (l *launchOf) interpret(sizes func(v *ir.Value) int, data map[*ir.Value][]byte) map[*ir.Value][]byte {
	l.t.Helper()
	values, args := l.buffers(sizes, data)
	wave := l.c.Wave
	if wave == 0 {
		wave = lanes
	}
	racetest.Run(l.t, l.f, l.spec, wave, l.c.Grid, args)
	return values
}

// buffers returns the operands' bytes, by value and by argument.
func (l *launchOf) buffers(sizes func(v *ir.Value) int, data map[*ir.Value][]byte) (values map[*ir.Value][]byte, args [][]byte) {
	l.t.Helper()
	values = map[*ir.Value][]byte{}
	for i, o := range l.c.Operands {
		if o.Name != l.f.Args[i].Name || o.Access != l.f.Args[i].Access {
			l.t.Fatalf("%s: operand %d is %v, the kernel's argument %v", l.c.Kernel, i, o, l.f.Args[i])
		}
		if values[o.Value] == nil {
			values[o.Value] = bytes.Repeat([]byte{0xff}, sizes(o.Value))
			copy(values[o.Value], data[o.Value])
		}
		args = append(args, values[o.Value])
	}
	return values, args
}
