package layout

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// decodeRow fills dst, one row, from data, the whole tensor on the device; the floats are those of gguf.Dequantize.
func (t *Tensor) decodeRow(dst []float32, data []byte, row int64) error {
	blocks := t.Cols / int64(t.DType.Block())
	for b := range blocks {
		y := dst[b*int64(t.DType.Block()):][:t.DType.Block()]
		if err := t.decodeBlock(y, data, row*blocks+b); err != nil {
			return err
		}
	}
	return nil
}

// decodeBlock fills y, one block of the file.
func (t *Tensor) decodeBlock(y []float32, data []byte, b int64) error {
	part := func(i int) []byte {
		p := t.Planes[i]
		return data[p.Offset+b*int64(p.Block):][:p.Block]
	}
	block := make([]byte, t.DType.BlockBytes())
	switch {
	case t.DType == ir.TQ1_0:
		restoreTernary(block, part)
	case t.Name == "packed":
		reordered(t.Recipe, block, part)
	default:
		for i, f := range t.fields {
			copy(block[f.from:], part(i))
		}
	}
	return gguf.Dequantize(y, block, t.DType)
}

// order returns for each bit of a block, plane by plane, the bit of the file that it is, -1 for none.
func (r Recipe) order() []int {
	size := 0
	for _, f := range r.fields {
		size += f.size
	}
	order := make([]int, 8*size)
	for i := range order {
		order[i] = -1
	}
	block, planes := make([]byte, r.DType.BlockBytes()), make([]byte, size)
	for bit := range 8 * len(block) {
		block[bit/8] = 1 << (bit % 8)
		at := 0
		for _, f := range r.fields {
			f.write(planes[at:][:f.size], block)
			at += f.size
		}
		for i, b := range planes {
			for k := range 8 {
				if b>>k&1 != 0 {
					order[8*i+k] = bit
				}
			}
		}
		block[bit/8] = 0
	}
	return order
}

// reordered restores a block of which planes have the bits in another order.
func reordered(r Recipe, block []byte, part func(i int) []byte) {
	order := r.order()
	at := 0
	for i := range r.fields {
		for _, b := range part(i) {
			for k := range 8 {
				if b>>k&1 != 0 && order[at+k] >= 0 {
					block[order[at+k]/8] |= 1 << (order[at+k] % 8)
				}
			}
			at += 8
		}
	}
}

func restoreTernary(block []byte, part func(i int) []byte) {
	var q [256]byte
	fives, nibbles, bits := part(0), part(1), part(2)
	for run := range 8 {
		for k := range 4 {
			x := fives[4*run+k]
			threes := nibbles[2*run+nibbleOf[k]/2]>>(nibbleOf[k]%2*4)&15<<4 | bits[run/2]>>(bitOf[k]+run%2*4)&1<<3
			for i := range 8 {
				from := &x
				if i == 1 || i == 3 || i == 5 {
					from = &threes
				}
				q[32*run+4*i+k], *from = byte(uint16(*from)*3>>8), *from*3
			}
		}
	}
	rest := q[:]
	for _, p := range ternaryParts {
		for k := range p.bytes {
			var own [5]byte
			for i := range p.digits {
				own[i] = rest[i*p.bytes+k]
			}
			block[p.from+k] = fraction(8, own[:]...)
		}
		rest = rest[p.bytes*p.digits:]
	}
	copy(block[52:], part(3))
}

// plane returns the plane of that name; it panics if the recipe has none.
func (t *Tensor) plane(name string) Plane {
	for _, p := range t.Planes {
		if p.Name == name {
			return p
		}
	}
	panic(fmt.Sprintf("layout: %s has no plane %q", t.Name, name))
}
