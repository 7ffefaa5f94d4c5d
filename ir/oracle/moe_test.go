package oracle

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

func TestTopK(t *testing.T) {
	checkOp(t, func(t *opTest) {
		experts := t.pick("experts", 1, 20)
		k := t.pick("k", 1, experts)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]", experts), fmt.Sprintf("%%0 = topk @x {k=%d} : io i32[T, %d]", k, k))
		x := make([]float32, t.n*experts)
		for i := range x {
			x[i] = float32(t.rand.IntN(7)) - 3 // with equal ones
		}
		m.setFloats("x", x...)
		run(t, m)
		for r := range t.n {
			row, ids := x[r*experts:][:experts], m.Ints(m.last())[r*k:][:k]
			before := func(a, b int32) bool { return row[a] > row[b] || row[a] == row[b] && a < b }
			for i, id := range ids {
				if i > 0 && !before(ids[i-1], id) {
					t.Fatalf("topk %v of %v is not in order", ids, row)
				}
				smaller := 0
				for e := range row {
					if before(id, int32(e)) {
						smaller++
					}
				}
				if smaller != experts-1-i {
					t.Fatalf("topk %v of %v", ids, row)
				}
			}
		}
	})
}

// chosen returns k different ids below limit for each of n rows.
func (t *opTest) chosen(n, k, limit int) []int32 {
	var ids []int32
	for range n {
		for _, e := range t.rand.Perm(limit)[:k] {
			ids = append(ids, int32(e))
		}
	}
	return ids
}

func TestRoute(t *testing.T) {
	checkOp(t, func(t *opTest) {
		experts := t.pick("experts", 1, 12)
		k, norm := t.pick("k", 1, experts), t.pick("norm", 0, 1)
		gating := rapid.SampledFrom([]string{"softmax", "sigmoid", "topk_softmax"}).Draw(t.T, "gating")
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]\nstep @ids : i32[T, %d]", experts, k),
			fmt.Sprintf("%%0 = route @x, @ids {gating=%q, norm=%d, scale=2.5} : io f32[T, %d]", gating, norm, k))
		x, ids := t.floats(t.n*experts), t.chosen(t.n, k, experts)
		if t.pick("low", 0, 1) == 1 {
			for i := range x {
				x[i] -= 40 // sigmoids whose sum is below the floor
			}
		}
		m.setFloats("x", x...)
		m.setInts("ids", ids...)
		run(t, m)
		var want []float64
		for r := range t.n {
			row, ids := x[r*experts:][:experts], ids[r*k:][:k]
			e, all, chosen := make([]float64, experts), 0.0, 0.0
			for i, s := range row {
				e[i] = math.Exp(float64(s))
				all += e[i]
			}
			for _, id := range ids {
				chosen += e[id]
			}
			w, sum := make([]float64, k), 0.0
			for i, id := range ids {
				w[i] = map[string]float64{"softmax": e[id] / all, "topk_softmax": e[id] / chosen, "sigmoid": e[id] / (1 + e[id])}[gating]
				sum += w[i]
			}
			for _, v := range w {
				if norm == 1 {
					v /= math.Max(sum, 6.103515625e-05)
				}
				want = append(want, 2.5*v)
			}
		}
		near(t, gating, m.Floats(m.last()), want, 1e-6)
	})
}

func TestExpertOrder(t *testing.T) {
	checkOp(t, func(t *opTest) {
		experts := t.pick("experts", 1, 12)
		k := t.pick("k", 1, experts)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @ids : i32[T, %d]", k),
			fmt.Sprintf("%%0 = expert_order @ids : io i32[T, %d]\n%%1 = expert_offsets @ids {experts=%d} : io i32[%d]", k, experts, experts+1))
		ids := t.chosen(t.n, k, experts)
		m.setInts("ids", ids...)
		run(t, m)
		ops := m.prog.Funcs[0].Ops()
		order, offsets := m.Ints(ops[0].Result), m.Ints(ops[1].Result)
		at := 0
		for e := range experts {
			if int(offsets[e]) != at {
				t.Fatalf("expert %d begins at %d, not %d", e, offsets[e], at)
			}
			for slot, id := range ids[:t.n*k] {
				if int(id) != e {
					continue
				}
				if int(order[at]) != slot {
					t.Fatalf("place %d has slot %d, not %d", at, order[at], slot)
				}
				at++
			}
		}
		if int(offsets[experts]) != t.n*k {
			t.Fatalf("%d slots, not %d", offsets[experts], t.n*k)
		}
	})
}

func TestExpertLinear(t *testing.T) {
	checkOp(t, func(t *opTest) {
		experts, height, cols := t.pick("experts", 1, 6), t.pick("height", 1, 20), 32*t.pick("blocks", 1, 3)
		first := t.pick("first", 0, height-1)
		n, k := t.pick("outputs", 1, height-first), t.pick("k", 1, experts)
		own := t.pick("own", 0, 1) == 1 // every slot has a run of x
		in := cols
		if own {
			in = k * cols
		}
		raw := make([]byte, experts*height*cols/32*34)
		for i := range raw {
			raw[i] = byte(t.rand.IntN(256))
		}
		for i := 1; i < len(raw); i += 34 {
			raw[i] = 0x20 // the scale of a block is about 1/100
		}
		w := make([]float32, experts*height*cols)
		if err := gguf.Dequantize(w, raw, ir.Q8_0); err != nil {
			t.Fatal(err)
		}
		t.options.CacheBytes = int64(t.pick("kept experts", 0, experts) * height * cols * 4)
		m := t.machine(1, 1, source{"w": raw},
			fmt.Sprintf("weight @w : q8_0[%d, %d, %d]\nstep @x : f32[T, %d]\nstep @ids : i32[T, %d]", experts, height, cols, in, k),
			fmt.Sprintf("%%0 = expert_linear @x, @w, @ids {first=%d, rows=%d} : io f32[T, %d]", first, n, k*n))
		x, ids := t.floats(t.n*in), t.chosen(t.n, k, experts)
		m.setFloats("x", x...)
		m.setInts("ids", ids...)
		want := make([]float64, t.n*k*n)
		for i := range want {
			s, row := i/n, x[i/n/k*in:][:in]
			if own {
				row = row[s%k*cols:]
			}
			for j := range cols {
				want[i] += float64(w[(int(ids[s])*height+first+i%n)*cols+j]) * float64(row[j])
			}
		}
		for range 2 { // dequantized, then kept
			run(t, m)
			near(t, "expert_linear", m.Floats(m.last()), want, 2e-5)
		}
		if m.budget < 0 {
			t.Fatalf("%d bytes over the budget", -m.budget)
		}
	})
}

// Only what the ids choose is computed, once a slot, and every expert's weights are
// read once a step.
func TestLoadsHoldEverySlotOnce(t *testing.T) {
	checkOp(t, func(t *opTest) {
		experts := t.pick("experts", 1, 9)
		k := t.pick("k", 1, experts)
		ids := t.chosen(t.n, k, experts)
		slots, seen := make([]int, len(ids)), map[int]bool{}
		for _, l := range loadsOf(ids) {
			if seen[l.expert] || len(l.slots) == 0 {
				t.Fatalf("ids %v: expert %d twice or without slots", ids, l.expert)
			}
			seen[l.expert] = true
			for _, s := range l.slots {
				slots[s]++
				if int(ids[s]) != l.expert {
					t.Fatalf("ids %v: slot %d went to expert %d", ids, s, l.expert)
				}
			}
		}
		for s, times := range slots {
			if times != 1 {
				t.Fatalf("ids %v: slot %d computed %d times", ids, s, times)
			}
		}
	})
}

func TestExpertSumAndGateRows(t *testing.T) {
	checkOp(t, func(t *opTest) {
		k, n := t.pick("k", 1, 5), t.pick("width", 1, 20)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]\nstep @w : f32[T, %d]\nstep @g : f32[T, 1]", k*n, k), fmt.Sprintf(`
%%0 = expert_sum @x, @w : io f32[T, %d]
%%1 = gate_rows @x, @g : io f32[T, %d]`, n, k*n))
		x, w, g := t.floats(t.n*k*n), t.floats(t.n*k), t.floats(t.n)
		m.setFloats("x", x...)
		m.setFloats("w", w...)
		m.setFloats("g", g...)
		run(t, m)
		sums, gated := make([]float64, t.n*n), make([]float64, len(x))
		for i, v := range x {
			sums[i/(k*n)*n+i%n] += float64(w[i/n]) * float64(v)
			gated[i] = float64(v) / (1 + math.Exp(-float64(g[i/(k*n)])))
		}
		near(t, "expert_sum", m.Floats(m.prog.Funcs[0].Ops()[0].Result), sums, 3e-6)
		near(t, "gate_rows", m.Floats(m.last()), gated, 1e-6)
	})
}

func TestBadIDsGiveErrors(t *testing.T) {
	for _, body := range []string{
		`%0 = route @x, @ids {gating="softmax", norm=1, scale=1.0} : f32[T, 2]`,
		"%0 = expert_linear @x, @w, @ids {first=0, rows=3} : f32[T, 6]",
	} {
		for _, bad := range []int32{-1, 4, math.MaxInt32} {
			p := parse(t, 1, 1, 1, "weight @w : f32[4, 3, 4]\nstep @x : f32[T, 4]\nstep @ids : i32[T, 2]", body)
			m := machine(t, p, source{"w": make([]byte, 4*3*4*4)}, Options{})
			m.setInts("ids", 0, bad)
			err := m.Run(context.Background(), p.Funcs[0])
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("ids %d is not in [0, 4)", bad)) {
				t.Errorf("%s: id %d: %v", body, bad, err)
			}
		}
	}
}
