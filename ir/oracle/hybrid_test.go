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
)

func TestSlices(t *testing.T) {
	checkOp(t, func(t *opTest) {
		dim, parts, heads := t.pick("dim", 1, 9), t.pick("parts", 1, 4), t.pick("heads", 1, 4)
		k := dim * parts * heads
		part, first := t.pick("part", 0, parts-1), t.pick("first", 0, k-1)
		n := t.pick("width", 1, k-first)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]", k), fmt.Sprintf(`
%%0 = slice @x {first=%d, width=%d} : io f32[T, %d]
%%1 = head_slice @x {head_dim=%d, parts=%d, part=%d} : io f32[T, %d]`, first, n, n, dim, parts, part, dim*heads))
		x := t.floats(t.n * k)
		m.setFloats("x", x...)
		run(t, m)
		var window, split []float64
		for r := range t.n {
			row := widen(x[r*k:][:k])
			window = append(window, row[first:first+n]...)
			for h := range heads {
				split = append(split, row[(h*parts+part)*dim:][:dim]...)
			}
		}
		near(t, "slice", m.Floats(m.prog.Funcs[0].Ops()[0].Result), window, 0)
		near(t, "head_slice", m.Floats(m.last()), split, 0)
	})
}

// TestHeadParts cuts heads and joins parts of them, and numbers them.
func TestHeadParts(t *testing.T) {
	checkOp(t, func(t *opTest) {
		stride, heads, more := t.pick("stride", 1, 9), t.pick("heads", 1, 4), t.pick("more", 1, 5)
		first := t.pick("first", 0, stride-1)
		n := t.pick("width", 1, stride-first)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @pos : i32[T]\nstep @x : f32[T, %d]\nstep @b : f32[T, %d]", stride*heads, more*heads), fmt.Sprintf(`
%%0 = head_cut @x {stride=%d, first=%d, width=%d} : f32[T, %d]
%%2 = head_ids @pos {heads=%d} : io i32[T, %d]
%%1 = head_join %%0, @b {heads=%d} : io f32[T, %d]`, stride, first, n, n*heads, heads, heads, heads, (n+more)*heads))
		x, b := t.floats(t.n*stride*heads), t.floats(t.n*more*heads)
		m.setFloats("x", x...)
		m.setFloats("b", b...)
		run(t, m)
		var want []float64
		ids := m.Ints(m.prog.Funcs[0].Ops()[1].Result)
		for h := range t.n * heads {
			want = append(want, widen(x[h*stride+first:][:n])...)
			want = append(want, widen(b[h*more:][:more])...)
			if int(ids[h]) != h%heads {
				t.Fatalf("head %d of a row has id %d", h%heads, ids[h])
			}
		}
		near(t, "head_join", m.Floats(m.last()), want, 0)
	})
}

func TestGates(t *testing.T) {
	checkOp(t, func(t *opTest) {
		k := t.pick("width", 1, 40)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]\nstep @g : f32[T, %d]", k, k),
			fmt.Sprintf("%%0 = gate @x, @g : io f32[T, %d]\n%%1 = sigmoid @g : io f32[T, %d]", k, k))
		x, g := t.floats(t.n*k), t.floats(t.n*k)
		g[0] = -100
		m.setFloats("x", x...)
		m.setFloats("g", g...)
		run(t, m)
		gated, s := make([]float64, len(x)), make([]float64, len(x))
		for i := range x {
			s[i] = 1 / (1 + math.Exp(-float64(g[i])))
			gated[i] = float64(x[i]) * s[i]
		}
		near(t, "gate", m.Floats(m.prog.Funcs[0].Ops()[0].Result), gated, 1e-6)
		near(t, "sigmoid", m.Floats(m.last()), s, 1e-6)
	})
}

func TestNormsOfHeads(t *testing.T) {
	checkOp(t, func(t *opTest) {
		group, heads := t.pick("group", 1, 40), t.pick("heads", 1, 5)
		k := group * heads
		w, x, z := t.floats(group), t.floats(t.n*k), t.floats(t.n*k)
		for i := range group {
			x[i] *= 1e-4 // the norm of the first head is below eps
		}
		m := t.machine(1, 1, source{"w": f32Bytes(w)}, fmt.Sprintf("weight @w : f32[%d]\nstep @x : f32[T, %d]\nstep @z : f32[T, %d]", group, k, k), fmt.Sprintf(`
%%0 = l2norm @x {eps=0.01, group=%d} : io f32[T, %d]
%%1 = gated_rmsnorm @x, @w, @z {eps=0.01, group=%d} : io f32[T, %d]`, group, k, group, k))
		m.setFloats("x", x...)
		m.setFloats("z", z...)
		run(t, m)
		unit, gated := make([]float64, t.n*k), make([]float64, t.n*k)
		for i := range x {
			sum := 0.0
			for _, v := range x[i/group*group:][:group] {
				sum += float64(v) * float64(v)
			}
			unit[i] = float64(x[i]) / math.Sqrt(sum+0.01)
			silu := float64(z[i]) / (1 + math.Exp(-float64(z[i])))
			gated[i] = float64(x[i]) / math.Sqrt(sum/float64(group)+0.01) * float64(w[i%group]) * silu
		}
		near(t, "l2norm", m.Floats(m.prog.Funcs[0].Ops()[0].Result), unit, 1e-6)
		near(t, "gated_rmsnorm", m.Floats(m.last()), gated, 1e-6)
	})
}

func TestDecay(t *testing.T) {
	checkOp(t, func(t *opTest) {
		heads := t.pick("heads", 1, 9)
		a, dt, rate := t.floats(t.n*heads), t.floats(heads), t.floats(heads)
		a[0] = rapid.SampledFrom([]float32{-90, 11, 19.9, 20.1, 500}).Draw(t.T, "a")
		m := t.machine(1, 1, source{"dt": f32Bytes(dt), "rate": f32Bytes(rate)},
			fmt.Sprintf("weight @dt : f32[%d]\nweight @rate : f32[%d]\nstep @a : f32[T, %d]", heads, heads, heads),
			fmt.Sprintf("%%0 = decay @a, @dt, @rate : io f32[T, %d]", heads))
		m.setFloats("a", a...)
		run(t, m)
		want := make([]float64, len(a))
		for i := range a {
			x := float64(a[i]) + float64(dt[i%heads])
			if x < 100 { // above, ln(1 + exp(x)) is x
				x = math.Log(1 + math.Exp(x))
			}
			want[i] = x * float64(rate[i%heads])
		}
		near(t, "decay", m.Floats(m.last()), want, 1e-6)
	})
}

// history is what the inputs were at every position of a slot's sequence.
type history map[string][][]float32

// sequences runs steps in which random slots have a run of rows each, and calls
// check after each one. Now and then a slot begins anew, at position 0.
func (t *opTest) sequences(m *Machine, slots int, inputs map[string]func() []float32, check func(of []history, pos, slot []int32)) {
	of := make([]history, slots)
	for s := range of {
		of[s] = history{}
	}
	next := make([]int32, slots)
	for range t.pick("steps", 1, 8) {
		var pos, slot []int32
		data := map[string][]float32{}
		for _, s := range t.rand.Perm(slots) {
			if t.rand.IntN(4) == 0 {
				next[s], of[s] = 0, history{}
			}
			for range t.rand.IntN(t.rows - len(pos) + 1) {
				for name, draw := range inputs {
					x := draw()
					data[name] = append(data[name], x...)
					of[s][name] = append(of[s][name], x)
				}
				pos, slot = append(pos, next[s]), append(slot, int32(s))
				next[s]++
			}
		}
		if len(pos) == 0 {
			continue
		}
		for name := range inputs {
			m.setFloats(name, data[name]...)
		}
		m.setInts("pos", pos...)
		m.setInts("slot", slot...)
		m.setInts("n", int32(len(pos)))
		run(t, m)
		check(of, pos, slot)
	}
}

func TestConv1D(t *testing.T) {
	checkOp(t, func(t *opTest) {
		t.rows = t.pick("rows of a step", 1, 12)
		n, taps, slots := t.pick("width", 1, 9), t.pick("taps", 1, 4), t.pick("slots", 1, 3)
		ring := taps + t.pick("more ring", 0, 5)
		w, bias := t.floats(n*taps), t.floats(n)
		m := t.machine(1000, slots, source{"w": f32Bytes(w), "bias": f32Bytes(bias)}, fmt.Sprintf(`
weight @w : f32[%d, %d]
weight @bias : f32[%d]
state @ring : f32[%d, %d, %d]
step @x : f32[T, %d]
step @pos : i32[T]
step @slot : i32[T]`, n, taps, n, slots, ring, n, n), fmt.Sprintf(`
%%0 = conv1d @x, @w, @ring, @pos, @slot, @bias : io f32[T, %d]
conv_write @x, @ring, @pos, @slot`, n))
		t.sequences(m, slots, map[string]func() []float32{"x": func() []float32 { return t.floats(n) }}, func(of []history, pos, slot []int32) {
			want := make([]float64, len(pos)*n)
			for i := range want {
				x, p := of[slot[i/n]]["x"], int(pos[i/n])
				sum := float64(bias[i%n])
				for j := range taps {
					if at := p - (taps - 1) + j; at >= 0 {
						sum += float64(w[i%n*taps+j]) * float64(x[at][i%n])
					}
				}
				want[i] = sum / (1 + math.Exp(-sum))
			}
			near(t, "conv1d", m.Floats(m.prog.Funcs[0].Ops()[0].Result), want, 1e-6)
		})
	})
}

// deltaFormula is the gated delta rule of one value head in float64: one token
// turns the state s into the next one and gives o.
func deltaFormula(s [][]float64, q, k, v []float32, g, beta, scale float64) []float64 {
	o := make([]float64, len(v))
	for j := range v {
		u := 0.0
		for i := range k {
			s[j][i] *= math.Exp(g)
			u += s[j][i] * float64(k[i])
		}
		for i := range k {
			s[j][i] += beta * (float64(v[j]) - u) * float64(k[i])
			o[j] += scale * s[j][i] * float64(q[i])
		}
	}
	return o
}

func square(d int) [][]float64 {
	s := make([][]float64, d)
	for i := range s {
		s[i] = make([]float64, d)
	}
	return s
}

// deltaInputs draws what DeltaNet layers have: keys of length 1, decays and betas
// between 0 and 1.
func deltaInputs(r *rand.Rand, d, kHeads, vHeads int) map[string]func() []float32 {
	keys := func() []float32 {
		x := random(r, kHeads*d)
		for h := 0; h < len(x); h += d {
			norm := float32(math.Sqrt(sumOfSquares(x[h : h+d])))
			for i := range d {
				x[h+i] /= norm
			}
		}
		return x
	}
	perHead := func(f func() float64) func() []float32 {
		return func() []float32 {
			x := make([]float32, vHeads)
			for i := range x {
				x[i] = float32(f())
			}
			return x
		}
	}
	return map[string]func() []float32{
		"q": keys, "k": keys,
		"v":    func() []float32 { return random(r, vHeads*d) },
		"g":    perHead(func() float64 { return -2 * r.ExpFloat64() * r.Float64() }),
		"beta": perHead(r.Float64),
	}
}

// deltaProgram is the globals and the body of a program of one deltanet op.
func deltaProgram(slots, d, kHeads, vHeads int, headMap string) (globals, body string) {
	return fmt.Sprintf(`
state @s : f32[%d, %d, %d, %d]
step @q : f32[T, %d]
step @k : f32[T, %d]
step @v : f32[T, %d]
step @g : f32[T, %d]
step @beta : f32[T, %d]
step @pos : i32[T]
step @slot : i32[T]`, slots, vHeads, d, d, kHeads*d, kHeads*d, vHeads*d, vHeads, vHeads), fmt.Sprintf(
			"%%0 = deltanet @q, @k, @v, @g, @beta, @s, @pos, @slot {head_dim=%d, k_heads=%d, v_heads=%d, map=%q, scale=0.5} : io f32[T, %d]",
			d, kHeads, vHeads, headMap, vHeads*d)
}

// TestSSD compares with the sum over all positions that a row sees, which has no state: y[t] = sum over s <= t of
// exp(rate * sum of the time steps behind s) * C[t].B[s] * step[s] * x[s], plus skip * x[t].
func TestSSD(t *testing.T) {
	checkOp(t, func(t *opTest) {
		t.rows = t.pick("rows of a step", 1, 12)
		dim, n, groups, each, slots := t.pick("dim", 1, 9), t.pick("state", 1, 9), t.pick("groups", 1, 3), t.pick("heads of a group", 1, 3), t.pick("slots", 1, 3)
		heads := groups * each
		width := heads*dim + 2*groups*n
		bias, rate, skip := t.floats(heads), t.floats(heads), t.floats(heads)
		for h := range rate {
			rate[h] = -float32(math.Abs(float64(rate[h])))
		}
		m := t.machine(1000, slots, source{"bias": f32Bytes(bias), "rate": f32Bytes(rate), "skip": f32Bytes(skip)}, fmt.Sprintf(`
weight @bias : f32[%[1]d]
weight @rate : f32[%[1]d]
weight @skip : f32[%[1]d]
state @s : f32[%[2]d, %[1]d, %[3]d, %[4]d]
step @x : f32[T, %[5]d]
step @dt : f32[T, %[1]d]
step @pos : i32[T]
step @slot : i32[T]`, heads, slots, n, dim, width), fmt.Sprintf(
			"%%0 = ssd @x, @dt, @bias, @rate, @skip, @s, @pos, @slot {heads=%d, head_dim=%d, groups=%d, state_dim=%d} : io f32[T, %d]", heads, dim, groups, n, heads*dim))
		copy(m.Floats(m.prog.Global("s")), t.floats(slots*heads*n*dim)) // left by an earlier sequence
		inputs := map[string]func() []float32{"x": func() []float32 { return t.floats(width) }, "dt": func() []float32 { return t.floats(heads) }}
		t.sequences(m, slots, inputs, func(of []history, pos, slot []int32) {
			var want []float64
			for r := range pos {
				h, last := of[slot[r]], int(pos[r])
				for head := range heads {
					step := func(p int) float64 { return math.Log1p(math.Exp(float64(h["dt"][p][head]) + float64(bias[head]))) }
					group := heads*dim + head/each*n
					for i := range dim {
						y, behind := float64(skip[head]*h["x"][last][head*dim+i]), 0.0
						for p := last; p >= 0; p-- {
							product := 0.0
							for j := range n {
								product += float64(h["x"][last][group+groups*n+j]) * float64(h["x"][p][group+j])
							}
							y += math.Exp(behind*float64(rate[head])) * product * step(p) * float64(h["x"][p][head*dim+i])
							behind += step(p)
						}
						want = append(want, y)
					}
				}
			}
			near(t, "ssd", m.Floats(m.last()), want, 1e-5)
		})
	})
}

func TestDeltaNet(t *testing.T) {
	checkOp(t, func(t *opTest) {
		t.rows = t.pick("rows of a step", 1, 12)
		d, kHeads, group, slots := t.pick("dim", 1, 20), t.pick("k heads", 1, 3), t.pick("group", 1, 3), t.pick("slots", 1, 3)
		vHeads, headMap := kHeads*group, rapid.SampledFrom([]string{"mod", "div"}).Draw(t.T, "map")
		globals, body := deltaProgram(slots, d, kHeads, vHeads, headMap)
		m := t.machine(1000, slots, nil, globals, body)
		copy(m.Floats(m.prog.Global("s")), t.floats(slots*vHeads*d*d)) // left by an earlier sequence
		t.sequences(m, slots, deltaInputs(t.rand, d, kHeads, vHeads), func(of []history, pos, slot []int32) {
			var want []float64
			states := map[int][][]float64{}
			for r := range pos {
				h := of[slot[r]]
				for head := range vHeads {
					key := head % kHeads
					if headMap == "div" {
						key = head / group
					}
					// The outputs of all positions up to that of row r, from an empty state.
					s := square(d)
					var o []float64
					for p := range int(pos[r]) + 1 {
						o = deltaFormula(s, h["q"][p][key*d:][:d], h["k"][p][key*d:][:d], h["v"][p][head*d:][:d],
							float64(h["g"][p][head]), float64(h["beta"][p][head]), 0.5)
					}
					want = append(want, o...)
					states[int(slot[r])*vHeads+head] = s
				}
			}
			near(t, "deltanet", m.Floats(m.last()), want, 1e-5)
			for at, s := range states {
				for j, row := range s {
					near(t, "state", m.Floats(m.prog.Global("s"))[(at*d+j)*d:], row, 1e-5)
				}
			}
		})
	})
}

// deltaChunk is the gated delta rule of one value head over the tokens of one chunk
// at once, in float64 (Yang, Kautz, Hatamizadeh 2024, section 3.3): A = strictly
// lower part of beta K K^T D with D[t][s] = exp(G[t]-G[s]), G the running sum of g;
// (I + A) V' = beta (V - exp(G) K S^T); O = scale (exp(G) Q S^T + (Q K^T D) V').
func deltaChunk(s [][]float64, q, k, v [][]float32, g, beta []float64, scale float64) [][]float64 {
	n, d := len(q), len(s)
	sums, total := make([]float64, n), 0.0
	for t := range g {
		total += g[t]
		sums[t] = total
	}
	product := func(a, b []float32) (p float64) {
		for i := range a {
			p += float64(a[i]) * float64(b[i])
		}
		return p
	}
	onState := func(x []float32, j int) (p float64) {
		for i := range x {
			p += float64(x[i]) * s[j][i]
		}
		return p
	}
	fresh, out := make([][]float64, n), make([][]float64, n)
	for t := range n {
		fresh[t], out[t] = make([]float64, d), make([]float64, d)
		for j := range d {
			fresh[t][j] = beta[t] * (float64(v[t][j]) - math.Exp(sums[t])*onState(k[t], j))
			out[t][j] = scale * math.Exp(sums[t]) * onState(q[t], j)
		}
		for before := range t {
			a := beta[t] * product(k[t], k[before]) * math.Exp(sums[t]-sums[before])
			for j := range d {
				fresh[t][j] -= a * fresh[before][j]
			}
		}
		for upTo := range t + 1 {
			a := scale * product(q[t], k[upTo]) * math.Exp(sums[t]-sums[upTo])
			for j := range d {
				out[t][j] += a * fresh[upTo][j]
			}
		}
	}
	for j := range d {
		for i := range d {
			s[j][i] *= math.Exp(total)
			for t := range n {
				s[j][i] += math.Exp(total-sums[t]) * float64(k[t][i]) * fresh[t][j]
			}
		}
	}
	return out
}

func TestDeltaNetInChunksIsTheSame(t *testing.T) {
	const tokens, chunk, d = 2000, 64, 32
	globals, body := deltaProgram(1, d, 1, 1, "mod")
	m := machine(t, parse(t, tokens, 1, tokens, globals, body), nil, Options{})
	h := history{}
	for name, draw := range deltaInputs(rand.New(rand.NewPCG(5, 6)), d, 1, 1) {
		var all []float32
		for range tokens {
			x := draw()
			all = append(all, x...)
			h[name] = append(h[name], x)
		}
		m.setFloats(name, all...)
	}
	for p := range tokens {
		m.Ints(m.prog.Global("pos"))[p] = int32(p)
	}
	run(t, m)
	s := square(d)
	for at := 0; at < tokens; at += chunk {
		end := min(at+chunk, tokens)
		var g, beta []float64
		for p := at; p < end; p++ {
			g, beta = append(g, float64(h["g"][p][0])), append(beta, float64(h["beta"][p][0]))
		}
		for i, o := range deltaChunk(s, h["q"][at:end], h["k"][at:end], h["v"][at:end], g, beta, 0.5) {
			near(t, fmt.Sprintf("token %d", at+i), m.Floats(m.last())[(at+i)*d:], o, 1e-5)
		}
	}
	for j, row := range s {
		near(t, "state", m.Floats(m.prog.Global("s"))[j*d:], row, 1e-5)
	}
}

// TestDeltaNetDefers: steps that defer what they change of the state, and others between them that do not, give the
// bits of steps that never do, and leave the same state in the end.
func TestDeltaNetDefers(t *testing.T) {
	checkOp(t, func(t *opTest) {
		t.rows = t.pick("rows of a step", 1, 6)
		d, kHeads, group, slots := t.pick("dim", 2, 9), t.pick("k heads", 1, 2), t.pick("group", 1, 2), t.pick("slots", 1, 5)
		vHeads, log := kHeads*group, t.pick("log", 2, d)
		globals, body := deltaProgram(slots, d, kHeads, vHeads, "mod")
		plain := t.machine(1000, slots, nil, globals, body)
		globals = strings.Replace(globals, fmt.Sprintf("%d, %d]", d, d), fmt.Sprintf("%d, %d]", d+2*log, d), 1)
		settles := t.machine(1000, slots, nil, globals, body)
		defers := t.machine(1000, slots, nil, globals, strings.Replace(body, "scale=0.5", fmt.Sprintf("scale=0.5, defer=%d", log), 1))
		state := t.floats(slots * vHeads * (d + 2*log) * d) // left by an earlier sequence
		most := 0
		t.sequences(plain, slots, deltaInputs(t.rand, d, kHeads, vHeads), func(_ []history, pos, slot []int32) {
			m := defers
			if t.rand.IntN(4) == 0 {
				m = settles
			}
			for _, g := range m.prog.Globals {
				switch {
				case g.Name == "s":
					copy(m.Floats(g), state)
				case g.Type.DType == ir.I32:
					copy(m.Ints(g), plain.Ints(plain.prog.Global(g.Name)))
				default:
					copy(m.Floats(g), plain.Floats(plain.prog.Global(g.Name)))
				}
			}
			run(t, m)
			if got, want := m.Floats(m.last())[:len(pos)*vHeads*d], plain.Floats(plain.last()); !slices.Equal(got, want[:len(got)]) {
				t.Fatalf("positions %d of slots %d: other results", pos, slot)
			}
			copy(state, m.Floats(m.prog.Global("s")))
			for _, s := range slot {
				for h := range vHeads {
					at := int(s)*vHeads + h
					now := deltaStateOf(slices.Clone(state[at*(d+2*log)*d:][:(d+2*log)*d]), d, false)
					most = max(most, now.waiting())
					now.apply(now.base)
					if !slices.Equal(now.base, plain.Floats(plain.prog.Global("s"))[at*d*d:][:d*d]) {
						t.Fatalf("positions %d of slots %d: another state of head %d", pos, slot, h)
					}
				}
			}
		})
		if most >= log {
			t.Errorf("%d updates wait in a log of %d", most, log)
		}
	})
}

func TestStateIsReadAndWritten(t *testing.T) {
	globals, body := deltaProgram(2, 4, 1, 2, "mod")
	m := machine(t, parse(t, 8, 2, 1, globals, body), nil, Options{})
	f, state := m.prog.Funcs[0], m.prog.Global("s")
	data := f32Bytes(random(rand.New(rand.NewPCG(7, 8)), 2*2*4*4))
	if err := m.Write(f, state, data); err != nil {
		t.Fatal(err)
	}
	m.setInts("pos", 3)
	// All inputs are 0, so that nothing decays and nothing is added.
	run(t, m)
	if got, err := m.Read(f, state); err != nil || string(got) != string(data) {
		t.Errorf("a step that changes nothing: %v, or other bytes", err)
	}
	m.setInts("pos", 0)
	run(t, m)
	got, err := m.Read(f, state)
	if want := append(make([]byte, 2*4*4*4), data[2*4*4*4:]...); err != nil || string(got) != string(want) {
		t.Errorf("position 0 of slot 0: %v, or slot 0 is not cleared, or slot 1 is not left alone", err)
	}
}

// TestHadamard compares with Sylvester's matrices, made by doubling.
func TestHadamard(t *testing.T) {
	checkOp(t, func(t *opTest) {
		group, runs := 1<<t.pick("log", 0, 6), t.pick("runs", 1, 3)
		k := group * runs
		x := t.floats(t.n * k)
		m := t.machine(1, 1, nil, fmt.Sprintf("step @x : f32[T, %d]", k), fmt.Sprintf("%%0 = hadamard @x {group=%d} : io f32[T, %d]", group, k))
		m.setFloats("x", x...)
		run(t, m)
		want := make([]float64, len(x))
		for first := 0; first < len(x); first += group {
			y := want[first:][:group]
			for i, v := range x[first:][:group] {
				y[i] = float64(v)
			}
			for half := 1; half < group; half *= 2 {
				for i := range y {
					if i&half == 0 {
						y[i], y[i+half] = y[i]+y[i+half], y[i]-y[i+half]
					}
				}
			}
			for i := range y {
				y[i] /= math.Sqrt(float64(group))
			}
		}
		near(t, "hadamard", m.Floats(m.last()), want, 1e-6)
	})
}
