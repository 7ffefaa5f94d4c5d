package vulkan

import (
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestCheckFragments holds that only a device that gives them out as plans rely on it passes. Others are
// products of the same factors with rows, elements or columns in other places.
func TestCheckFragments(t *testing.T) {
	d := &Device{Info: DeviceInfo{Name: "Z1"}}
	same := func(n int) int { return n }
	for _, c := range []struct {
		name        string
		row, k, col func(n int) int
		passes      bool
	}{
		{"as it is", same, same, same, true},
		{"halves of rows", func(i int) int { return i ^ 8 }, same, same, false},
		{"neighbours of rows", func(i int) int { return i ^ 1 }, same, same, false},
		{"halves of one factor's elements", same, func(k int) int { return k ^ 8 }, same, false},
		{"neighbours of one factor's elements", same, func(k int) int { return k ^ 1 }, same, false},
		{"quads of one factor's elements", same, func(k int) int { return k&1 | k>>1&4 | k<<1&8 | k&2 }, same, false},
		{"halves of columns", same, same, func(j int) int { return j ^ 4 }, false},
		{"all of one row", func(int) int { return 3 }, same, same, false},
	} {
		y := make([]byte, 4*fragmentSide*fragmentCols)
		for i := range fragmentSide {
			for j := range fragmentCols {
				sum, row, col := 0, c.row(i), c.col(j)
				for k := range fragmentSide {
					q := c.k(k)
					sum += 4 * (110 + (row*row+3*k)%17) * (2030 + (q*q+5*col)%13)
				}
				binary.LittleEndian.PutUint32(y[4*(i*fragmentCols+j):], math.Float32bits(float32(math.Ldexp(float64(sum), -24))))
			}
		}
		err := d.checkFragments(y)
		if (err == nil) != c.passes {
			t.Errorf("%s: error %v", c.name, err)
		}
		if err != nil && (!errors.Is(err, errors.ErrUnsupported) || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "Z1")) {
			t.Errorf("%s: error %q", c.name, err)
		}
	}
}
