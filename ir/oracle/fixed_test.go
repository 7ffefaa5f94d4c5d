package oracle

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// packTest is a random case of pack12, with what it has packed.
type packTest struct {
	*opTest
	k, n    int // elements of a row; rows that are packed
	x, gain []float32
	program *Machine
	packed  ir.Packed
	words   []int32
}

// checkPack packs random rows, squares them, rounds them and unpacks them with and without squares.
func checkPack(t *testing.T, f func(t *packTest)) {
	checkOp(t, func(t *opTest) {
		p := &packTest{opTest: t, k: 256 * t.pick("blocks", 1, 3)}
		columns := []int{16, 32, 64}[t.pick("columns", 0, 2)]
		t.rows = t.pick("many", 1, 70)
		t.n = t.pick("step", 1, t.rows)
		rows := (t.rows + columns - 1) / columns * columns
		height, whole := "T", "" // of the rows of the step, or of as many in every step
		if p.n = t.n; t.pick("whole", 0, 1) == 1 {
			p.n, height, whole = rows, fmt.Sprint(rows), ", whole=1"
		}
		var all []string
		for _, near := range "na" {
			for _, odd := range "-o" {
				for _, totals := range "-wh" {
					all = append(all, string([]rune{near, odd, totals}))
				}
			}
		}
		lanes := rapid.Permutation(all).Draw(t.T, "lanes")[:t.pick("layouts", 1, 4)]
		attrs := fmt.Sprintf("rows=%d, columns=%d, lanes=%q", rows, columns, strings.Join(lanes, " "))
		typ := fmt.Sprintf("i32[%d, %d]", len(lanes)*rows/columns*p.k/256, 148*columns)
		p.gain = make([]float32, p.k)
		for i := range p.gain {
			p.gain[i] = 1
		}
		gain := ""
		if t.pick("gain", 0, 1) == 1 {
			gain, p.gain = ", @gain", t.floats(p.k)
		}
		p.program = t.machine(8, 1, source{"gain": f32Bytes(p.gain)}, fmt.Sprintf("weight @gain : f32[%d]\nstep @x : f32[%s, %[1]d]\nstep @y : f32[%[2]s, %[1]d]", p.k, height), strings.NewReplacer(
			"ATTRS", attrs, "WHOLE", whole, "HEIGHT", height, "TYPE", typ, "GAIN", gain, "K", fmt.Sprint(p.k), "SUMS", fmt.Sprint(p.k/128)).Replace(`
%0 = squares @x : io f32[HEIGHT, SUMS]
%1 = pack12 @xGAIN {ATTRS} : io TYPE
%2 = unpack12 %1 {ATTRSWHOLE} : io f32[HEIGHT, K]
%3 = fixed12 @y : io f32[HEIGHT, K]`))
		p.x = t.floats(p.n * p.k)
		clear(p.x[:256])      // zeros stay zeros
		p.x[p.n*p.k-1] = 1e-8 // and what is nearly zero becomes one
		p.program.setFloats("x", p.x...)
		y := make([]float32, len(p.x))
		for i, v := range p.x {
			y[i] = v * p.gain[i%p.k]
		}
		p.program.setFloats("y", y...)
		ops := p.program.prog.Funcs[0].Ops()
		p.words = p.program.Ints(ops[1].Result)
		for i := range p.words {
			p.words[i] = 0x7fed7fed // what was there before
		}
		run(t, p.program)
		var err error
		if p.packed, err = ir.PackedOf(ops[1]); err != nil {
			t.Fatal(err)
		}
		f(p)
	})
}

func (t *packTest) result(op int) []float32 {
	return t.program.Floats(t.program.prog.Funcs[0].Ops()[op].Result)
}

// TestUnpack12 holds rows that were packed against op fixed12, and their squares against their elements'.
func TestUnpack12(t *testing.T) {
	checkPack(t, func(t *packTest) {
		got, want := t.result(2), t.result(3)
		for r := range t.n {
			x, sum := t.x[r*t.k:(r+1)*t.k], 0.0
			for i, v := range x {
				sum += float64(v) * float64(v)
				if (i+1)%128 > 0 {
					continue
				}
				sums := t.result(0)[r*t.k/128:][:i/128+1]
				total := 0.0
				for _, s := range sums {
					total += float64(s)
				}
				if math.Abs(total-sum) > 1e-6*sum {
					t.Fatalf("row %d: squares of %d elements are %g, want %g", r, i+1, total, sum)
				}
			}
			for i := range x {
				at := r*t.k + i
				scale := float64(math.Float32frombits(uint32(t.words[t.packed.Scales(0, r, i/256)[3]])))
				g, w := float64(got[at]), float64(want[at])
				if off := math.Abs(g - w); off > 1e-6*math.Abs(w) { // the other side of a tie
					n := float64(t.x[at]*t.gain[i]) / scale
					if tie := math.Abs(n - math.Floor(n) - 0.5); off > 1.001*scale || tie > 1e-3 {
						t.Fatalf("row %d, element %d: %g, fixed12 has %g, steps are %g", r, i, g, w, scale)
					}
				}
			}
		}
	})
}

// TestPack12 holds every word against the op's description.
func TestPack12(t *testing.T) {
	checkPack(t, func(t *packTest) {
		p := t.packed
		for i, w := range t.words {
			if p.Row(i) >= t.n && w != 0 {
				t.Fatalf("word %d, of row %d of %d, is %#x", i, p.Row(i), t.n, w)
			}
		}
		for r := range t.n {
			for block := range p.Blocks {
				var n [256]float32
				most := float32(0)
				for i := range n {
					n[i] = t.x[(r*p.Blocks+block)*256+i] * t.gain[block*256+i]
					most = max(most, n[i], -n[i])
				}
				inverse := float32(0)
				if most > 1e-30 {
					inverse = 2047 / most
				}
				for i := range n {
					n[i] = float32(math.RoundToEven(float64(n[i]) * float64(inverse)))
				}
				for l, lanes := range p.Lanes {
					what := fmt.Sprintf("layout %d, %+v, row %d, block %d", l, lanes, r, block)
					first := (l*(p.Rows/p.Columns)+r/p.Columns)*p.Blocks + block
					words := t.words[first*148*p.Columns:][:148*p.Columns]
					for c := r % p.Columns / 4 * 4; c <= r%p.Columns|3; c++ { // all that r shares a vector with
						if scale := math.Float32frombits(uint32(words[(36*p.Columns+c)*4+r%4])); scale != most*float32(1.0/2047) {
							t.Fatalf("%s: scale %g in column %d, the largest is %g", what, scale, c, most)
						}
					}
					var totals [16]float32
					for e, v := range n {
						totals[e/16] += v
						run, rest := e/32, e%32
						h, upper := rest%2, rest/2%2
						i, q := rest/4%2, rest/8
						if lanes.Apart {
							i, q = rest/16, []int{0, 2, 1, 3}[rest/4%4]
						}
						if lanes.Odd && run%2 == 1 {
							v /= 16
						}
						at := ((4*run+2*i+h)*p.Columns+r%p.Columns)*4 + q
						if c := uint16(words[at] >> (16 * upper)); gguf.F16ToF32(c) != v || c == 1<<15 {
							t.Fatalf("%s: element %d is %#x, want %g", what, e, c, v)
						}
					}
					if lanes.Totals == 8 {
						for i := range 8 {
							totals[i] = totals[2*i] + totals[2*i+1]
						}
					}
					for i := range 16 {
						want := totals[i]
						if i >= lanes.Totals {
							want = 0
						}
						digit := func(d int) float32 {
							return gguf.F16ToF32(uint16(words[((32+2*d+i/8)*p.Columns+r%p.Columns)*4+i/2%4] >> (16 * (i % 2))))
						}
						if upper := float32(math.RoundToEven(float64(want) / 64)); digit(0) != upper || digit(1) != want-64*upper {
							t.Fatalf("%s: total %d is 64*%g + %g, want %g", what, i, digit(0), digit(1), want)
						}
					}
				}
			}
		}
	})
}

// TestPack12OfFewer: a step of more rows than are packed is refused.
func TestPack12OfFewer(t *testing.T) {
	for _, body := range []string{
		`%0 = pack12 @x {rows=16, columns=16, lanes="n--"} : io i32[1, 2368]`,
		`%0 = unpack12 @packed {rows=16, columns=16, lanes="n--"} : io f32[T, 256]`,
	} {
		m := machine(t, parse(t, 8, 1, 17, "step @x : f32[T, 256]\nstep @packed : i32[1, 2368]", body), nil, Options{})
		if err := m.Run(t.Context(), m.prog.Funcs[0]); err == nil || !strings.Contains(err.Error(), "17 rows in tiles of 16") {
			t.Errorf("%s: %v", body, err)
		}
	}
}
