package oracle

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// The tests of this file hold each op against its formula in float64, with random
// shapes and inputs, on fewer rows than the function has.

// opTest is one random case: T is bound by rows, the step has n rows.
type opTest struct {
	*rapid.T
	rand    *rand.Rand
	rows, n int
	options Options
}

func checkOp(t *testing.T, f func(t *opTest)) {
	t.Helper()
	rapid.Check(t, func(rt *rapid.T) {
		c := &opTest{T: rt, rand: rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))}
		c.rows = c.pick("rows", 1, 6)
		c.n = c.pick("n", 1, c.rows)
		c.options = Options{Threads: c.pick("threads", 1, 3), CacheBytes: int64(c.pick("keep", 0, 1)) << 20}
		f(c)
	})
}

func (t *opTest) pick(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(t.T, name) }

func (t *opTest) floats(n int) []float32 { return random(t.rand, n) }

func (t *opTest) ints(n, limit int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(t.rand.IntN(limit))
	}
	return x
}

func (t *opTest) machine(ctx, slots int, src source, globals, body string) *Machine {
	t.Helper()
	m := machine(t, parse(t, ctx, slots, t.rows, globals+"\nstep @n : i32[1]", body), src, t.options)
	m.setInts("n", int32(t.n))
	return m
}

func TestEmbed(t *testing.T) {
	checkOp(t, func(t *opTest) {
		vocab, k := t.pick("vocab", 1, 9), 32*t.pick("blocks", 1, 3)
		raw := make([]byte, vocab*k/32*34)
		for i := range raw {
			raw[i] = byte(t.rand.IntN(120))
		}
		table := make([]float32, vocab*k)
		if err := gguf.Dequantize(table, raw, ir.Q8_0); err != nil {
			t.Fatal(err)
		}
		m := t.machine(1, 1, source{"w": raw}, fmt.Sprintf("weight @w : q8_0[%d, %d]\nstep @id : i32[T]", vocab, k),
			fmt.Sprintf("%%0 = embed @id, @w {scale=1.5} : io f32[T, %d]", k))
		ids := t.ints(t.n, vocab)
		m.setInts("id", ids...)
		run(t, m)
		var want []float64
		for _, id := range ids {
			for _, v := range table[int(id)*k:][:k] {
				want = append(want, 1.5*float64(v))
			}
		}
		near(t, "embed", m.Floats(m.last()), want, 1e-7)
	})
}

func TestFixedPoint(t *testing.T) {
	t.Run("fixed12", func(t *testing.T) { checkFixed(t, "fixed12", 2047, 256) })
	t.Run("fixed8", func(t *testing.T) { checkFixed(t, "fixed8", 127, 32) })
}

// TestBFloat16: 8 bits of the mantissa are left, and what lies in the middle of two numbers goes away from 0.
func TestBFloat16(t *testing.T) {
	checkOp(t, func(t *opTest) {
		x := t.floats(t.n * 32)
		copy(x, []float32{1 + 1.0/256, -1 - 1.0/256, 1 + 1.0/257, 0, 3})
		m := t.machine(1, 1, nil, "step @x : f32[T, 32]", "%0 = bfloat16 @x : io f32[T, 32]")
		m.setFloats("x", x...)
		run(t, m)
		got := m.Floats(m.last())[:t.n*32]
		if want := []float32{1 + 1.0/128, -1 - 1.0/128, 1, 0, 3}; !slices.Equal(got[:5], want) {
			t.Fatalf("%g, want %g", got[:5], want)
		}
		for i, y := range got {
			if off := math.Abs(float64(y - x[i])); off > math.Abs(float64(x[i]))/256 || math.Float32bits(y)&0xffff != 0 {
				t.Fatalf("element %d: %g is %g", i, x[i], y)
			}
		}
	})
}

// checkFixed holds an op that rounds to multiples of the largest of a run over most.
func checkFixed(t *testing.T, op string, most float64, long int) {
	checkOp(t, func(t *opTest) {
		size := 32
		k := size * t.pick("runs", 1, 9)
		if k%long == 0 {
			size = long
		}
		x := t.floats(t.n * k)
		clear(x[:size])    // zeros stay zeros
		x[t.n*k-1] = 1e-31 // and what is as good as zero becomes one beside others
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]", k), fmt.Sprintf("%%0 = %s @x : io f32[T, %d]", op, k))
		m.setFloats("x", x...)
		run(t, m)
		for i, got := range m.Floats(m.last())[:t.n*k] {
			largest := 0.0
			for _, v := range x[i/size*size:][:size] {
				largest = max(largest, math.Abs(float64(v)))
			}
			steps := float64(got) / largest * most
			off := math.Abs(float64(got) - float64(x[i]))
			switch {
			case largest < 1e-30 && got != 0:
				t.Fatalf("element %d of a run of zeros is %g", i, got)
			case largest >= 1e-30 && (off > 0.51*largest/most || math.Abs(steps-math.Round(steps)) > 1e-2):
				t.Fatalf("element %d: %g is %g, %g steps of %g/%g", i, x[i], got, steps, largest, most)
			}
		}
	})
}

func TestRMSNorm(t *testing.T) {
	checkOp(t, func(t *opTest) {
		group, heads := t.pick("group", 1, 40), t.pick("heads", 1, 5)
		k := group * heads
		w, x := t.floats(group), t.floats(t.n*k)
		m := t.machine(1, 1, source{"w": f32Bytes(w)}, fmt.Sprintf("weight @w : f32[%d]\nstep @x : f32[T, %d]", group, k),
			fmt.Sprintf("%%0 = rmsnorm @x, @w {eps=1e-05, group=%d} : io f32[T, %d]", group, k))
		m.setFloats("x", x...)
		run(t, m)
		want := make([]float64, t.n*k)
		for i := range want {
			mean := 0.0
			for j := range group {
				v := float64(x[i/group*group+j])
				mean += v * v / float64(group)
			}
			want[i] = float64(x[i]) / math.Sqrt(mean+1e-5) * float64(w[i%group])
		}
		near(t, "rmsnorm", m.Floats(m.last()), want, 1e-6)
	})
}

func TestLinear(t *testing.T) {
	checkOp(t, func(t *opTest) {
		n, k := t.pick("outputs", 1, 70), t.pick("k", 1, 200)
		w, b, x := t.floats(n*k), t.floats(n), t.floats(t.n*k)
		m := t.machine(1, 1, source{"w": f32Bytes(w), "b": f32Bytes(b)},
			fmt.Sprintf("weight @w : f32[%d, %d]\nweight @b : f32[%d]\nstep @x : f32[T, %d]", n, k, n, k),
			fmt.Sprintf("%%0 = linear @x, @w : io f32[T, %d]\n%%1 = linear @x, @w, @b : io f32[T, %d]", n, n))
		m.setFloats("x", x...)
		run(t, m)
		want := make([]float64, t.n*n)
		for i := range want {
			for j := range k {
				want[i] += float64(x[i/n*k+j]) * float64(w[i%n*k+j])
			}
		}
		near(t, "linear", m.Floats(m.prog.Funcs[0].Ops()[0].Result), want, 2e-5)
		for i := range want {
			want[i] += float64(b[i%n])
		}
		near(t, "with bias", m.Floats(m.last()), want, 2e-5)
	})
}

func TestElementwise(t *testing.T) {
	gelu := func(x float64) float64 {
		return 0.5 * x * (1 + math.Tanh(0.7978845608028654*(x+0.044715*x*x*x)))
	}
	silu := func(x float64) float64 { return x / (1 + math.Exp(-x)) }
	for _, c := range []struct {
		op, attrs string
		f         func(a, b float64) float64
	}{
		{"add", "", func(a, b float64) float64 { return a + b }},
		{"glu", `{act="silu"}`, func(a, b float64) float64 { return silu(a) * b }},
		{"glu", `{act="gelu"}`, func(a, b float64) float64 { return gelu(a) * b }},
	} {
		t.Run(c.op+c.attrs, func(t *testing.T) {
			checkOp(t, func(t *opTest) {
				k := t.pick("width", 1, 50)
				m := t.machine(1, 1, nil, fmt.Sprintf("step @a : f32[T, %d]\nstep @b : f32[T, %d]", k, k),
					fmt.Sprintf("%%0 = %s @a, @b %s : io f32[T, %d]", c.op, c.attrs, k))
				a, b := t.floats(t.n*k), t.floats(t.n*k)
				m.setFloats("a", a...)
				m.setFloats("b", b...)
				run(t, m)
				want := make([]float64, t.n*k)
				for i := range want {
					want[i] = c.f(float64(a[i]), float64(b[i]))
				}
				near(t, c.op, m.Floats(m.last()), want, 1e-6)
			})
		})
	}
}

func TestRope(t *testing.T) {
	checkOp(t, func(t *opTest) {
		const ctx = 40
		half, heads := t.pick("half", 1, 6), t.pick("heads", 1, 3)
		dim := 2*half + t.pick("pass", 0, 3)
		k, freqs := dim*heads, make([]float64, half)
		text := ""
		for i := range freqs {
			freqs[i] = math.Pow(100, -float64(i)/float64(half))
			text += fmt.Sprintf(", %.17e", freqs[i])
		}
		kind := rapid.SampledFrom([]string{"norm", "neox"}).Draw(t.T, "kind")
		m := t.machine(ctx, 1, nil, fmt.Sprintf("table @t {kind=\"rope\", freqs=[%s], mscale=1.25} : f32[L, %d]\nstep @x : f32[T, %d]\nstep @pos : i32[T]", text[2:], 2*half, k),
			fmt.Sprintf("%%0 = rope @x, @pos, @t {kind=\"%s\", head_dim=%d, n_rot=%d} : io f32[T, %d]", kind, dim, 2*half, k))
		x, pos := t.floats(t.n*k), t.ints(t.n, ctx)
		m.setFloats("x", x...)
		m.setInts("pos", pos...)
		run(t, m)
		want := make([]float64, t.n*k)
		for i := range want {
			want[i] = float64(x[i])
		}
		for h := 0; h < t.n*k; h += dim {
			for i := range half {
				a, b := h+i, h+i+half
				if kind == "norm" {
					a, b = h+2*i, h+2*i+1
				}
				sin, cos := math.Sincos(float64(pos[h/k]) * freqs[i])
				xa, xb := float64(x[a]), float64(x[b])
				want[a], want[b] = 1.25*(xa*cos-xb*sin), 1.25*(xa*sin+xb*cos)
			}
		}
		near(t, "rope", m.Floats(m.last()), want, 1e-6)
	})
}

func TestAttention(t *testing.T) {
	checkOp(t, func(t *opTest) {
		ctx, slots := t.pick("ctx", 1, 30), t.pick("slots", 1, 3)
		dim, kv, group := t.pick("dim", 1, 20), t.pick("kv", 1, 3), t.pick("group", 1, 3)
		splits, block, together := t.pick("splits", 1, 5), t.pick("block", 1, 8), t.pick("together", 1, 3)
		heads, row := kv*group, kv*dim
		dtype := rapid.SampledFrom([]string{"f16", "f32"}).Draw(t.T, "dtype")
		shape := fmt.Sprintf("{head_dim=%d, heads=%d, kv_heads=%d, scale=0.3", dim, heads, kv)
		m := t.machine(ctx, slots, nil, fmt.Sprintf(`
kv @k : %s[%d, L, %d]
kv @v : %s[%d, L, %d]
step @q : f32[T, %d]
step @x : f32[T, %d]
step @pos : i32[T]
step @slot : i32[T]`, dtype, slots, row, dtype, slots, row, heads*dim, row), fmt.Sprintf(`
kvwrite @x, @pos, @slot, @k
%%0 = attention @q, @k, @v, @pos, @slot %s} : io f32[T, %d]
%%1 = attention_split @q, @k, @v, @pos, @slot %s, splits=%d, block=%d, rows=%d} : io f32[T, %d]
%%2 = attention_merge %%1 {head_dim=%d, heads=%d, splits=%d} : io f32[T, %d]`,
			shape, heads*dim, shape, splits, block, together, heads*splits*(dim+2), dim, heads, splits, heads*dim))
		q, x, k, v := t.floats(t.n*heads*dim), t.floats(t.n*row), t.floats(slots*ctx*row), t.floats(slots*ctx*row)
		pos, slot := t.ints(t.n, ctx), t.ints(t.n, slots)
		m.setFloats("q", q...)
		m.setFloats("x", x...)
		m.setFloats("k", k...)
		m.setFloats("v", v...)
		m.setInts("pos", pos...)
		m.setInts("slot", slot...)
		eval(t, m)

		for r := range t.n {
			at := (int(slot[r])*ctx + int(pos[r])) * row
			for i, f := range x[r*row:][:row] {
				if dtype == "f16" {
					f = gguf.F16ToF32(gguf.F32ToF16(f))
				}
				k[at+i] = f
			}
		}
		want := make([]float64, t.n*heads*dim)
		for i := range t.n * heads {
			r, h := i/heads, i%heads
			at := func(cache []float32, p, j int) float64 {
				return float64(cache[(int(slot[r])*ctx+p)*row+h/group*dim+j])
			}
			sum := 0.0
			for p := range int(pos[r]) + 1 {
				score := 0.0
				for j := range dim {
					score += 0.3 * float64(q[i*dim+j]) * at(k, p, j)
				}
				e := math.Exp(score)
				sum += e
				for j := range dim {
					want[i*dim+j] += e * at(v, p, j)
				}
			}
			for j := range dim {
				want[i*dim+j] /= sum
			}
		}
		ops := m.prog.Funcs[0].Ops()
		whole, parts, merged := m.Floats(ops[1].Result), m.Floats(ops[2].Result), m.Floats(ops[3].Result)
		near(t, "k", m.Floats(m.prog.Global("k")), widen(k), 0)
		near(t, "attention", whole, want, 3e-6)
		near(t, "split and merged", merged, widen(whole[:len(want)]), 1e-6)
		for i := range t.n * heads {
			r := i / heads
			n, step := int(pos[r])+1, block
			first := r - r%together
			for step*splits <= int(slices.Max(pos[first:min(t.n, first+together)])) {
				step += block
			}
			for s := range splits {
				if top := parts[(i*splits+s)*(dim+2)+dim]; (top == -1e30) != (s*step >= n) {
					t.Fatalf("%d positions in %d splits of %d: split %d has maximum %g", n, splits, block, s, top)
				}
			}
		}
	})
}

func widen(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}

func TestLastRowAndArgmax(t *testing.T) {
	checkOp(t, func(t *opTest) {
		k := t.pick("width", 1, 9)
		splits := t.pick("splits", 1, 12)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]", k),
			fmt.Sprintf("%%0 = last_row @x, @n : io f32[1, %d]\n%%1 = argmax_split @x {splits=%d} : f32[T, %d]\n%%2 = argmax_merge %%1 {splits=%d} : io i32[T]\n%%3 = argmax @x : io i32[T]",
				k, splits, 2*splits, splits))
		x := make([]float32, t.n*k)
		for i := range x {
			x[i] = float32(t.rand.IntN(4)) - 2
		}
		m.setFloats("x", x...)
		run(t, m)
		near(t, "last_row", m.Floats(m.prog.Funcs[0].Ops()[0].Result), widen(x[(t.n-1)*k:]), 0)
		merged := m.Ints(m.prog.Funcs[0].Ops()[2].Result)
		for r, got := range m.Ints(m.last())[:t.n] {
			if merged[r] != got {
				t.Fatalf("argmax %d of %v, its splits choose %d", got, x[r*k:][:k], merged[r])
			}
			for i, v := range x[r*k:][:k] {
				if best := x[r*k+int(got)]; v > best || v == best && i < int(got) {
					t.Fatalf("argmax %d of %v", got, x[r*k:][:k])
				}
			}
		}
	})
}

// TestParts: what runs of a step with parts may look like, and what dead rows leave alone.
func TestParts(t *testing.T) {
	p, err := ir.Parse(ir.Print(&ir.Program{Ctx: 32, Slots: 3}) + `step @x : f32[T, 4]
kv @k : f32[3, L, 4]
step @pos : i32[T]
step @slot : i32[T]
step @n : i32[1]
step @head_rows : i32[2]
func "f" rows=8 sequences=many run=8 class=prompt part=4 {
  kvwrite @x, @pos, @slot, @k
  %0 = take_rows @x, @head_rows {count=2} : io f32[2, 4]
}
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		pos, slot []int32
		heads     [2]int32
		problem   string
	}{
		{[]int32{8, 9, 9, 9, 0, 1}, []int32{2, 2, -1, -1, 0, 0}, [2]int32{1, 5}, ""},
		{[]int32{8, 9, 10, 11, 12, 13}, []int32{2, 2, 2, 2, 2, 2}, [2]int32{5, 5}, ""},
		{[]int32{8, 9, 9, 9, 0, 1}, []int32{2, 2, -1, -1, 0, 0}, [2]int32{1, 6}, "rows 6 is not in [0, 6)"},
		{[]int32{8, 9, 0, 1}, []int32{2, 2, 0, 0}, [2]int32{}, "row 2: slot 0 begins within a part"},
		{[]int32{8, 9, 9, 9, 10}, []int32{2, 2, -1, -1, 2}, [2]int32{}, "row 4: position 10 does not follow 9"},
		{[]int32{8, 9, 9, 9}, []int32{2, 2, -1, -1}, [2]int32{}, "row 3: dead where"},
		{[]int32{8, 9, 8, 9, 0}, []int32{2, 2, -1, -1, 0}, [2]int32{}, "row 2: position 8 of a dead row behind 9"},
		{[]int32{8, 9, 11}, []int32{2, 2, 2}, [2]int32{}, "row 2: position 11 does not follow 9"},
	} {
		m := machine(t, p, source{}, Options{})
		x := make([]float32, 4*len(c.pos))
		for i := range x {
			x[i] = float32(i + 1)
		}
		m.setFloats("x", x...)
		m.setInts("pos", c.pos...)
		m.setInts("slot", c.slot...)
		m.setInts("head_rows", c.heads[:]...)
		m.setInts("n", int32(len(c.pos)))
		err := m.Run(t.Context(), p.Funcs[0])
		if c.problem != "" {
			if err == nil || !strings.Contains(err.Error(), c.problem) {
				t.Errorf("%d of %d: %v, want %q", c.pos, c.slot, err, c.problem)
			}
			continue
		}
		if err != nil {
			t.Errorf("%d of %d: %v", c.pos, c.slot, err)
			continue
		}
		want := make([]float32, 3*32*4)
		for r, slot := range c.slot {
			if slot != ir.NoSlot {
				copy(want[(int(slot)*32+int(c.pos[r]))*4:][:4], x[4*r:])
			}
		}
		y := m.Floats(p.Funcs[0].Ops()[1].Result)
		if k := m.Floats(p.Global("k")); !slices.Equal(k, want) || y[0] != x[4*c.heads[0]] || y[4] != x[4*c.heads[1]] {
			t.Errorf("%d of %d: heads %v, the cache is %v, want %v", c.pos, c.slot, y, k, want)
		}
	}
}

func TestAdvance(t *testing.T) {
	checkOp(t, func(t *opTest) {
		ring, one := t.pick("ring", 1, 5), t.pick("one", 0, 1) == 1
		dim := "T"
		if one {
			dim = "1"
		}
		m := t.machine(64, 4, nil, fmt.Sprintf(`
step @next : i32[%s]
step @token : i32[T]
step @pos : i32[T]
step @slot : i32[T]
step @out : i32[%d]
step @count : i32[1]`, dim, ring), "advance @next, @token, @pos, @slot, @n, @out, @count")
		rows := t.n
		if one {
			rows = 1
		}
		next, pos, slot, count := t.ints(rows, 99), t.ints(t.n, 64), t.ints(t.n, 4), t.ints(1, 1000)
		m.setInts("next", next...)
		m.setInts("pos", pos...)
		m.setInts("slot", slot...)
		m.setInts("count", count...)
		eval(t, m)
		get := func(name string, i int) int32 { return m.Ints(m.prog.Global(name))[i] }
		for r := range rows {
			source := r
			if one {
				source = t.n - 1
			}
			if get("token", r) != next[r] || get("pos", r) != pos[source]+1 || get("slot", r) != slot[source] {
				t.Fatalf("row %d: token %d, pos %d, slot %d", r, get("token", r), get("pos", r), get("slot", r))
			}
			if at := (int(count[0]) + r) % ring; r+ring >= rows && get("out", at) != next[r] {
				t.Fatalf("out[%d] is %d, want %d", at, get("out", at), next[r])
			}
		}
		if get("n", 0) != int32(rows) || get("count", 0) != count[0]+int32(rows) {
			t.Fatalf("n %d, count %d", get("n", 0), get("count", 0))
		}
	})
}

// BenchmarkLinear reports multiply-adds a second for one row and for many.
func BenchmarkLinear(b *testing.B) {
	const n, k = 1024, 512
	for _, rows := range []int{1, 64} {
		for _, keep := range []int64{0, 1 << 30} {
			b.Run(fmt.Sprintf("rows=%d/cache=%d", rows, keep), func(b *testing.B) {
				p := parse(b, 1, 1, rows, fmt.Sprintf("weight @w : q8_0[%d, %d]\nstep @x : f32[T, %d]", n, k, k),
					fmt.Sprintf("%%0 = linear @x, @w : io f32[T, %d]", n))
				m := machine(b, p, source{"w": make([]byte, n*k/32*34)}, Options{CacheBytes: keep})
				run(b, m)
				for b.Loop() {
					run(b, m)
				}
				b.ReportMetric(float64(n*k*rows)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GMAC/s")
			})
		}
	}
}
