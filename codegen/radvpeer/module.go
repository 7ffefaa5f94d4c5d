package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
)

// module is a SPIR-V module of the peer's.
type module []uint32

const (
	magic       = 0x07230203
	headerWords = 5
)

// Instructions that are looked at, by their numbers in the specification.
const (
	opExtension             = 10
	opExecutionMode         = 16
	opCapability            = 17
	opConstant              = 43
	opSpecConstant          = 50
	opSpecConstantOp        = 52
	opIEqual                = 170
	opINotEqual             = 171
	opUGreaterThan          = 172
	opUGreaterThanEqual     = 174
	opULessThan             = 176
	opULessThanEqual        = 178
	opPhi                   = 245
	opBranchConditional     = 250
	opLoopMerge             = 246
	opSelectionMerge        = 247
	opFunctionEnd           = 56
	compareWords            = 5 // of a comparison: op, type, result and two operands
	lastOpcode              = 8191
	comparedFirst, compared = 3, 4
)

// findModules returns the modules in a file: from the magic number on as long as there are
// instructions. Those whose digests are the same are one.
func findModules(file []byte) map[string]module {
	found := map[string]module{}
	start := binary.LittleEndian.AppendUint32(nil, magic)
	for at := 0; ; at += len(start) {
		i := bytes.Index(file[at:], start)
		if i < 0 {
			return found
		}
		at += i
		if m := readModule(file[at:]); m != nil {
			found[m.digest()] = m
		}
	}
}

// readModule reads the module at the start of data; nil if there is none.
func readModule(data []byte) module {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(data[4*i:]) }
	count, end := len(data)/4, 0
	for at := headerWords; at < count; {
		n, op := int(word(at)>>16), word(at)&0xffff
		if n == 0 || op == 0 || op > lastOpcode || n > count-at {
			break
		}
		at += n
		if op == opFunctionEnd {
			end = at
		}
	}
	var m module
	for i := range end {
		m = append(m, word(i))
	}
	return m
}

// each calls f with the place and the number of each instruction.
func (m module) each(f func(at int, op uint32)) {
	for at := headerWords; at < len(m) && m[at]>>16 > 0; at += int(m[at] >> 16) {
		f(at, m[at]&0xffff)
	}
}

// digest tells modules apart. What the peer adds to a module for the device it runs on,
// such as how to round, does not count.
func (m module) digest() string {
	var b []byte
	m.each(func(at int, op uint32) {
		if op != opCapability && op != opExtension && op != opExecutionMode {
			for _, w := range m[at : at+int(m[at]>>16)] {
				b = binary.LittleEndian.AppendUint32(b, w)
			}
		}
	})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// set makes the comparison at a place one that always, or never, holds.
func (m module) set(at int, holds bool) {
	op := uint32(opINotEqual)
	if holds {
		op = opIEqual
	}
	m[at] = compareWords<<16 | op
	m[at+compared] = m[at+comparedFirst]
}

// whole returns the module as it is for matrices whose rows and columns fill all tiles.
// The peer's kernels have their body twice, for whole tiles and for the last, which they
// tell apart by their only <=; and behind their loops that take four steps at once, what
// is done if more than a constant is left.
func (m module) whole() module {
	m = slices.Clone(m)
	constant := map[uint32]bool{}
	left := map[uint32]int{} // places of comparisons, by result
	m.each(func(at int, op uint32) {
		switch op {
		case opConstant:
			constant[m[at+2]] = true
		case opULessThanEqual:
			m.set(at, true)
		case opUGreaterThan, opUGreaterThanEqual:
			if constant[m[at+compared]] {
				left[m[at+2]] = at
			}
		case opSelectionMerge:
			if c, ok := left[m[at+int(m[at]>>16)+1]]; ok {
				m.set(c, false)
			}
		}
	})
	return m
}

// loops returns the places of the conditions of the loops whose number of iterations is
// not known when a pipeline is made.
func (m module) loops() []int {
	constant := map[uint32]bool{}
	conditions := map[uint32]int{} // places of comparisons, by result
	phis := map[uint32]int{}
	var list []int
	header := false
	m.each(func(at int, op uint32) {
		switch op {
		case opConstant, opSpecConstant, opSpecConstantOp:
			constant[m[at+2]] = true
		case opPhi:
			phis[m[at+2]] = at
		case opUGreaterThan, opUGreaterThanEqual, opULessThan:
			conditions[m[at+2]] = at
		case opLoopMerge:
			header = true
		case opBranchConditional:
			c, ok := conditions[m[at+1]]
			ok, header = ok && header, false
			if !ok {
				return
			}
			known := true
			for _, v := range m[c+comparedFirst : c+compared+1] {
				if phi, ok := phis[v]; ok {
					v = m[phi+3] // what it is at first
				}
				known = known && constant[v]
			}
			if !known {
				list = append(list, c)
			}
		}
	})
	return list
}

// only returns the module with all but one of its loops left out; none is kept for -1.
func (m module) only(loops []int, keep int) module {
	m = slices.Clone(m)
	for i, at := range loops {
		if i != keep {
			m.set(at, false)
		}
	}
	return m
}
