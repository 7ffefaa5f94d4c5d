package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/weight"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/rdna"
	"github.com/zincc-dev/zincc/ir"
)

// groups are how many workgroups are executed: all do the same.
const groups = 2

// most is what a buffer has, more than any needs.
const most = 256 << 20

// work is what workgroups execute for 1,000 weights, and how many of their subgroups are resident.
type work struct {
	cycles       float64 // of SIMDs: one of a vector instruction, four of a slow one, twice both in waves of 64
	instructions float64
	bytes        float64 // a weight, that lanes ask for
	conflicts    float64 // cycles in which lanes wait for others at a bank of shared memory
	vgprs, waves int     // registers of a lane, and subgroups that a SIMD holds with them
}

// workColumns are the columns of String.
var workColumns = []string{"cycles", "instructions", "bytes a weight", "conflicts", "VGPRs", "waves"}

func (w *work) String() string {
	return fmt.Sprintf("%.0f | %.0f | %.2f | %.1f | %d | %d", w.cycles, w.instructions, w.bytes, w.conflicts, w.vgprs, w.waves)
}

// runner executes kernels for a target.
type runner struct {
	t *target.Target
	o *radv.Compiler // asked which of ours to take
	d *emulate.Device
}

// run executes a launch of a kernel, which multiplies so many weights.
func (r *runner) run(ctx context.Context, of *radv.Kernel, launch rdna.Launch, weights float64) (work, error) {
	n, err := r.d.Run(ctx, of, launch)
	if err != nil {
		return work{}, err
	}
	f, err := r.d.Figures(ctx, of)
	if err != nil {
		return work{}, err
	}
	vector := float64(n.Vector+3*n.Slow) * float64(of.Wave) / 32
	each := 1000 / weights
	return work{
		cycles: each * max(vector, float64(n.Scalar)), instructions: each * float64(n.Instructions),
		bytes: float64(n.LoadedBytes+n.ScalarBytes) / weights, conflicts: each * float64(n.SharedConflicts),
		vgprs: f.VGPRs, waves: r.t.AMD.Occupancy(of.Wave, f.VGPRs, launch.Workgroup, f.LDS),
	}, nil
}

// linear executes workgroups of the peer's kernel on zeros.
func (r *runner) linear(ctx context.Context, k *peerKernel, m module, columns int) (work, error) {
	rows := k.rows[columns]
	of := kernelOf(k.weights+" "+k.x, m, rows, columns)
	// Columns, strides of rows and of matrices; what follows is of several matrices, and of what is added.
	params := []uint32{rowLength, rowLength, rowLength, rowCount, rowLength * rowCount, rowLength, rowCount, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	return r.peer(ctx, &of, float64(groups*rows*rowLength), params, 2*rowLength*rowCount, 8*4*rowLength, 8*4*rowCount, 4096, 4096)
}

// kernelOf is one of the peer's kernels.
func kernelOf(name string, m module, rows, columns int) radv.Kernel {
	return radv.Kernel{Name: name, Words: m, Wave: peerWave, Full: true,
		Consts: map[uint32]uint32{peerLanes: peerWave, peerRows: uint32(rows), peerColumns: uint32(columns)}}
}

// peer executes some workgroups of a kernel on buffers of zeros, by binding; the third is the result.
func (r *runner) peer(ctx context.Context, of *radv.Kernel, weights float64, params []uint32, sizes ...int) (work, error) {
	launch := rdna.Launch{Grid: [3]int{groups, 1, 1}, Workgroup: peerWave}
	for _, x := range params {
		launch.Params = binary.LittleEndian.AppendUint32(launch.Params, x)
	}
	for i, size := range sizes {
		launch.Args = append(launch.Args, &rdna.Buffer{Name: fmt.Sprint("binding ", i), Data: make([]byte, size), Writable: i == 2})
	}
	return r.run(ctx, of, launch, weights)
}

// ours executes the kernels that this project's compiler chooses for a program in the text form, and calls f with the
// rows of the entry and the name of the group. weights are those of a group.
func (r *runner) ours(ctx context.Context, text string, f func(rows int, group, kernel string, w work), weights func(group string) float64) error {
	p, err := ir.Parse(text)
	if err != nil {
		return err
	}
	if err := weight.Lay(r.t, p); err != nil {
		return err
	}
	o := codegen.Options{Target: r.t, Choice: codegen.Choice{Compiler: r.o}}
	return codegen.Calls(ctx, codegen.Source{Program: p}, o, func(_ *ir.Program, fn *ir.Func, g *ir.Group, c *kernels.Candidate) error {
		w, err := r.candidate(ctx, c, fn.Rows, weights(g.Name))
		if err != nil {
			return fmt.Errorf("%s: %s: %w", g.Name, c.Kernel, err)
		}
		f(fn.Rows, g.Name, c.Kernel, w)
		return nil
	})
}

// candidate executes some workgroups of one of this project's kernels, which has so many weights, on zeros.
func (r *runner) candidate(ctx context.Context, c *kernels.Candidate, rows int, weights float64) (work, error) {
	f, err := c.Build()
	if err != nil {
		return work{}, err
	}
	byName := map[string]uint32{}
	for _, k := range c.Consts {
		byName[k.Name] = k.Value
	}
	spec, err := f.SpecValues(byName)
	if err != nil {
		return work{}, err
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		return work{}, err
	}
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		return work{}, err
	}
	of := radv.Kernel{Name: c.Kernel, Words: words, Consts: spec, Wave: c.Wave, Full: int(size)%c.Wave == 0}
	launch := rdna.Launch{Grid: [3]int{min(groups, c.Grid[0]), c.Grid[1], c.Grid[2]}, Workgroup: int(size), Ahead: f.LoadsAhead()}
	for i := range c.Operands {
		b := &rdna.Buffer{Name: f.Args[i].Name, Data: make([]byte, most), Writable: f.Args[i].Access&kernel.Write != 0}
		if b.Name == "n" {
			binary.LittleEndian.PutUint32(b.Data, uint32(rows))
		}
		launch.Args = append(launch.Args, b)
	}
	return r.run(ctx, &of, launch, float64(launch.Grid[0])/float64(c.Grid[0])*weights)
}
