package kerneltest

import (
	"bytes"
	"maps"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// CheckCut holds that the kernels leave the bits of a whole step if the step is cut at a multiple of their grain:
// behind the first grain, and before the last one, in the interpreter.
func (c Case) CheckCut(t testing.TB, on *target.Target) {
	t.Helper()
	for _, k := range Different(c.Candidates(t, c.Site(t, on))) {
		if k.Grain <= 0 || k.Grain >= c.live() {
			t.Fatalf("%s: a grain of %d, in a step of %d rows", k.Kernel, k.Grain, c.live())
		}
		last := (c.live() - 1) / k.Grain * k.Grain
		for _, at := range []int{k.Grain, last} {
			if v := c.Cut(t, on, k, at, nil); v != "" {
				t.Errorf("%s: with a cut at row %d %s has other bits", k.Kernel, at, v)
			}
			if k.Grain == last {
				break
			}
		}
	}
}

// Cut runs a candidate on the whole step, and on its rows up to one and from there on, the latter on the caches and
// states that the former leave, and on globals that are given. It returns what has other bits, if anything has.
func (c Case) Cut(t testing.TB, on *target.Target, k kernels.Candidate, at int, given map[string][]byte) string {
	t.Helper()
	c.Kernel = k.Kernel
	first, rest := c, c
	first.N, rest.First, rest.N = at, c.First+at, c.live()-at
	whole, left := c.FirstOf(t, on, InterpretOnly), first.FirstOf(t, on, InterpretOnly)
	rest.Given = map[string][]byte{}
	maps.Copy(rest.Given, c.Given)
	maps.Copy(rest.Given, given)
	for _, o := range k.Operands {
		if v := o.Value; o.Access == kernel.ReadWrite && (v.Class == ir.KV || v.Class == ir.State) {
			rest.Given[v.Name] = left[Label(v)]
		}
	}
	behind := rest.FirstOf(t, on, InterpretOnly)
	for _, o := range k.Operands {
		v, label := o.Value, Label(o.Value)
		if o.Access&kernel.Write == 0 || whole[label] == nil {
			continue
		}
		want, got := whole[label], behind[label]
		if v.Type.Shape[0] == ir.T {
			row := len(want) / c.Rows
			want, got = want[:c.live()*row], bytes.Join([][]byte{left[label][:at*row], got[:(c.live()-at)*row]}, nil)
		}
		if o.Access == kernel.Write && v.IsGlobal() { // what neither step writes is poison
			for i, b := range left[label] {
				if b == want[i] {
					got[i] = b
				}
			}
		}
		if !bytes.Equal(got, want) {
			return label
		}
	}
	return ""
}
