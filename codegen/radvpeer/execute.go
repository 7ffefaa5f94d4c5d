package main

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/internal/rdna"
)

// groups are how many workgroups are executed: all do the same.
const groups = 2

// most is what a buffer has, more than any needs.
const most = 256 << 20

// work is what workgroups execute for 1,000 weights.
type work struct {
	instructions float64
	cycles       float64 // of SIMDs: one of a vector instruction, four of a slow one, twice both in waves of 64
	bytes        float64 // a weight, that lanes ask for
	conflicts    float64 // cycles in which lanes wait for others at a bank of shared memory
}

func workOf(n *rdna.Counts, wave int, weights float64) work {
	vector := float64(n.Vector+3*n.Slow) * float64(wave) / 32
	return work{1000 * float64(n.Instructions) / weights, 1000 * max(vector, float64(n.Scalar)) / weights, float64(n.LoadedBytes+n.ScalarBytes) / weights,
		1000 * float64(n.SharedConflicts) / weights}
}

// execute runs workgroups of the peer's kernel in the emulator, on zeros.
func (k *peerKernel) execute(ctx context.Context, d *emulate.Device, m module, columns int) (work, error) {
	rows := k.rows[columns]
	of := kernelOf(k.weights+" "+k.x, m, rows, columns)
	// Columns, strides of rows and of matrices; what follows is of several matrices, and of what is added.
	params := []uint32{rowLength, rowLength, rowLength, rowCount, rowLength * rowCount, rowLength, rowCount, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	n, err := executePeer(ctx, d, &of, groups, params, 2*rowLength*rowCount, 8*4*rowLength, 8*4*rowCount, 4096, 4096)
	return workOf(&n, peerWave, float64(groups*rows*rowLength)), err
}

// kernelOf is one of the peer's kernels.
func kernelOf(name string, m module, rows, columns int) radv.Kernel {
	return radv.Kernel{Name: name, Words: m, Wave: peerWave, Full: true,
		Consts: map[uint32]uint32{peerLanes: peerWave, peerRows: uint32(rows), peerColumns: uint32(columns)}}
}

// executePeer runs some workgroups of a kernel on buffers of zeros, by binding; the third is the result.
func executePeer(ctx context.Context, d *emulate.Device, of *radv.Kernel, workgroups int, params []uint32, sizes ...int) (rdna.Counts, error) {
	launch := rdna.Launch{Grid: [3]int{workgroups, 1, 1}, Workgroup: peerWave}
	for _, x := range params {
		launch.Params = binary.LittleEndian.AppendUint32(launch.Params, x)
	}
	for i, size := range sizes {
		launch.Args = append(launch.Args, &rdna.Buffer{Name: fmt.Sprint("binding ", i), Data: make([]byte, size), Writable: i == 2})
	}
	return d.Run(ctx, of, launch)
}

// executeOurs does the same with one of this project's, which has so many weights.
func executeOurs(ctx context.Context, d *emulate.Device, c *kernels.Candidate, columns int, weights float64) (work, error) {
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
			binary.LittleEndian.PutUint32(b.Data, uint32(columns))
		}
		launch.Args = append(launch.Args, b)
	}
	n, err := d.Run(ctx, &of, launch)
	return workOf(&n, c.Wave, float64(launch.Grid[0])/float64(c.Grid[0])*weights), err
}
