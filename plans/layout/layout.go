// Package layout defines the layout of a GGUF tensor on the device. A recipe
// splits blocks of, say, 18, 34 or 210 bytes into planes that kernels can read with
// loads of 32-bit words or vectors of them.
//
//   - raw keeps the bytes of the file: f32, f16, bf16, q4_k, q5_k.
//   - planes gathers each field of a block in a plane of its own: q4_0, q8_0, q6_k.
//   - packed does the same and puts the bits of codes in an order that kernels take apart
//     with few operations: all other block formats. Some fields become whole bytes (q3_k, iq4_xs: up to 4 %
//     more than the file). The digits of tq1_0 go to other bytes, so that each run of 32 has its own.
//   - rows16, for matrices on processors, interleaves 16 rows of q4_0, q8_0, q4_k, q5_k and q6_k.
//
// A plane holds its field for every block of the tensor in row-major order and
// starts at a multiple of 16 bytes. What lies between planes and after the last
// is zero. Tensors of more than two dims are matrices of their innermost dim.
package layout

import (
	"encoding/binary"
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

var le = binary.LittleEndian

// align is the alignment of planes and of tensor sizes, in bytes: a uvec4.
const align = 16

// Version is raised when the bytes of a layout change that keeps its name: weights that were kept in the old one are
// not taken then.
const Version = 2

// maxBytes bounds the size of a tensor, so that no size overflows.
const maxBytes = 1 << 46

// Recipe is one row of the layout table: what becomes of one dtype.
type Recipe struct {
	Name   string // "raw", "planes", "packed", "rows16"
	DType  ir.DType
	Format string // what kernels switch on: the name of the dtype
	Group  int    // elements that share one scale; 1 for plain types

	fields []field
}

// field is how one plane is made: size bytes from every block of the file.
type field struct {
	name string
	size int
	// from is the offset in the block of size bytes that are copied, if fill is nil.
	from int
	// fill converts the block to size bytes.
	fill func(dst, block []byte)
}

// For returns the recipe of dtype d that all targets can read, not rows16; false if no kernel can read d.
func For(d ir.DType) (Recipe, bool) {
	for _, r := range recipes {
		if r.DType == d {
			return r, true
		}
	}
	return Recipe{}, false
}

// Format returns the name of what kernels see of a weight of dtype d, such as
// "q4_k". Empty if no kernel can read d.
func Format(d ir.DType) string {
	r, _ := For(d)
	return r.Format
}

// Plane is one contiguous part of a tensor on the device.
type Plane struct {
	Name   string
	Offset int64 // bytes from the start of the tensor, a multiple of 16
	Bytes  int64 // without the padding after it
	Block  int   // bytes for each block of the file
}

// Tensor is a recipe applied to a shape. It may be used by several goroutines.
type Tensor struct {
	Recipe
	Rows, Cols int64
	Bytes      int64 // on the device, a multiple of 16
	Planes     []Plane
	// Of layout Rows16: words of the image of a row's block or blocks, images of a row, and groups of 16
	// rows of a matrix.
	Words, Images, Groups int64

	matrix int64  // rows of a matrix, of layout Rows16
	image  *image // nil for the others
}

// New returns the layout of a tensor of dtype d with a row-major shape. Rows must
// be whole blocks and, of 16-bit types, whole words.
func New(d ir.DType, shape ...int64) (*Tensor, error) {
	r, ok := For(d)
	if !ok {
		return nil, fmt.Errorf("layout: no kernel reads dtype %s", d)
	}
	t := &Tensor{Recipe: r, Rows: 1}
	if len(shape) == 0 {
		return nil, fmt.Errorf("layout: tensor without dims")
	}
	n := int64(1)
	for _, dim := range shape {
		if dim <= 0 || n > maxBytes/8/dim {
			return nil, fmt.Errorf("layout: shape %d: size out of range", shape)
		}
		n *= dim
	}
	t.Cols = shape[len(shape)-1]
	t.Rows = n / t.Cols
	if t.Cols%int64(d.Block()) != 0 {
		return nil, fmt.Errorf("layout: rows of %d are not whole %s blocks of %d", t.Cols, d, d.Block())
	}
	if d.BlockBytes() == 2 && t.Cols%2 != 0 {
		return nil, fmt.Errorf("layout: rows of %d %s are not whole 32-bit words", t.Cols, d)
	}
	blocks := n / int64(d.Block())
	for _, f := range r.fields {
		p := Plane{Name: f.name, Offset: t.Bytes, Bytes: blocks * int64(f.size), Block: f.size}
		t.Planes = append(t.Planes, p)
		t.Bytes = (p.Offset + p.Bytes + align - 1) / align * align
	}
	return t, nil
}

// SourceBytes is the size of the tensor in the file.
func (t *Tensor) SourceBytes() int64 { return t.DType.Bytes(t.Rows * t.Cols) }

// Fill writes bytes [at, at+len(dst)) of the tensor on the device into dst, any
// part of it, from src, all of the tensor in the file. Calls for different parts
// may run at the same time.
func (t *Tensor) Fill(dst []byte, at int64, src []byte) error {
	if int64(len(src)) != t.SourceBytes() {
		return fmt.Errorf("layout: source has %d bytes, want %d", len(src), t.SourceBytes())
	}
	if at < 0 || at > t.Bytes || int64(len(dst)) > t.Bytes-at {
		return fmt.Errorf("layout: bytes [%d, +%d) of a tensor of %d", at, len(dst), t.Bytes)
	}
	if t.image != nil {
		t.fillRows(dst, at, src)
		return nil
	}
	for i, p := range t.Planes {
		next := t.Bytes
		if i+1 < len(t.Planes) {
			next = t.Planes[i+1].Offset
		}
		end := p.Offset + p.Bytes
		if lo, hi := clip(p.Offset, end, at, len(dst)); lo < hi {
			t.fillPlane(dst[lo:hi], t.fields[i], at+int64(lo)-p.Offset, src)
		}
		if lo, hi := clip(end, next, at, len(dst)); lo < hi {
			clear(dst[lo:hi])
		}
	}
	return nil
}

// clip intersects [lo, hi) with [at, at+n) and returns it relative to at.
func clip(lo, hi, at int64, n int) (int, int) {
	return int(max(lo, at) - at), int(min(hi, at+int64(n)) - at)
}

// fillPlane writes bytes [at, at+len(dst)) of the plane of f.
func (t *Tensor) fillPlane(dst []byte, f field, at int64, src []byte) {
	stride := t.DType.BlockBytes()
	if f.fill == nil && f.size == stride { // the file as it is
		copy(dst, src[at:])
		return
	}
	src = src[at/int64(f.size)*int64(stride):]
	// The part may begin and end inside a block's field.
	for skip := int(at % int64(f.size)); len(dst) > 0; skip = 0 {
		block := src[:stride]
		src = src[stride:]
		switch n := min(f.size-skip, len(dst)); {
		case f.fill == nil:
			copy(dst[:n], block[f.from+skip:])
			dst = dst[n:]
		case n == f.size:
			f.fill(dst[:n], block)
			dst = dst[n:]
		default:
			var whole [256]byte
			f.fill(whole[:f.size], block)
			copy(dst[:n], whole[skip:])
			dst = dst[n:]
		}
	}
}
