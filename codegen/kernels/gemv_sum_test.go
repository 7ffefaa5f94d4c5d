package kernels_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/strategy"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// summed is a post-norm and the projections behind it.
type summed struct {
	k        int
	d        ir.DType // of the weights; f32: they read x as it is
	two      bool     // a second norm of the sum, with its own residual
	unit     bool     // the first has no weight
	by       bool     // the sum is scaled
	bare     bool     // the projections read the sum without a norm
	kept     bool     // others read the sum
	columns  int
	sum, of  []*ir.Op // of the post-norm, of the projections
	add      *ir.Value
	products []*ir.Value
}

// build makes the ops of c.
func (c *summed) build(w *world) {
	make := func(kind string, attrs ir.Attrs, args ...*ir.Value) *ir.Op {
		op, err := w.make.Make(kind, attrs, args...)
		if err != nil {
			w.t.Fatal(err)
		}
		return op
	}
	norm := func(x *ir.Value, gain bool) *ir.Op {
		args := []*ir.Value{x}
		if gain {
			args = append(args, w.vector(fmt.Sprint("gain", len(w.p.Globals)), c.k))
		}
		return make("rmsnorm", ir.Attrs{{Name: "eps", Value: 1e-5}, {Name: "group", Value: int64(c.k)}}, args...)
	}
	rows := func() *ir.Value { return w.rows(ir.T, ir.Dim(c.k)) }
	first := norm(rows(), !c.unit)
	last := make("add", nil, rows(), first.Result)
	c.sum = []*ir.Op{first, last}
	if c.two {
		second := norm(last.Result, true)
		last = make("add", nil, second.Result, rows())
		c.sum = append(c.sum, second, last)
	}
	if c.by {
		last = make("scale", ir.Attrs{{Name: "factor", Value: 0.75}}, last.Result, w.vector("by", 1))
		c.sum = append(c.sum, last)
	}
	c.add = last.Result
	x := c.add
	if !c.bare {
		c.of = append(c.of, norm(x, true))
		x = c.of[0].Result
	}
	linears := 1
	if c.d != ir.F32 {
		fixed := make("fixed12", nil, x)
		c.of, x, linears = append(c.of, fixed), fixed.Result, 2
	}
	for range linears {
		l := make("linear", nil, x, w.matrix(c.d, 37, c.k))
		c.of, c.products = append(c.of, l), append(c.products, l.Result)
	}
}

// TestGemvSum has projections of few rows that make their x of a post-norm: its bits, those of the sum that they write and those of the products
// are those of two dispatches, of every shape, at every width and size of subgroups.
func TestGemvSum(t *testing.T) {
	cuda := lookup(t, "sm_90-cuda")
	for _, on := range []*target.Target{cuda, withWave(t, 8), withWave(t, 64)} {
		dot := *on
		dot.Dot = true
		if on != cuda {
			dot.Units = 4
		}
		for _, c := range []summed{
			{k: 768, d: ir.Q4_K, kept: true, columns: 1},
			{k: 768, d: ir.Q6_K, kept: true, columns: 2, by: true},
			{k: 1280, d: ir.Q4_K, columns: 2, two: true, by: true, kept: true},
			{k: 5 * 1024, d: ir.Q8_0, columns: 1, two: true, unit: true, kept: true},
			{k: 704, d: ir.Q8_0, columns: 4, kept: true, two: true},
			{k: 640, d: ir.Q5_0, columns: 1, unit: true, bare: true, by: true, kept: true},
			{k: 704, d: ir.Q8_0, columns: 1, bare: true},
			{k: 1060, d: ir.F32, columns: 1},
			{k: 768, d: ir.F32, columns: 2, two: true, by: true, kept: true},
		} {
			t.Run(fmt.Sprintf("%s w%d %s %d of %d", dot.Name, dot.Wave, c.d, c.columns, c.k), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, c.columns, c.columns)
				w.on = &dot
				c.build(w)
				site := func(ops []*ir.Op, outputs ...*ir.Value) *kernels.Site {
					return &kernels.Site{Program: w.p, Func: w.f, Group: &ir.Group{Name: "g", Ops: ops}, Outputs: outputs, Target: &dot}
				}
				run := func(k kernels.Candidate) map[*ir.Value][]byte { return interpretOnly(t, k, w.sizes, w.data) }
				sum := run(first(t, strategy.Candidates(site(c.sum, c.add)), "rownorm"))[c.add]
				w.data[c.add] = sum
				apart := different(strategy.Candidates(site(c.of, c.products...)))
				want := run(first(t, apart, "gemv"))
				delete(w.data, c.add)
				outputs := c.products
				if c.kept {
					outputs = append(outputs[:len(outputs):len(outputs)], c.add)
				}
				together := different(strategy.Candidates(site(append(c.sum[:len(c.sum):len(c.sum)], c.of...), outputs...)))
				names := map[string]bool{}
				for _, k := range together {
					names[k.Name()] = true
					if !strings.HasPrefix(k.Kernel, "gemv sum") {
						t.Fatal(k.Kernel)
					}
					if k.Order != apart[0].Order {
						continue
					}
					got := run(k)
					for _, v := range c.products {
						if !bytes.Equal(got[v], want[v]) {
							t.Errorf("%s: other products than of two dispatches", k.Name())
						}
					}
					if c.kept && !bytes.Equal(got[c.add], sum) {
						t.Errorf("%s: another sum than of two dispatches", k.Name())
					}
				}
				if !names[apart[0].Name()] {
					t.Errorf("%s is not offered", apart[0].Name())
				}
			})
		}
	}
}
