package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// What came of a kernel. Else the result is the fault.
const (
	noCode  = "no code"   // the driver makes none
	bits    = "bits"      // the interpreter's
	near    = "near"      // within tolerance
	differs = "differs"   // by more
	inputs  = "no inputs" // the interpreter finds the random ones unfit
	most    = 1.0 / 256   // relative to the largest of what a kernel writes
	groups  = 2           // of each dimension of the grid
	large   = 1 << 31     // bytes of an operand that are not allocated
)

// row is a kernel and what came of it.
type row struct {
	kernel string
	wave   int
	result string
	worst  float64
	counts rdna.Counts
}

// emulated says whether there is code that was decoded, and inputs to run it on.
func (r *row) emulated() string {
	if r.result == noCode || r.result == inputs {
		return "no"
	}
	return "yes"
}

// runCall runs some workgroups of a call in the interpreter and in the emulator.
func runCall(ctx context.Context, d *emulate.Device, on *target.Target, p *ir.Program, fn *ir.Func, c *kernels.Candidate) (*row, error) {
	r := &row{kernel: c.Kernel, wave: c.Wave}
	f, err := c.Build()
	if err != nil {
		return nil, err
	}
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	spec, err := f.SpecValues(byName)
	if err != nil {
		return nil, err
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		return nil, err
	}
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		return nil, err
	}
	k := radv.Kernel{Name: c.Kernel, Words: words, Consts: spec, Wave: c.Wave, Full: int(size)%c.Wave == 0}
	if _, _, err := d.Code(ctx, &k); errors.Is(err, emulate.ErrNoCode) {
		r.result = noCode
		return r, nil
	} else if err != nil {
		r.result = err.Error()
		return r, nil
	}
	args, types, err := operands(on, p, fn, c)
	if err != nil {
		return nil, err
	}
	grid := c.Grid
	for i := range grid {
		grid[i] = min(grid[i], groups)
	}
	mine := clone(args)
	if err := f.Run(spec, c.Wave, grid, args); err != nil {
		r.result = inputs
		return r, nil
	}
	launch := rdna.Launch{Grid: grid, Workgroup: int(size), Ahead: f.LoadsAhead()}
	buffers := map[*byte]*rdna.Buffer{}
	for i, a := range mine {
		b := buffers[unsafe.SliceData(a)]
		if b == nil {
			b = &rdna.Buffer{Name: f.Args[i].Name, Data: a}
			buffers[unsafe.SliceData(a)] = b
		}
		b.Writable = b.Writable || f.Args[i].Access&kernel.Write != 0
		launch.Args = append(launch.Args, b)
	}
	if r.counts, err = d.Run(ctx, &k, launch); err != nil {
		r.result = err.Error()
		return r, nil
	}
	r.result = bits
	for i := range args {
		if f.Args[i].Access&kernel.Write == 0 || bytes.Equal(args[i], mine[i]) {
			continue
		}
		worst := distance(types[i], args[i], mine[i])
		r.worst = max(r.worst, worst)
		if r.result == bits {
			r.result = near
		}
		if !(worst <= most) {
			r.result = differs
		}
	}
	return r, nil
}

// clone copies buffers; arguments that share one still do.
func clone(args [][]byte) (list [][]byte) {
	copies := map[*byte][]byte{}
	for _, a := range args {
		start := unsafe.SliceData(a)
		if copies[start] == nil {
			copies[start] = slices.Clone(a)
		}
		list = append(list, copies[start])
	}
	return list
}

// operands are random contents of a call's operands, as on the device.
func operands(on *target.Target, p *ir.Program, fn *ir.Func, c *kernels.Candidate) (args [][]byte, types []ir.DType, err error) {
	made := map[*ir.Value][]byte{}
	for _, o := range c.Operands {
		v := o.Value
		if made[v] == nil {
			n, err := v.Type.Bytes(fn.Rows, p.Ctx)
			if err != nil || n > large {
				return nil, nil, fmt.Errorf("operand %s of %d bytes: %w", o.Name, n, err)
			}
			if made[v], err = content(on, p, fn, v, int(n)); err != nil {
				return nil, nil, err
			}
		}
		args, types = append(args, made[v]), append(types, v.Type.DType)
	}
	return args, types, nil
}

// content is random, but for what the step block says: all rows are of sequence 0, at positions that follow one
// another.
func content(on *target.Target, p *ir.Program, fn *ir.Func, v *ir.Value, size int) ([]byte, error) {
	h := fnv.New64a()
	h.Write([]byte(v.Name))
	rng := rand.New(rand.NewPCG(h.Sum64(), 3))
	n, err := v.Type.Elements(fn.Rows, p.Ctx)
	if err != nil {
		return nil, err
	}
	d := v.Type.DType
	switch {
	case v.Class == ir.Weight && (d.IsQuantized() || d == ir.BF16):
		l, err := weight.LayoutOf(on, v)
		if err != nil {
			return nil, err
		}
		data := make([]byte, l.Bytes)
		return data, l.Fill(data, 0, repeated(rng, d, n))
	case d == ir.I32:
		b := make([]byte, 0, size)
		for i := range int(n) {
			b = binary.LittleEndian.AppendUint32(b, integer(v.Name, i, fn.Rows))
		}
		return b, nil
	case d.IsQuantized():
		return repeated(rng, d, n), nil
	}
	b := make([]byte, 0, size)
	for range int(n) {
		x := float32(rng.NormFloat64())
		if d == ir.F16 {
			b = binary.LittleEndian.AppendUint16(b, gguf.F32ToF16(x))
		} else {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
	}
	return b, nil
}

// integer is element i of an operand of integers.
func integer(name string, i, rows int) uint32 {
	switch name {
	case "n":
		return uint32(rows)
	case "pos":
		return uint32(3 + i)
	case "token":
		return uint32(5 + i)
	}
	return 0
}

// repeated are n elements of a quantized type, of which a few thousand are random.
func repeated(rng *rand.Rand, d ir.DType, n int64) []byte {
	some := synth.Blocks(rng, d, min(n, 64<<10), 0)
	data := make([]byte, d.Bytes(n))
	for at := 0; at < len(data); at += len(some) {
		copy(data[at:], some)
	}
	return data
}

// distance is the largest difference, relative to the largest number of the first.
func distance(d ir.DType, want, got []byte) float64 {
	number := func(b []byte, i int) float64 {
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
	}
	n := len(want) / 4
	switch d {
	case ir.F32:
	case ir.F16:
		number = func(b []byte, i int) float64 { return float64(gguf.F16ToF32(binary.LittleEndian.Uint16(b[2*i:]))) }
		n = len(want) / 2
	default: // codes differ by one where a number lies in the middle
		number = func(b []byte, i int) float64 { return float64(int8(b[i])) }
		n = len(want)
	}
	largest, worst := 1e-30, 0.0
	for i := range n {
		x, y := number(want, i), number(got, i)
		switch {
		case x != x && y != y || x == y && math.IsInf(x, 0):
			continue
		case x != x || y != y:
			return math.Inf(1)
		}
		largest = max(largest, math.Abs(x))
		worst = max(worst, math.Abs(x-y))
	}
	return worst / largest
}
