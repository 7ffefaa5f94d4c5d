package kernels

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func attentionMergeCandidates(s *Site) []Candidate {
	op, gate, result := onlyGated(s, "attention_merge")
	if op == nil {
		return nil
	}
	rows, ok := extentOf(s, op.Result)
	if !ok {
		return nil
	}
	k := mergeKernel{rows: rows, gate: gate, wave: s.Target.Wave}
	headDim, heads := op.Attrs.Int("head_dim"), op.Attrs.Int("heads")
	size := min(ceilDiv(headDim, k.wave)*k.wave, s.Target.Workgroup/k.wave*k.wave)
	return []Candidate{{
		Kernel: k.key(),
		Build:  k.build,
		Consts: append(append(rows.consts(), gate.consts()...),
			ir.Const{Name: "head_dim", Value: uint32(headDim)},
			ir.Const{Name: "splits", Value: uint32(op.Attrs.Int("splits"))},
			ir.Const{Name: "workgroup", Value: uint32(size)}),
		Grid:     [3]int{heads, rows.max, 1},
		Operands: append(append(rows.operands(), gate.operands()...), Operand{"partial", op.Args[0], kernel.Read}, Operand{"y", result, kernel.Write}),
		Cover:    []plans.Cover{{Arg: "y", Dims: []int{rows.max, heads * headDim}, Tile: []int{1, headDim}, Axis: []int{1, 0}}},
	}}
}

// mergeAhead is the splits whose sums a lane loads at once.
const mergeAhead = 8

type mergeKernel struct {
	rows extent
	gate headGate
	wave int
}

func (k mergeKernel) key() string {
	return fmt.Sprintf("attention_merge w=%d%s%s", k.wave, k.gate.key(), k.rows.key())
}

func (k mergeKernel) build() (*kernel.Func, error) {
	return kernel.Build("attention_merge", func(b *kernel.Builder) {
		rows, gate := k.rows.bound(b), k.gate.declare(b)
		partial, y := b.Arg("partial", kernel.Read), b.Arg("y", kernel.Write)
		headDim, splits := b.SpecU32("head_dim", 128), b.SpecU32("splits", 1)
		size := b.SpecU32("workgroup", uint32(k.wave))
		b.Workgroup(size)

		row := b.WorkgroupID(1)
		head := b.Add(b.Mul(row, b.NumWorkgroups(0)), b.WorkgroupID(0))
		stride := b.Add(headDim, 2)
		from := b.Mul(head, splits, stride)
		load := func(split, i kernel.Value) kernel.Value {
			return partial.Load(kernel.F32, b.Add(from, b.Mul(split, stride), i))
		}

		most := b.Var(kernel.F32, emptyScore)
		b.For(b.SubgroupLane(), splits, k.wave, func(s kernel.Value) {
			most.Set(b.Max(most.Get(), load(s, headDim)))
		})
		top := b.SubgroupMax(most.Get())
		b.For(b.LocalID(), headDim, size, func(i kernel.Value) {
			gated := gate.load(b, kernel.F32, head, i, headDim)
			sum, weight := b.Var(kernel.F32, 0), b.Var(kernel.F32, 0)
			b.For(0, splits, mergeAhead, func(from kernel.Value) {
				var parts [mergeAhead][3]kernel.Value // all loads before the first use
				for j := range parts {
					s := b.Min(b.Add(from, j), b.Sub(splits, 1))
					parts[j] = [3]kernel.Value{load(s, i), load(s, headDim), load(s, b.Add(headDim, 1))}
				}
				for j, p := range parts {
					fade := b.Select(b.Lt(b.Add(from, j), splits), b.Exp(b.Sub(p[1], top)), 0)
					sum.Set(b.FMA(fade, p[0], sum.Get()))
					weight.Set(b.FMA(fade, p[2], weight.Get()))
				}
			})
			b.If(b.Lt(row, rows), func() {
				y.Store(b.Add(b.Mul(head, headDim), i), gated(b.Div(sum.Get(), weight.Get())))
			})
		})
	})
}
