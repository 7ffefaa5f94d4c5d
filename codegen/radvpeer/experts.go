package main

import (
	"context"
	"fmt"
	"strings"
)

// expertKernel is a row of the table of the peer's kernels for experts: a product of one token with the matrices of the
// slots that it has chosen, of so many rows and columns each. Qwen3.5-35B-A3B has these.
type expertKernel struct {
	what          string
	weights, x    string
	module        string
	rowsAtOnce    int // of a workgroup
	rows, columns int
	shared        bool // the slots have one x
}

const expertSlots, expertCount = 8, 256

var expertKernels = []expertKernel{
	{"gate or up", "q4_k", "q8_1", "6eae63db38acdcc7", 1, 512, 2048, true},
	{"down", "q5_k", "f32", "071b3c9f0ad08ef0", 2, 2048, 512, false}, // rows so short that x is not rounded for them
}

// expertProgram is what this project makes of them: gate and up are one dispatch with what joins them, and down adds up
// the slots.
const expertProgram = `zir 1
stage fuse
model arch="" name="" path="" source="" target="" ctx=512 slots=1 layers=1

step @n : i32[1]
step @ids : i32[T, 8]
step @x : f32[T, 2048]
step @y : f32[T, 4096]
step @scale : f32[T, 8]
weight @gate : q4_k[256, 512, 2048]
weight @up : q4_k[256, 512, 2048]
weight @down : q5_k[256, 2048, 512]

func "decode/1" rows=1 sequences=many run=1 class=exact {
  group "gate and up" stage=0 waits=0 {
    %0 = expert_linear @x, @gate, @ids {first=0, rows=512} : f32[T, 4096]
    %1 = expert_linear @x, @up, @ids {first=0, rows=512} : f32[T, 4096]
    %2 = glu %0, %1 {act="silu"} : io f32[T, 4096]
  }
  group "down" stage=0 waits=0 {
    %3 = expert_linear @y, @down, @ids {first=0, rows=2048} : f32[T, 16384]
    %4 = expert_sum %3, @scale : io f32[T, 2048]
  }
}
`

// expertWeights are those of the groups of expertProgram that 8 experts have.
var expertWeights = map[string]float64{"gate and up": 2 * expertSlots * 512 * 2048, "down": expertSlots * 2048 * 512}

// expert executes workgroups of the peer's kernel for experts on zeros.
func (r *runner) expert(ctx context.Context, k *expertKernel, m module) (work, error) {
	of := kernelOf(k.weights+" "+k.x+" of experts", m, k.rowsAtOnce, 1)
	each, x := uint32(k.rows*k.columns), uint32(expertSlots)
	if k.shared {
		x = 1
	}
	rows, columns := uint32(k.rows), uint32(k.columns)
	// Columns, strides of rows, of matrices, of x and of the result; no addition; slots, rows of x, the token and how
	// far the slots of the next one are.
	params := []uint32{columns, columns, columns, rows, each, columns * x, rows * expertSlots, 0, expertSlots, x, 0, expertSlots}
	return r.peer(ctx, &of, float64(groups*k.rowsAtOnce*k.columns), params, most, 4*expertSlots*k.columns, 4*expertSlots*k.rows, 4096, 4096, 4*expertSlots)
}

// experts prints what both execute.
func (r *runner) experts(ctx context.Context, modules map[string]module) error {
	fmt.Printf("\nProducts with %d of %d experts, one token:\n\n| product | kernel | %s |\n|---|---|%s\n", expertSlots, expertCount,
		strings.Join(workColumns, " | "), strings.Repeat("---|", len(workColumns)))
	for _, k := range expertKernels {
		m, ok := modules[k.module]
		if !ok {
			return fmt.Errorf("none of the peer's modules is that of %s of experts", k.what)
		}
		w, err := r.expert(ctx, &k, m)
		if err != nil {
			return fmt.Errorf("%s of experts: %w", k.what, err)
		}
		fmt.Printf("| %s, %s, %d of %d | llama.cpp, x %s | %s |\n", k.what, k.weights, k.rows, k.columns, k.x, &w)
	}
	return r.ours(ctx, expertProgram, func(_ int, group, kernel string, w work) {
		fmt.Printf("| %s | zincc: %s | %s |\n", group, kernel, &w)
	}, func(group string) float64 { return expertWeights[group] })
}
