package layout

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Rows16 is the layout for kernels whose lanes are rows of a matrix: 16 rows lie interleaved,
// word by word. The rows of each matrix of a tensor are taken in groups of 16, the last of which is
// filled up with rows of zeros. Of a group, the images of the rows' blocks follow each other, 16 at a
// time: word k of the image of row r stands at byte (k*16+r)*4. So a word of all 16 rows is a line of 64
// bytes, and lines are read in the order in which they lie.
//
// An image is what a block of the file becomes, in words:
//
//	f32               the element
//	f16, bf16         two elements
//	q4_k, q5_k        the block as it is
//	q6_k              d as f32; then four parts, for l from 0 and from 16 in each half of 128 elements: a word of the
//	                  scales of elements l, l+32, l+64 and l+96, then four times three words, for l, l+4, l+8 and
//	                  l+12: four bytes of ql from l, four from l+32, four of qh from l
//	q8_0, q4_0        two blocks: both scales, f16, then the codes of the first and of the second
//
// Other formats have no such layout.
//
// A row of an odd number of blocks whose image takes two ends in a block of zeros.
const Rows16 = "rows16"

const lanes = 16

// image is how blocks of a dtype become words.
type image struct {
	blocks int // that make one
	bytes  int // of one, a multiple of 4
	// fill writes it; nil for one that is the blocks as they are.
	fill func(dst, blocks []byte)
}

var images = map[ir.DType]image{
	ir.F32:  {1, 4, nil},
	ir.F16:  {2, 4, nil},
	ir.BF16: {2, 4, nil},
	ir.Q4_K: {1, 144, nil},
	ir.Q5_K: {1, 176, nil},
	ir.Q6_K: {1, 212, imageQ6_K},
	ir.Q8_0: {2, 68, pair(34)},
	ir.Q4_0: {2, 36, pair(18)},
}

// pair is the image of two blocks that begin with an f16 scale.
func pair(block int) func(dst, blocks []byte) {
	return func(dst, blocks []byte) {
		copy(dst, blocks[:2])
		copy(dst[2:], blocks[block:block+2])
		copy(dst[4:], blocks[2:block])
		copy(dst[4+block-2:], blocks[block+2:])
	}
}

func imageQ6_K(dst, b []byte) {
	ql, qh, scales := b[:128], b[128:192], b[192:208]
	le.PutUint32(dst, math.Float32bits(gguf.F16ToF32(le.Uint16(b[208:]))))
	dst = dst[4:]
	for part := range 4 {
		h, s := part/2, part%2
		for i := range 4 {
			dst[i] = scales[8*h+s+2*i]
		}
		dst = dst[4:]
		for i := 16 * s; i < 16*s+16; i += 4 {
			le.PutUint32(dst, le.Uint32(ql[64*h+i:]))
			le.PutUint32(dst[4:], le.Uint32(ql[64*h+32+i:]))
			le.PutUint32(dst[8:], le.Uint32(qh[32*h+i:]))
			dst = dst[12:]
		}
	}
}

// NewRows16 is New for layout Rows16.
func NewRows16(d ir.DType, shape ...int64) (*Tensor, error) {
	t, err := New(d, shape...)
	if err != nil {
		return nil, err
	}
	n, ok := images[d]
	if !ok {
		return nil, fmt.Errorf("layout: %s has no layout %s", d, Rows16)
	}
	t.Name, t.image = Rows16, &n
	t.matrix = t.Rows // rows of each
	if len(shape) > 2 {
		t.matrix = shape[len(shape)-2]
	}
	t.Words = int64(n.bytes / 4)
	blocks := t.Cols / int64(d.Block())
	t.Images = (blocks + int64(n.blocks) - 1) / int64(n.blocks)
	t.Groups = (t.matrix + lanes - 1) / lanes
	if t.Rows/t.matrix > maxBytes/(t.Groups*t.groupBytes()) {
		return nil, fmt.Errorf("layout: shape %d: size out of range", shape)
	}
	t.Bytes = t.Rows / t.matrix * t.Groups * t.groupBytes()
	t.Planes = []Plane{{Name: Rows16, Bytes: t.Bytes, Block: n.bytes}}
	return t, nil
}

// Named is New for the layout of that name.
func Named(name string, d ir.DType, shape ...int64) (*Tensor, error) {
	if name == Rows16 {
		return NewRows16(d, shape...)
	}
	t, err := New(d, shape...)
	if err == nil && t.Name != name {
		err = fmt.Errorf("layout %q, want %q or %q for %s", name, t.Name, Rows16, d)
	}
	return t, err
}

func (t *Tensor) groupBytes() int64 { return t.Images * t.Words * lanes * 4 }

// fillRows writes bytes [at, at+len(dst)) of a tensor whose rows are interleaved.
func (t *Tensor) fillRows(dst []byte, at int64, src []byte) {
	size := t.Words * lanes * 4
	var whole []byte // the image of 16 rows of which only a part is wanted
	rows := interleaver{Tensor: t, src: src, blocks: make([]byte, t.image.blocks*t.DType.BlockBytes())}
	rows.images = make([]byte, lanes*t.image.bytes)
	for len(dst) > 0 {
		i, skip := at/size, at%size
		var n int64
		if skip == 0 && int64(len(dst)) >= size {
			n = rows.fill(dst, i) * size
		} else {
			if whole == nil {
				whole = make([]byte, size)
			}
			rows.fill(whole, i)
			n = int64(copy(dst, whole[skip:]))
		}
		dst = dst[n:]
		at += n
	}
}

// interleaver makes images of 16 rows.
type interleaver struct {
	*Tensor
	src    []byte
	blocks []byte // of the file, for an image, filled up with zeros
	images []byte // of each row
}

// fill writes images of 16 rows from number i on, and returns how many: one, or more if they fit
// into dst and are the file's blocks as they are.
func (v *interleaver) fill(dst []byte, i int64) int64 {
	group, k := i/v.Images, i%v.Images
	first := group/v.Groups*v.matrix + group%v.Groups*lanes // row of lane 0
	rows := min(lanes, (group/v.Groups+1)*v.matrix-first)
	stride := v.Cols / int64(v.DType.Block()) * int64(v.DType.BlockBytes())
	n := int64(len(v.blocks))
	from := first*stride + k*n
	if v.image.fill == nil && rows == lanes && stride%n == 0 {
		count := min(v.Images-k, int64(len(dst))/(v.Words*lanes*4))
		interleave(words(dst), v.src[from:], int(stride), int(count*v.Words))
		return count
	}
	for lane := range rows {
		image := v.images[int(lane)*v.image.bytes:][:v.image.bytes]
		blocks := v.src[from+lane*stride:][:min(n, stride-k*n)]
		if int64(len(blocks)) < n {
			clear(v.blocks[copy(v.blocks, blocks):])
			blocks = v.blocks
		}
		if v.image.fill != nil {
			v.image.fill(image, blocks)
		} else {
			copy(image, blocks)
		}
	}
	clear(v.images[int(rows)*v.image.bytes:])
	interleave(words(dst), v.images, v.image.bytes, int(v.Words))
	return 1
}

// interleave transposes n words of 16 rows.
func interleave(dst []uint32, src []byte, stride, n int) {
	_, _ = dst[lanes*n-1], src[(lanes-1)*stride+4*n-1] // what follows stays within
	p, out := unsafe.Pointer(unsafe.SliceData(src)), unsafe.Pointer(unsafe.SliceData(dst))
	for lane := range lanes {
		row := unsafe.Add(p, lane*stride)
		to := unsafe.Add(out, 4*lane)
		for w := range n {
			*(*uint32)(unsafe.Add(to, 4*lanes*w)) = *(*uint32)(unsafe.Add(row, 4*w))
		}
	}
}

// words is b as words.
func words(b []byte) []uint32 {
	return unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
