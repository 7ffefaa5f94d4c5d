package kerneltest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/oracle"
)

// compare fails where got differs from want: by more than rounding, or at all
// where want is poison or an integer.
func (c Case) compare(t testing.TB, kernel string, v *ir.Value, got, want []byte) {
	t.Helper()
	if v.Type.DType == ir.I32 {
		if !bytes.Equal(got, want) {
			t.Errorf("%s: %s is %v, want %v", kernel, Label(v), got, want)
		}
		return
	}
	x, y, tolerance := make([]float32, len(want)*v.Type.DType.Block()/v.Type.DType.BlockBytes()), []float32(nil), 1e-5
	y = slices.Clone(x)
	if err := errors.Join(oracle.Decode(x, v.Type.DType, got), oracle.Decode(y, v.Type.DType, want)); err != nil {
		t.Fatal(err)
	}
	switch {
	case c.Rounds:
		tolerance = 1.0 / 128
	case v.Type.DType == ir.F16:
		tolerance = 1.0 / 1024
	case v.Type.DType == ir.Q8_0:
		compareBlocks(t, kernel, v, got, want)
		return
	}
	tolerance *= math.Sqrt(max(1, float64(c.Terms)/64))
	for i := range y {
		if x[i] == y[i] || y[i] != y[i] && x[i] != x[i] {
			continue
		}
		diff := math.Abs(float64(x[i]) - float64(y[i]))
		if y[i] == poison || !(diff <= tolerance*(1+math.Abs(float64(y[i])))) {
			t.Errorf("%s: element %d of %s is %g, want %g", kernel, i, Label(v), x[i], y[i])
			return
		}
	}
}

// compareBlocks fails where a scale differs by more than its last place, or a code by more
// than 1: what is rounded may differ in its last place.
func compareBlocks(t testing.TB, kernel string, v *ir.Value, got, want []byte) {
	t.Helper()
	for i := range len(want) / ir.Q8_0.BlockBytes() {
		x, y := got[i*ir.Q8_0.BlockBytes():][:ir.Q8_0.BlockBytes()], want[i*ir.Q8_0.BlockBytes():][:ir.Q8_0.BlockBytes()]
		d := int(binary.LittleEndian.Uint16(x)) - int(binary.LittleEndian.Uint16(y))
		bad := d*d > 1
		for j := range x[2:] {
			d := int(int8(x[2+j])) - int(int8(y[2+j]))
			bad = bad || d*d > 1
		}
		if bad {
			t.Errorf("%s: block %d of %s is %v, want %v", kernel, i, Label(v), x, y)
			return
		}
	}
}

// Covered holds the candidate's statement of who writes an output of so many elements against that.
func Covered(t testing.TB, c kernels.Candidate, v *ir.Value, count int) {
	t.Helper()
	name := ""
	for _, o := range c.Operands {
		if o.Value == v {
			name = o.Name
		}
	}
	for _, cover := range c.Cover {
		if cover.Arg != name {
			continue
		}
		elements := 1
		for d, dim := range cover.Dims {
			elements *= dim
			groups, first := 1, 0
			if cover.First != nil {
				first = cover.First[d]
			}
			if a := cover.Axis[d]; a >= 0 {
				groups = c.Grid[a] - first
			}
			if cover.Tile[d] > 0 && groups*cover.Tile[d] < dim {
				t.Fatalf("%s: %s: %d workgroups of %d do not cover dim %d of %d", c.Kernel, name, groups, cover.Tile[d], d, dim)
			}
		}
		if elements != count {
			t.Fatalf("%s: %s has %d elements, %d are covered", c.Kernel, name, count, elements)
		}
		return
	}
	t.Fatalf("%s: nothing covers %s", c.Kernel, name)
}
