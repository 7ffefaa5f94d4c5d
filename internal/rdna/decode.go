package rdna

import (
	"fmt"
	"math/bits"
)

// Program is machine code whose instructions are decoded.
type Program struct {
	Gen   Gen
	Wave  int // lanes of a wave: 32 or 64
	Code  []uint32
	insts []*Inst // by their first word; nil where no instruction begins that can be reached

	vectors int // registers of lanes that instructions name
	// The least bytes that an instruction takes of shared memory and of buffers, as a shift: what is told apart there.
	shared, global int
}

// Decode reads the instructions that can be reached from the first word. Of what lies elsewhere, such as tables, it
// asks nothing.
func Decode(gen Gen, wave int, code []uint32) (*Program, error) {
	p := &Program{Gen: gen, Wave: wave, Code: code, insts: make([]*Inst, len(code)), vectors: 1, shared: 2, global: 2}
	todo := []int{0}
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for {
			if pc < 0 || pc >= len(code) {
				return nil, fmt.Errorf("at %#x: no code", 4*pc)
			}
			if p.insts[pc] != nil {
				break
			}
			in, err := decode(gen, wave, code, pc)
			if err != nil {
				return nil, fmt.Errorf("at %#x, %08x: %w", 4*pc, code[pc], err)
			}
			p.insts[pc] = in
			p.vectors = max(p.vectors, in.reads.vectors(), in.writes.vectors())
			switch n := in.least(); {
			case n == 0:
			case in.row.form == ds:
				p.shared = min(p.shared, bits.Len(uint(n))-1)
			default:
				p.global = min(p.global, bits.Len(uint(n))-1)
			}
			if _, is := in.row.fn.(branch); is {
				todo = append(todo, in.target())
				if in.row.op[gen] == branchAlways {
					break
				}
			}
			if _, is := in.row.fn.(endProgram); is {
				break
			}
			pc += len(in.words)
		}
	}
	return p, nil
}

const branchAlways = 32

// Insts calls f with every instruction in the order of the code.
func (p *Program) Insts(f func(*Inst)) {
	for _, in := range p.insts {
		if in != nil {
			f(in)
		}
	}
}

func (in *Inst) target() int { return in.PC + 1 + int(in.imm) }

// encoding tells a form by the upper bits of the first word.
type encoding struct {
	form  form
	shift int
	bits  uint32
	words int
	op    func(w uint64) int
	gens  int // a bit for each generation
	parse func(d *decoder)
}

const (
	both   = 1<<GFX11 | 1<<GFX12
	old    = 1 << GFX11
	recent = 1 << GFX12
)

func bitsOf(high, low int) func(w uint64) int {
	return func(w uint64) int { return int(w >> low & (1<<(high-low+1) - 1)) }
}

// encodings are tried in turn: those that begin with more fixed bits stand first.
var encodings = []encoding{
	{sop1, 23, 0b101111101, 1, bitsOf(15, 8), both, (*decoder).sop1},
	{sopc, 23, 0b101111110, 1, bitsOf(22, 16), both, (*decoder).sopc},
	{sopp, 23, 0b101111111, 1, bitsOf(22, 16), both, (*decoder).sopp},
	{sopk, 28, 0b1011, 1, bitsOf(27, 23), both, (*decoder).sopk},
	{sop2, 30, 0b10, 1, bitsOf(29, 23), both, (*decoder).sop2},
	{vop1, 25, 0b0111111, 1, bitsOf(16, 9), both, (*decoder).vop1},
	{vopc, 25, 0b0111110, 1, bitsOf(24, 17), both, (*decoder).vopc},
	{vop2, 31, 0, 1, bitsOf(30, 25), both, (*decoder).vop2},
	{vop3p, 24, 0b11001100, 2, bitsOf(22, 16), both, (*decoder).vop3p},
	{vopd, 26, 0b110010, 2, bitsOf(25, 22), both, (*decoder).vopd},
	{vop3, 26, 0b110101, 2, bitsOf(25, 16), both, (*decoder).vop3},
	{ds, 26, 0b110110, 2, bitsOf(25, 18), both, (*decoder).ds},
	{smem, 26, 0b111101, 2, bitsOf(18, 13), recent, (*decoder).smem},
	{smem, 26, 0b111101, 2, bitsOf(25, 18), old, (*decoder).smem},
	{mubuf, 26, 0b111000, 2, bitsOf(25, 18), old, (*decoder).mubuf},
	{mubuf, 26, 0b110001, 3, bitsOf(21, 14), recent, (*decoder).mubuf},
	{flat, 26, 0b110111, 2, bitsOf(24, 18), old, (*decoder).flat},
	{scratch, 24, 0b11101101, 3, bitsOf(21, 14), recent, (*decoder).flat},
	{global, 24, 0b11101110, 3, bitsOf(21, 14), recent, (*decoder).flat},
}

// decoder decodes one instruction.
type decoder struct {
	in   *Inst
	w    uint64 // the first two words
	code []uint32
	err  error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

func decode(gen Gen, wave int, code []uint32, pc int) (*Inst, error) {
	for i := range encodings {
		e := &encodings[i]
		if e.gens>>gen&1 == 0 || code[pc]>>e.shift != e.bits {
			continue
		}
		d := &decoder{in: &Inst{gen: gen, wave: wave, PC: pc}, code: code}
		d.take(e.words)
		f, op := e.form, 0
		if d.err == nil {
			op = e.op(d.w)
			f = d.segment(f)
			if f != vopd {
				d.in.row = index[gen][f][op]
				if d.in.row == nil && f == vop3 {
					d.in.row = index[gen][vop3sd][op]
				}
				if d.in.row == nil {
					d.fail("%s: no instruction of opcode %d in form %d", gen, op, f)
				}
			}
		}
		if d.err == nil {
			e.parse(d)
		}
		if d.err == nil {
			d.finish()
		}
		return d.in, d.err
	}
	return nil, fmt.Errorf("no instruction of %s begins so", gen)
}

// segment tells the kinds of memory of gfx11's flat form apart.
func (d *decoder) segment(f form) form {
	if f == flat {
		return [...]form{flat, scratch, global, flat}[d.w>>16&3]
	}
	return f
}

// take makes the instruction so many words long.
func (d *decoder) take(words int) {
	if d.in.PC+words > len(d.code) {
		d.fail("the code ends within the instruction")
		return
	}
	d.in.words = d.code[d.in.PC : d.in.PC+words]
	d.w = uint64(d.in.words[0])
	if words > 1 {
		d.w |= uint64(d.in.words[1]) << 32
	}
}

// next takes one word more and returns it.
func (d *decoder) next() uint32 {
	d.take(len(d.in.words) + 1)
	if d.err != nil {
		return 0
	}
	return d.in.words[len(d.in.words)-1]
}

func (d *decoder) bits(high, low int) int { return bitsOf(high, low)(d.w) }
func (d *decoder) flag(n int) bool        { return d.w>>n&1 == 1 }

// source reads an operand. Its literal, if any, is the word behind those that the instruction has so far: all literals
// of an instruction are the same word.
func (d *decoder) source(code int, t typ, lit *uint32) operand {
	o := operand{t: t, code: code, raw: code}
	switch v, ok := inlineConstant(code, t); {
	case code < scalars || code >= firstVector || code == sccCode:
	case ok:
		o.code, o.value = constant, v
	case code == literalCode:
		o.code, o.value = constant, literalConstant(*lit, t)
	default:
		d.fail("operand %d", code)
	}
	return o
}

// sources reads operands into the fields that a row has, of the codes in their order.
func (d *decoder) sources(codes ...int) {
	row, lit, has := d.in.row, uint32(0), false
	need := func() {
		if !has {
			has, lit = true, d.next()
		}
	}
	fields := 0
	for i := range row.src {
		if row.at[i] == field || row.at[i] == scalar || row.at[i] == carry && d.in.long {
			if fields < len(codes) && codes[fields] == literalCode {
				need()
			}
			fields++
		}
		if row.at[i] == literal {
			need()
		}
	}
	fields = 0
	for i, t := range row.src {
		var o operand
		switch {
		case row.at[i] == result:
			o = d.in.dst
			o.t = t
		case row.at[i] == literal:
			o = operand{t: t, code: constant, raw: literalCode, value: literalConstant(lit, t)}
		case row.at[i] == carry && !d.in.long:
			o = operand{t: mask, code: vccLo}
		case fields < len(codes):
			o = d.source(codes[fields], t, &lit)
			fields++
		default:
			d.fail("%s has an operand without a field", row.name[d.in.gen])
		}
		d.in.src = append(d.in.src, o)
	}
}

func (d *decoder) sop1() {
	d.in.dst = operand{t: d.in.row.dst, code: d.bits(22, 16)}
	d.sources(d.bits(7, 0))
}

func (d *decoder) sop2() {
	d.in.dst = operand{t: d.in.row.dst, code: d.bits(22, 16)}
	d.sources(d.bits(7, 0), d.bits(15, 8))
}

func (d *decoder) sopc() { d.sources(d.bits(7, 0), d.bits(15, 8)) }

func (d *decoder) sopk() {
	d.in.imm = int64(int16(d.w))
	d.in.dst = operand{t: d.in.row.dst, code: d.bits(22, 16)}
	if d.in.row.dst == none { // the field is an operand
		d.in.dst.t, d.in.dst.code = b32, d.bits(22, 16)
	}
	d.sources()
}

func (d *decoder) sopp() { d.in.imm = int64(int16(d.w)) }

// lanes reads the word that moves lanes, if the code of the first operand says that there is one, and returns the
// operand's code.
func (d *decoder) lanes(code int) int {
	const dpp16, dpp8, dpp8fi = 250, 233, 234
	if code != dpp16 && code != dpp8 && code != dpp8fi {
		return code
	}
	w := d.next()
	if code == dpp16 {
		d.in.dpp = &dpp{ctrl: w >> 8 & 0x1ff, fetchInactive: w>>18&1 == 1, zero: w>>19&1 == 1, banks: w >> 24 & 15, rowMask: w >> 28}
	} else {
		d.in.dpp = &dpp{eight: true, ctrl: w >> 8, fetchInactive: code == dpp8fi, banks: 15, rowMask: 15}
	}
	return firstVector + int(w&255)
}

// shortHalves splits fields of short forms, in which registers of 16 bits have a bit for the half.
func (d *decoder) shortHalves() {
	split := func(o *operand) {
		if o.t.half() && o.vector() {
			o.hi, o.code = o.code&128 != 0, o.code&^128
		}
	}
	split(&d.in.dst)
	for i := range d.in.src {
		if d.in.row.at[i] == field {
			split(&d.in.src[i])
		}
		if d.in.row.at[i] == result {
			d.in.src[i].hi, d.in.src[i].code = d.in.dst.hi, d.in.dst.code
		}
	}
}

// modifiers are those that the word of DPP has.
func (d *decoder) dppModifiers() {
	if d.in.dpp == nil || d.in.dpp.eight {
		return
	}
	w := d.in.words[len(d.in.words)-1]
	for i := range min(2, len(d.in.src)) {
		d.in.src[i].neg = w>>(20+2*i)&1 == 1
		d.in.src[i].abs = w>>(21+2*i)&1 == 1
	}
}

func (d *decoder) vop1() {
	d.vdst(d.bits(24, 17))
	d.sources(d.lanes(d.bits(8, 0)))
	d.shortHalves()
	d.dppModifiers()
}

// vdst is the result in a register of lanes, or in a scalar one.
func (d *decoder) vdst(n int) {
	d.in.dst = operand{t: d.in.row.dst, code: firstVector + n}
	if d.in.row.dst == s32 {
		d.in.dst.code = n
	}
}

func (d *decoder) vop2() {
	d.vdst(d.bits(24, 17))
	d.sources(d.lanes(d.bits(8, 0)), firstVector+d.bits(16, 9))
	d.shortHalves()
	d.dppModifiers()
	if d.in.row.carries() {
		d.in.sdst = operand{t: mask, code: vccLo}
	}
}

func (d *decoder) vopc() {
	d.in.dst = operand{t: mask, code: vccLo}
	d.sources(d.lanes(d.bits(8, 0)), firstVector+d.bits(16, 9))
	d.shortHalves()
	d.dppModifiers()
}

func (d *decoder) vop3() {
	in := d.in
	in.long = true
	switch {
	case in.row.dst == mask || in.row.dst == s32:
		in.dst = operand{t: in.row.dst, code: d.bits(7, 0)}
	default:
		d.vdst(d.bits(7, 0))
	}
	w := d.w
	d.sources(d.lanes(d.bits(40, 32)), d.bits(49, 41), d.bits(58, 50))
	n := 0
	for i := range in.src {
		o := &in.src[i]
		if in.row.at[i] == result {
			continue
		}
		o.neg = w>>(61+n)&1 == 1
		if in.row.carries() {
			n++
			continue
		}
		o.abs = w>>(8+n)&1 == 1
		o.hi = w>>(11+n)&1 == 1
		n++
	}
	in.omod, in.clamp = bitsOf(60, 59)(w), w>>15&1 == 1
	if in.row.carries() {
		in.sdst = operand{t: mask, code: bitsOf(14, 8)(w)}
		return
	}
	in.dst.hi = w>>14&1 == 1
	for i := range in.src {
		if in.row.at[i] == result {
			in.src[i].hi = in.dst.hi
		}
	}
	if in.dpp != nil && !in.dpp.eight {
		if x := in.words[len(in.words)-1] >> 20 & 15; x != 0 {
			d.fail("signs in the word of DPP")
		}
	}
}

func (d *decoder) vop3p() {
	in, w := d.in, d.w
	in.long = true
	d.vdst(d.bits(7, 0))
	in.clamp = d.flag(15)
	low, high := d.bits(13, 11), d.bits(60, 59)|d.bits(14, 14)<<2
	_, isMix := in.row.fn.(mix)
	if isMix {
		// An operand is a half where a bit says so, and then a constant of 16 bits.
		r := *in.row
		r.src = append([]typ(nil), r.src...)
		for i := range r.src {
			if high>>i&1 == 1 {
				r.src[i] = f16t
			}
		}
		in.row = &r
	}
	d.sources(d.lanes(d.bits(40, 32)), d.bits(49, 41), d.bits(58, 50))
	for i := range in.src {
		o := &in.src[i]
		o.neg, o.negHi = w>>(61+i)&1 == 1, w>>(8+i)&1 == 1
		o.hi, o.hiHi = low>>i&1 == 1, high>>i&1 == 1
		if isMix {
			o.abs = o.negHi
		}
	}
	if m, ok := in.row.fn.(mix); ok {
		in.dst.hi = m.half == 2
	}
}

func (d *decoder) vopd() {
	in := d.in
	half := func(op, vdst, src0, src1 int) *Inst {
		r := byName[GFX11][vopdHalves[op]]
		if r == nil {
			d.fail("no instruction of opcode %d in one half of VOPD", op)
			return nil
		}
		x := &Inst{row: r, gen: in.gen, wave: in.wave, PC: in.PC, dst: operand{t: r.dst, code: firstVector + vdst}}
		lit := uint32(0)
		for _, at := range r.at {
			if at == literal || src0 == literalCode {
				if len(in.words) == 2 {
					d.next()
				}
				if d.err == nil {
					lit = in.words[2]
				}
			}
		}
		fields := []int{src0, firstVector + src1}
		for i, t := range r.src {
			switch r.at[i] {
			case result:
				x.src = append(x.src, operand{t: t, code: x.dst.code})
			case literal:
				x.src = append(x.src, operand{t: t, code: constant, raw: literalCode, value: literalConstant(lit, t)})
			case carry:
				x.src = append(x.src, operand{t: mask, code: vccLo})
			default:
				x.src = append(x.src, d.source(fields[0], t, &lit))
				fields = fields[1:]
			}
		}
		return x
	}
	x := half(d.bits(25, 22), d.bits(63, 56), d.bits(8, 0), d.bits(16, 9))
	y := half(d.bits(21, 17), d.bits(55, 49)<<1|^d.bits(63, 56)&1, d.bits(40, 32), d.bits(48, 41))
	if d.err != nil {
		return
	}
	words := in.words
	*in = *x
	in.words, in.second, in.half, y.half = words, y, true, true
}

// byName finds rows.
var byName = func() (x [generations]map[string]*row) {
	for g := range x {
		x[g] = map[string]*row{}
	}
	for _, r := range rows {
		for g := range x {
			if r.op[g] >= 0 {
				x[g][r.name[g]] = r
			}
		}
	}
	return x
}()

func (d *decoder) ds() {
	m := &d.in.mem
	m.addr, m.data, m.data2 = d.bits(39, 32), d.bits(47, 40), d.bits(55, 48)
	m.offsets = [2]int{d.bits(7, 0), d.bits(15, 8)}
	d.in.dst = operand{t: b32, code: firstVector + d.bits(63, 56)}
	if d.in.gen == GFX11 && d.flag(17) {
		d.fail("global data share")
	}
}

func (d *decoder) smem() {
	in := d.in
	in.dst = operand{t: b32, code: d.bits(12, 6)}
	in.mem.addr, in.mem.saddr = d.bits(5, 0)*2, d.bits(63, 57)
	if in.gen == GFX12 {
		in.imm = int64(int32(d.bits(55, 32)<<8)) >> 8
	} else {
		in.imm = int64(int32(d.bits(52, 32)<<11)) >> 11
	}
}

func (d *decoder) flat() {
	in, m := d.in, &d.in.mem
	if in.gen == GFX12 {
		in.dst = operand{t: b32, code: firstVector + d.bits(39, 32)}
		m.saddr, m.vaddr, m.scope, m.th = d.bits(6, 0), d.flag(49), d.bits(51, 50), d.bits(54, 52)
		m.data, m.addr = d.bits(62, 55), int(in.words[2]&255)
		in.imm = int64(int32(in.words[2]) >> 8)
		return
	}
	in.dst = operand{t: b32, code: firstVector + d.bits(63, 56)}
	m.addr, m.data, m.saddr, m.vaddr = d.bits(39, 32), d.bits(47, 40), d.bits(54, 48), d.flag(55)
	m.glc, m.dlc, m.slc = d.flag(14), d.flag(13), d.flag(15)
	in.imm = int64(int32(d.bits(12, 0)<<19)) >> 19
}

func (d *decoder) mubuf() {
	in, m := d.in, &d.in.mem
	var indexed bool
	if in.gen == GFX12 {
		in.dst = operand{t: b32, code: firstVector + d.bits(39, 32)}
		m.addr, m.saddr, m.resource, m.scope, m.th = int(in.words[2]&255), d.bits(6, 0), d.bits(49, 41), d.bits(51, 50), d.bits(54, 52)
		m.vaddr, indexed = d.flag(62), d.flag(63)
		in.imm = int64(int32(in.words[2]) >> 8)
	} else {
		in.dst = operand{t: b32, code: firstVector + d.bits(47, 40)}
		m.addr, m.saddr, m.resource = d.bits(39, 32), d.bits(63, 56), 4*d.bits(52, 48)
		m.glc, m.dlc, m.slc = d.flag(14), d.flag(13), d.flag(12)
		m.vaddr, indexed = d.flag(54), d.flag(55)
		in.imm = int64(d.bits(11, 0))
	}
	m.data = in.dst.code - firstVector
	m.soffset = m.saddr
	if x, ok := inlineConstant(m.saddr, b32); ok {
		m.saddr, in.imm = nullReg, in.imm+int64(x)
	}
	if indexed {
		d.fail("a buffer of records")
	}
}

// finish finds the registers that the instruction uses and what executes it.
func (d *decoder) finish() {
	in := d.in
	for _, x := range []*Inst{in, in.second} {
		if x == nil {
			continue
		}
		if x.dst.t != none && in.row.form < smem || x.row.form >= vop1 && x.row.form <= vop3p {
			in.use(&in.writes, x.dst.code, x.dst.t.registers(in.wave))
		}
		if x.sdst.t != none {
			in.use(&in.writes, x.sdst.code, x.sdst.t.registers(in.wave))
		}
		for i := range x.src {
			if o := &x.src[i]; o.code != constant {
				in.use(&in.reads, o.code, o.t.registers(in.wave))
			}
		}
	}
	if _, is := in.row.fn.(divFmas); is {
		in.use(&in.reads, vccLo, in.wave/32)
	}
	in.memoryRegisters()
	if in.beyond {
		d.fail("%s: a register beyond the last", in.Name())
	}
	in.run = runner(in)
	if in.run == nil {
		d.fail("%s: nothing executes it", in.Name())
	}
}
