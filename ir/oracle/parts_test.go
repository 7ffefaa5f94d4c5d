package oracle

import (
	"fmt"
	"math"
	"testing"
)

// TestLinearParts holds products of parts of rows, and their sums, against the formulas: the sums to the bit, as long
// as nothing scales them.
func TestLinearParts(t *testing.T) {
	checkOp(t, func(t *opTest) {
		n, k, each := t.pick("outputs", 1, 20), 128*t.pick("runs", 1, 9), 256*t.pick("each", 1, 3)
		count := (k + each - 1) / each
		w, b, x, squares := t.floats(n*k), t.floats(n), t.floats(t.n*k), t.floats(t.n*k/128)
		for i, s := range squares {
			squares[i] = s * s
		}
		m := t.machine(1, 1, source{"w": f32Bytes(w), "b": f32Bytes(b)},
			fmt.Sprintf("weight @w : f32[%d, %d]\nweight @b : f32[%[1]d]\nstep @x : f32[T, %[2]d]\nstep @s : f32[T, %[3]d]", n, k, k/128),
			fmt.Sprintf(`
%%0 = linear_parts @x, @w {each=%d} : io f32[T, %d]
%%1 = add_parts %%0 {count=%[3]d} : io f32[T, %[4]d]
%%2 = add_parts %%0, @b {count=%[3]d} : io f32[T, %[4]d]
%%3 = add_parts %%0, @s {count=%[3]d, eps=0.5} : io f32[T, %[4]d]
%%4 = add_parts %%0, @s, @b {count=%[3]d, eps=0.5} : io f32[T, %[4]d]`, each, count*n, count, n))
		m.setFloats("x", x...)
		m.setFloats("s", squares...)
		run(t, m)
		result := func(op int) []float32 { return m.Floats(m.prog.Funcs[0].Ops()[op].Result) }
		want := make([]float64, t.n*count*n)
		for i := range want {
			r, part, row := i/n/count, i/n%count, i%n
			for j := part * each; j < min((part+1)*each, k); j++ {
				want[i] += float64(x[r*k+j]) * float64(w[row*k+j])
			}
		}
		near(t, "parts", result(0), want, 1e-4)
		for r := range t.n {
			mean := 0.0
			for _, s := range squares[r*k/128:][:k/128] {
				mean += float64(s) / float64(k)
			}
			for i := range n {
				at, sum := r*n+i, float32(0)
				for part := range count {
					sum += result(0)[(r*count+part)*n+i]
				}
				scaled := float64(sum) / math.Sqrt(mean+0.5)
				if have := result(1)[at]; have != sum {
					t.Fatalf("row %d, element %d: the sum is %g, want %g", r, i, have, sum)
				}
				if have := result(2)[at]; have != sum+b[i] {
					t.Fatalf("row %d, element %d: with bias %g, want %g", r, i, have, sum+b[i])
				}
				near(t, "behind the norm", result(3)[at:], []float64{scaled}, 1e-5)
				near(t, "with bias behind the norm", result(4)[at:], []float64{scaled + float64(b[i])}, 1e-5)
			}
		}
	})
}
