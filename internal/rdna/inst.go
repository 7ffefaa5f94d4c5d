package rdna

import (
	"math"
	"math/bits"
)

// Registers by operand code: 0 to 127 are scalar, from firstVector on those of lanes.
const (
	vccLo       = 106
	nullReg     = 124
	m0Reg       = 125
	execLo      = 126
	scalars     = 128
	sccCode     = 253
	literalCode = 255
	firstVector = 256
	vectors     = 256
)

// operand is a register or a constant.
type operand struct {
	t     typ
	code  int    // of a register, constant else
	raw   int    // the code in the instruction
	value uint64 // of a constant
	neg   bool   // minus, of a packed operand in its low result
	abs   bool
	hi    bool // the high half, of a packed operand for the low result
	negHi bool // of a packed operand for the high result
	hiHi  bool
}

const constant = -1

func (o *operand) vector() bool { return o.code >= firstVector }

// dpp moves lanes of the first operand.
type dpp struct {
	eight          bool
	ctrl           uint32 // of sixteen lanes, or eight numbers of three bits
	fetchInactive  bool
	zero           bool // lanes from nowhere are 0; else they do not write
	rowMask, banks uint32
}

// Inst is a decoded instruction.
type Inst struct {
	row   *row
	gen   Gen
	wave  int
	PC    int // in words
	words []uint32
	long  bool // of a vector instruction: VOP3

	dst, sdst operand
	src       []operand
	omod      int
	clamp     bool
	dpp       *dpp
	imm       int64 // of SOPK, SOPP, SMEM, and offsets of memory
	mem       access
	second    *Inst // of VOPD
	half      bool  // of VOPD

	reads, writes regset
	beyond        bool // the last register
	run           func(w *wave, in *Inst)
}

// access are the fields of an instruction of memory.
type access struct {
	addr, data, data2 int // numbers of vector registers
	saddr             int // a scalar register, nullReg for none
	soffset           int // the operand code of saddr, of buffers
	resource          int // the first of four registers of a buffer's descriptor
	offsets           [2]int
	vaddr             bool // of scratch and buffers: addr counts
	scope, th         int  // gfx12
	glc, slc, dlc     bool // gfx11
}

// Name is the instruction's name without a suffix for its encoding.
func (in *Inst) Name() string { return in.row.name[in.gen] }

// use adds registers to those that the instruction reads or writes.
func (in *Inst) use(set *regset, code, n int) {
	if !set.add(code, n) {
		in.beyond = true
	}
}

// Waits reports whether the instruction waits for accesses that are under way.
func (in *Inst) Waits() bool {
	switch in.row.fn.(type) {
	case waitOne, waitTwo, waitMany, waitAll:
		return true
	}
	return false
}

// Barrier reports whether the instruction signals a barrier, waits for one, or both.
func (in *Inst) Barrier() bool {
	switch in.row.fn.(type) {
	case barrierSignal, barrierWait, barrierBoth:
		return true
	}
	return false
}

// Code are the words of the instruction.
func (in *Inst) Code() []uint32 { return in.words }

// regset is a set of registers: the scalar ones and then those of lanes.
type regset [(scalars + vectors) / 64]uint64

// add adds registers and reports whether there are such.
func (s *regset) add(code, n int) bool {
	if code == nullReg || code == sccCode {
		return true
	}
	end := scalars
	if code >= firstVector {
		code, end = code+scalars-firstVector, scalars+vectors
	}
	if code < 0 || code+n > end {
		return false
	}
	for i := code; i < code+n; i++ {
		s[i/64] |= 1 << (i % 64)
	}
	return true
}

func (s *regset) union(t *regset) {
	for i := range s {
		s[i] |= t[i]
	}
}

// vectors is how many registers of lanes there are up to the last of the set.
func (s *regset) vectors() int {
	for i := len(s) - 1; i >= scalars/64; i-- {
		if s[i] != 0 {
			return 64*(i+1) - bits.LeadingZeros64(s[i]) - scalars
		}
	}
	return 0
}

// meets returns a register that both sets have, as an operand code.
func (s *regset) meets(t *regset) (int, bool) {
	for i := range s {
		if both := s[i] & t[i]; both != 0 {
			at := 64 * i
			for both&1 == 0 {
				both >>= 1
				at++
			}
			if at >= scalars {
				at += firstVector - scalars
			}
			return at, true
		}
	}
	return 0, false
}

// inlineFloats are the constants of operand codes from 240 on.
var inlineFloats = []float64{.5, -.5, 1, -1, 2, -2, 4, -4, 1 / (2 * math.Pi)}

// inlineConstant returns the bits of a constant that an operand code is, as an operand of a type has it.
func inlineConstant(code int, t typ) (uint64, bool) {
	var x uint64
	switch {
	case code >= 128 && code <= 192:
		x = uint64(code - 128)
	case code >= 193 && code <= 208:
		x = uint64(int64(192 - code))
	case code >= 240 && code <= 248:
		v := inlineFloats[code-240]
		switch {
		case t == bf16t:
			return toBF16(v), true
		case t.half() || t == pk:
			return toF16(v, false), true
		case t.wide():
			return math.Float64bits(v), true
		}
		return fbits(float32(v)), true
	default:
		return 0, false
	}
	switch {
	case t.half():
		x &= 0xffff
	case !t.wide() && t != mask:
		x &= 0xffffffff
	}
	return x, true
}

// literalConstant is what a literal means to an operand of a type.
func literalConstant(word uint32, t typ) uint64 {
	switch {
	case t == f64:
		return uint64(word) << 32
	case t == i64:
		return uint64(int64(int32(word)))
	case t.half():
		return uint64(word & 0xffff)
	}
	return uint64(word)
}
