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

	"github.com/zincc-dev/zincc/codegen"
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
	large   = 1 << 33     // bytes of an operand that are not allocated
	block   = 64 << 10    // elements that are random, and then repeat
	filled  = 4 << 20     // bytes of an operand that are not 0
)

// row is a kernel and what came of it with a set of constants, or with several, on GPUs for which the driver makes the
// same code.
type row struct {
	kernel       string
	wave         int
	targets      []string
	sets         int // of constants
	result       string
	worst        float64
	instructions int64
	// Cycles for which a wave keeps its SIMD busy: as the cost model has it, and by what was executed.
	model, busy float64
}

// busy are the cycles of the busiest unit of a SIMD, of one wave on average, by the compiler's costs of an
// instruction: 1 of vectors, 4 of slow ones, twice both in waves of 64, 32 of a product of matrices, 1 of scalars.
func busy(c *rdna.Counts, wave int) float64 {
	vector := float64(c.Vector+3*c.Slow)*float64(wave)/32 + 32*float64(c.Matrix)
	return max(vector, float64(c.Scalar)) / float64(max(1, c.Wave))
}

// unit is a kernel with constants, as the first plan that has it calls it.
type unit struct {
	on      *target.Target
	p       *ir.Program
	fn      *ir.Func
	c       *kernels.Candidate
	targets []string
}

// module names what the driver compiles, but for constants.
func (u *unit) module() string { return fmt.Sprint(u.c.Wave, " ", u.c.Kernel) }

// trial is a unit's kernel, built and lowered, with some workgroups of its grid.
type trial struct {
	*unit
	f     *kernel.Func
	spec  map[uint32]uint32
	asked radv.Kernel
	size  int // of a workgroup
	grid  [3]int
	// args are the operands as the interpreter finds them, want as it leaves them; nil if it finds them unfit.
	args, want [][]byte
	types      []ir.DType
}

func (u *unit) trial() (*trial, error) {
	t := &trial{unit: u, grid: u.c.Grid}
	var err error
	if t.f, err = u.c.Build(); err != nil {
		return nil, err
	}
	byName := map[string]uint32{}
	for _, k := range u.c.Consts {
		byName[k.Name] = k.Value
	}
	if t.spec, err = t.f.SpecValues(byName); err != nil {
		return nil, err
	}
	words, err := kernelspirv.Lower(t.f)
	if err != nil {
		return nil, err
	}
	size, err := t.f.WorkgroupSize(t.spec)
	if err != nil {
		return nil, err
	}
	t.size = int(size)
	t.asked = radv.Kernel{Name: u.c.Kernel, Words: words, Consts: t.spec, Wave: u.c.Wave, Full: t.size%u.c.Wave == 0}
	for i := range t.grid {
		t.grid[i] = min(t.grid[i], groups)
	}
	return t, nil
}

// interpret sets args and want, at the first call.
func (t *trial) interpret() (err error) {
	if t.args != nil {
		return nil
	}
	if t.args, t.types, err = operands(t.on, t.p, t.fn, t.c); err != nil {
		return err
	}
	if want := clone(t.f, t.args); t.f.Run(t.spec, t.c.Wave, t.grid, want) == nil {
		t.want = want
	}
	return nil
}

// run runs some workgroups of a unit in the interpreter, and on each of its targets in the emulator.
func (u *unit) run(ctx context.Context, devices map[string]*emulate.Device, x *exporter, cycles bool) ([]*row, error) {
	t, err := u.trial()
	if err != nil {
		return nil, err
	}
	var rows []*row
	same := map[string]*row{} // by code
	for _, name := range u.targets {
		machine, program, err := devices[name].Code(ctx, &t.asked)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		code, result := "none", noCode
		switch {
		case err == nil:
			code = fmt.Sprint(devices[name].Gen(), *machine)
		case !errors.Is(err, emulate.ErrNoCode):
			code, result = err.Error(), err.Error()
		}
		if r := same[code]; r != nil {
			r.targets = append(r.targets, name)
			continue
		}
		r := &row{kernel: u.c.Kernel, wave: u.c.Wave, targets: []string{name}, sets: 1, result: result}
		rows, same[code] = append(rows, r), r
		if err != nil {
			continue
		}
		if err := t.emulate(ctx, r, devices[name], machine, program, x, cycles); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// emulate runs the kernel's machine code and sets the row.
func (t *trial) emulate(ctx context.Context, r *row, on *emulate.Device, machine *rdna.Kernel, program *rdna.Program, x *exporter, cycles bool) error {
	if err := t.interpret(); err != nil {
		return err
	}
	if t.want == nil {
		r.result = inputs
		return nil
	}
	mine := clone(t.f, t.args)
	launch := rdna.Launch{Grid: t.grid, Workgroup: t.size, Ahead: t.f.LoadsAhead(), Kernel: machine, Program: program, Limit: 1e8}
	buffers := map[*byte]*rdna.Buffer{}
	for i, a := range mine {
		b := buffers[unsafe.SliceData(a)]
		if b == nil {
			b = &rdna.Buffer{Name: t.f.Args[i].Name, Data: a}
			buffers[unsafe.SliceData(a)] = b
		}
		b.Writable = b.Writable || t.f.Args[i].Access&kernel.Write != 0
		launch.Args = append(launch.Args, b)
	}
	counts, err := on.Run(ctx, &t.asked, launch)
	if err != nil {
		r.result = err.Error()
		return nil
	}
	r.instructions = counts.Instructions
	r.compare(t.f, t.types, t.want, mine)
	if x.dir != "" {
		if err := x.write(t.c.Kernel, on.Gen(), machine, &launch, t.args); err != nil {
			return err
		}
	}
	if !cycles {
		return nil
	}
	figures, err := on.Figures(ctx, &t.asked)
	if err != nil {
		return err
	}
	r.model = figures.Busy(t.c.Wave) * codegen.Weigh(t.f, t.spec, t.grid, t.fn.Rows).Mean
	r.busy = busy(&counts, t.c.Wave)
	return nil
}

// compare says how far what the kernel left is from what the interpreter left.
func (r *row) compare(f *kernel.Func, types []ir.DType, want, mine [][]byte) {
	r.result = bits
	for i := range want {
		if f.Args[i].Access&kernel.Write == 0 || bytes.Equal(want[i], mine[i]) {
			continue
		}
		worst := distance(types[i], want[i], mine[i])
		r.worst = max(r.worst, worst)
		if r.result == bits {
			r.result = near
		}
		if !(worst <= most) {
			r.result = differs
		}
	}
}

// clone copies the buffers that a kernel writes; arguments that share one still do.
func clone(f *kernel.Func, args [][]byte) (list [][]byte) {
	copies := map[*byte][]byte{}
	for i, a := range args {
		if start := unsafe.SliceData(a); f.Args[i].Access&kernel.Write != 0 && copies[start] == nil {
			copies[start] = slices.Clone(a)
		}
	}
	for _, a := range args {
		if c := copies[unsafe.SliceData(a)]; c != nil {
			a = c
		}
		list = append(list, a)
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
	data := make([]byte, size)
	switch {
	case v.Class == ir.Weight && (d.IsQuantized() || d == ir.BF16):
		l, err := weight.LayoutOf(v)
		if err != nil {
			return nil, err
		}
		file := make([]byte, d.Bytes(n))
		repeat(file, synth.Blocks(rng, d, min(n, block), 0))
		data = make([]byte, l.Bytes)
		part := min(1, float64(filled)/float64(len(file)))
		fill := func(at, bytes int64) error {
			bytes = int64(math.Ceil(part * float64(bytes)))
			return l.Fill(data[at:at+bytes], at, file)
		}
		err = fill(0, l.Bytes)
		for _, p := range l.Planes {
			err = errors.Join(err, fill(p.Offset, p.Bytes))
		}
		return data, err
	case d == ir.I32:
		for i := range int(n) {
			binary.LittleEndian.PutUint32(data[4*i:], integer(v.Name, i, fn.Rows))
		}
		return data, nil
	case d.IsQuantized():
		repeat(data, synth.Blocks(rng, d, min(n, block), 0))
		return data, nil
	}
	var some []byte
	for range min(n, block) {
		x := float32(rng.NormFloat64())
		if d == ir.F16 {
			some = binary.LittleEndian.AppendUint16(some, gguf.F32ToF16(x))
		} else {
			some = binary.LittleEndian.AppendUint32(some, math.Float32bits(x))
		}
	}
	repeat(data, some)
	return data, nil
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

// repeat writes the beginning of data, which the first workgroups read; the rest is 0.
func repeat(data, some []byte) {
	for at := 0; at < min(len(data), filled); at += len(some) {
		copy(data[at:], some)
	}
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
