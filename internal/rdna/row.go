package rdna

import (
	"fmt"
	"regexp"
	"strings"
)

// form is an encoding. Vector instructions of one and two operands and comparisons have a second, longer encoding,
// VOP3, in which their opcodes are shifted: see longForms.
type form int

const (
	sop1 form = iota
	sop2
	sopc
	sopk
	sopp
	smem
	vop1
	vop2
	vopc
	vop3
	vop3sd // VOP3 with a second result, a mask of lanes
	vop3p
	vopd
	ds
	flat
	global
	scratch
	mubuf
	forms
)

// longForms is where the opcodes of short forms begin among those of VOP3.
var longForms = map[form]int{vopc: 0, vop2: 256, vop1: 384}

// typ is how an operand's bits are read.
type typ int

const (
	none typ = iota
	b16
	i16
	f16t
	bf16t
	b32
	i32
	f32
	b64
	i64
	f64
	pk   // two numbers of 16 bits
	mask // a bit a lane, in one scalar register or two
	s32  // a result in a scalar register
	v2   // two to eight registers
	v3
	v4
	v8
)

var types = map[string]typ{"b16": b16, "u16": b16, "i16": i16, "f16": f16t, "bf16": bf16t, "b32": b32, "u32": b32, "i32": i32, "f32": f32,
	"b64": b64, "u64": b64, "i64": i64, "f64": f64, "pk": pk, "m": mask, "s32": s32, "v2": v2, "v3": v3, "v4": v4, "v8": v8}

// registers is how many an operand has.
func (t typ) registers(wave int) int {
	switch t {
	case b64, i64, f64, v2:
		return 2
	case mask:
		return wave / 32
	case v3:
		return 3
	case v4:
		return 4
	case v8:
		return 8
	}
	return 1
}

func (t typ) half() bool  { return t == b16 || t == i16 || t == f16t || t == bf16t }
func (t typ) wide() bool  { return t == b64 || t == i64 || t == f64 }
func (t typ) float() bool { return t == f16t || t == bf16t || t == f32 || t == f64 }

// signBit is the number of the bit that a minus sign flips.
func (t typ) signBit() uint64 {
	switch {
	case t.half():
		return 1 << 15
	case t.wide():
		return 1 << 63
	}
	return 1 << 31
}

// place says where an operand stands if not in a field of its own.
type place int

const (
	field   place = iota
	result        // the register of the result
	literal       // the word behind the instruction
	carry         // VCC in the short form
	scalar        // a register of one value, whatever the lane
)

// row is an instruction.
type row struct {
	form form
	op   [generations]int // -1 where a generation lacks it
	name [generations]string
	dst  typ
	src  []typ
	at   []place
	// fn is a function of lanes, of scalars, of memory, or of the whole wave: see execute in alu.go.
	fn any
	// class is how it counts.
	class class
}

type class int

const (
	other class = iota
	waits       // or hints
	vectorOp
	scalarOp
	slowOp // exponentials, logarithms, roots, reciprocals, sines
	matrixOp
	classes
)

// spec is a line of a table: the opcodes in gfx11 and gfx12, the name, or both names with a bar between, and the types
// of result and operands. A type behind "=" is the result's register, behind "k" the literal, behind "c" VCC where no
// field names it, behind "s" in one scalar register.
type spec struct {
	op11, op12  int
	name, types string
	fn          any
}

// slow are vector instructions that take four times as long.
var slow = regexp.MustCompile("^v_(s_)?(exp|log|rcp|rsq|sqrt|sin|cos)_")

// rows are all instructions.
var rows = func() (list []*row) {
	for _, t := range []struct {
		form  form
		lines []spec
	}{
		{sop1, sop1Rows}, {sop2, sop2Rows}, {sopc, sopcRows}, {sopk, sopkRows}, {sopp, soppRows}, {smem, smemRows},
		{vop1, vop1Rows}, {vop2, vop2Rows}, {vopc, vopcRows()}, {vop3, vop3Rows}, {vop3sd, vop3sdRows}, {vop3p, vop3pRows},
		{ds, dsRows}, {global, globalRows}, {scratch, scratchRows()}, {mubuf, mubufRows},
	} {
		for _, s := range t.lines {
			list = append(list, s.row(t.form))
		}
	}
	return list
}()

func (s spec) row(f form) *row {
	r := &row{form: f, op: [generations]int{s.op11, s.op12}, fn: s.fn}
	first, second, two := strings.Cut(s.name, "|")
	if !two {
		second = first
	}
	r.name = [generations]string{first, second}
	for i, word := range strings.Fields(s.types) {
		at := field
		for prefix, p := range map[string]place{"=": result, "k": literal, "c": carry, "s": scalar} {
			if rest, ok := strings.CutPrefix(word, prefix); ok && (word != "s32" || i > 0) {
				word, at = rest, p
				break
			}
		}
		if word == "32" { // of s32
			word = "b32"
		}
		t, ok := types[word]
		switch {
		case word == "-":
		case !ok:
			panic(fmt.Sprintf("%s: type %q", s.name, word))
		}
		if i == 0 {
			r.dst = t
			continue
		}
		r.src, r.at = append(r.src, t), append(r.at, at)
	}
	switch f {
	case sop1, sop2, sopc, sopk:
		r.class = scalarOp
	case vop1, vop2, vopc, vop3, vop3sd, vop3p:
		r.class = vectorOp
	}
	switch s.fn.(type) {
	case hint, waitOne, waitTwo, waitMany, waitAll:
		r.class = waits
	case matmul:
		r.class = matrixOp
	}
	if slow.MatchString(r.name[0]) {
		r.class = slowOp
	}
	return r
}

// index finds rows by generation, form and opcode.
var index = func() (x [generations][forms]map[int]*row) {
	put := func(g Gen, f form, op int, r *row) {
		if x[g][f] == nil {
			x[g][f] = map[int]*row{}
		}
		if other := x[g][f][op]; other != nil {
			panic(fmt.Sprintf("%s: %s and %s have opcode %d", g, other.name[g], r.name[g], op))
		}
		x[g][f][op] = r
	}
	for _, r := range rows {
		for g, op := range r.op {
			if op < 0 {
				continue
			}
			put(Gen(g), r.form, op, r)
			if first, ok := longForms[r.form]; ok {
				f := vop3
				if r.carries() {
					f = vop3sd
				}
				put(Gen(g), f, first+op, r)
			}
		}
	}
	return x
}()

// carries reports whether the instruction has a mask as a second result.
func (r *row) carries() bool {
	switch r.fn.(type) {
	case carryOp, divScale, wideMad:
		return true
	}
	return false
}
