//go:build !windows

package llvm

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// wanderer makes kernels of nested ifs, loops and leaves at random.
type wanderer struct {
	r     *rand.Rand
	b     *kernel.Builder
	x, y  *kernel.Buffer
	vars  []*kernel.Var
	left  int // statements
	depth int
	next  int // words of y
}

// value returns a number that may differ by lane.
func (w *wanderer) value() kernel.Value {
	b := w.b
	switch w.r.IntN(6) {
	case 0:
		return b.LocalID()
	case 1:
		return b.U32(w.r.Uint32N(9))
	case 2:
		return w.x.Load(kernel.U32, b.And(w.vars[w.r.IntN(len(w.vars))].Get(), 63))
	case 3:
		return b.WorkgroupID(0)
	}
	return w.vars[w.r.IntN(len(w.vars))].Get()
}

func (w *wanderer) cond() kernel.Value {
	b := w.b
	return b.Lt(b.And(b.Add(w.value(), w.value()), 15), b.And(b.Add(b.Mul(w.value(), 5), w.r.IntN(16)), 15))
}

// rarely is a condition to return by.
func (w *wanderer) rarely() kernel.Value {
	return w.b.Eq(w.b.And(w.b.Add(w.value(), w.r.IntN(8)), 7), w.r.IntN(8))
}

func (w *wanderer) body(loops int) {
	held := len(w.vars)
	defer func() { w.vars = w.vars[:held] }()
	b := w.b
	w.depth++
	defer func() { w.depth-- }()
	for range 2 + w.r.IntN(5) {
		if w.left--; w.left < 0 {
			return
		}
		kind := w.r.IntN(11)
		if w.depth > 4 {
			kind %= 6
		}
		switch kind {
		case 0, 1, 2, 3:
			w.vars[w.r.IntN(len(w.vars))].Set(b.Add(w.value(), w.value()))
		case 4:
			w.vars = append(w.vars, b.Var(kernel.U32, w.value()))
		case 5:
			w.y.Store(b.Add(b.Mul(b.WorkgroupID(0), 1<<12), b.U32(uint32(w.next*16)), b.LocalID()), w.value())
			w.next++
		case 6:
			b.If(w.cond(), func() { w.body(loops) })
		case 7:
			b.IfElse(w.cond(), func() { w.body(loops) }, func() { w.body(loops) })
		case 8:
			b.For(b.And(w.value(), 3), b.And(w.value(), 7), 1+w.r.IntN(3), func(i kernel.Value) {
				w.vars[w.r.IntN(len(w.vars))].Set(i)
				w.body(loops + 1)
			})
		case 9:
			b.For(b.LocalID(), 40, 16, func(i kernel.Value) {
				w.vars[w.r.IntN(len(w.vars))].Set(w.x.Load(kernel.U32, i))
				w.body(loops + 1)
			})
		case 10:
			if w.r.IntN(3) == 0 {
				b.ReturnIf(w.rarely())
			} else {
				sum := b.SubgroupAdd(w.value())
				w.vars[w.r.IntN(len(w.vars))].Set(b.And(sum, 1023))
			}
		}
	}
}

// TestWander compares kernels of random control with the interpreter, of -short a third of them.
func TestWander(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &wanderer{r: rand.New(rand.NewPCG(seed, 1)), left: 60}
			f, err := kernel.Build("wander", func(b *kernel.Builder) {
				w.b, w.x, w.y = b, b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
				b.Workgroup(16)
				for i := range 4 {
					w.vars = append(w.vars, b.Var(kernel.U32, b.Add(w.x.Load(kernel.U32, b.Mul(b.LocalID(), i)), i)))
				}
				for range 3 {
					w.vars = append(w.vars, b.Var(kernel.U32, w.r.IntN(5)))
				}
				for w.left > 0 {
					w.body(0)
				}
				for i, v := range w.vars {
					w.y.Store(b.Add(b.Mul(b.WorkgroupID(0), 1<<12), (200+i)*16, b.LocalID()), v.Get())
				}
			})
			if err != nil {
				t.Fatal(err)
			}
			agree(t, f, nil, [3]int{2, 1, 1}, [][]byte{words(w.r, 64, w.r.Uint32), make([]byte, 8<<12)}, 0)
		})
	}
}
