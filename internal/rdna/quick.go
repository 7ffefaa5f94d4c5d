package rdna

import "math"

// Most instructions that kernels execute read and write whole registers of 32 bits, with no sign, move of lanes or
// modifier. They are computed from register to register; others as runner says.

// quick computes an instruction for all lanes into d, which may be a register that it reads.
type quick func(w *wave, in *Inst, d []uint32)

// quickOf is what computes an instruction so, nil if nothing does.
func quickOf(in *Inst) quick {
	if in.dpp != nil || in.omod != 0 || in.clamp || !in.dst.vector() || !in.dst.t.word() {
		return nil
	}
	if m, ok := in.row.fn.(mix); ok && m.half == 0 {
		return quickMix
	}
	if o, ok := in.row.fn.(dotBits); ok && o.bits == 8 {
		return quickDot4
	}
	for i := range in.src {
		o := &in.src[i]
		if o.abs || o.neg || !o.t.word() && (o.t != mask || o.code == constant) {
			return nil
		}
	}
	if _, ok := in.row.fn.(selectOp); ok {
		return quickSelect
	}
	if q := quickWords(in); q != nil {
		return q
	}
	return quickFloats(in)
}

// quickWords is that of functions of words; nil for others.
func quickWords(in *Inst) quick {
	switch f := in.row.fn.(type) {
	case lane1:
		return func(w *wave, in *Inst, d []uint32) {
			for l, a := range w.in(in, 0) {
				d[l] = f(a)
			}
			w.flush(&in.dst, d)
		}
	case lane2:
		return func(w *wave, in *Inst, d []uint32) {
			if o := &in.src[0]; o.code == constant && o.t != f32 { // such as of a shift
				a := uint32(o.value)
				for l, b := range w.in(in, 1) {
					d[l] = f(a, b)
				}
				w.flush(&in.dst, d)
				return
			}
			a, b := w.in(in, 0), w.in(in, 1)
			for l := range d {
				d[l] = f(a[l], b[l])
			}
			w.flush(&in.dst, d)
		}
	case lane3:
		return func(w *wave, in *Inst, d []uint32) {
			a, b, c := w.in(in, 0), w.in(in, 1), w.in(in, 2)
			for l := range d {
				d[l] = f(a[l], b[l], c[l])
			}
			w.flush(&in.dst, d)
		}
	}
	return nil
}

// quickFloats is that of functions of floats; nil for others.
func quickFloats(in *Inst) quick {
	switch f := in.row.fn.(type) {
	case laneF1:
		return func(w *wave, in *Inst, d []uint32) {
			for l, a := range w.in(in, 0) {
				d[l] = u32(f(math.Float32frombits(a)))
			}
			w.flush(&in.dst, d)
		}
	case laneF2:
		if in.Name() == "v_mul_f32" {
			return quickMul
		}
		return func(w *wave, in *Inst, d []uint32) {
			a, b := w.in(in, 0), w.in(in, 1)
			for l := range d {
				d[l] = u32(f(math.Float32frombits(a[l]), math.Float32frombits(b[l])))
			}
			w.flush(&in.dst, d)
		}
	case laneF3:
		return func(w *wave, in *Inst, d []uint32) {
			a, b, c := w.in(in, 0), w.in(in, 1), w.in(in, 2)
			for l := range d {
				d[l] = u32(f(math.Float32frombits(a[l]), math.Float32frombits(b[l]), math.Float32frombits(c[l])))
			}
			w.flush(&in.dst, d)
		}
	}
	return nil
}

// word reports whether an operand is one register as a whole.
func (t typ) word() bool { return t == b32 || t == i32 || t == f32 || t == pk }

// in is an operand in all lanes, with denormal numbers as the mode has them.
func (w *wave) in(in *Inst, i int) []uint32 {
	o, b := &in.src[i], w.words[i][:w.lanes]
	if o.vector() {
		r := w.register(o.code)
		if o.t != f32 || !w.flush32 {
			return r
		}
		for l, x := range r {
			if x&0x7f800000 == 0 {
				x &= 0x80000000
			}
			b[l] = x
		}
		return b
	}
	x := uint32(o.value)
	if o.code != constant {
		x = w.scalar32(o.code)
	}
	if o.t == f32 && w.flush32 {
		x = uint32(flush(uint64(x)))
	}
	for l := range b {
		b[l] = x
	}
	return b
}

// flush makes denormal results what the mode has for them.
func (w *wave) flush(o *operand, d []uint32) {
	if o.t != f32 || !w.flush32 {
		return
	}
	for l, x := range d {
		if x&0x7f800000 == 0 {
			d[l] = x & 0x80000000
		}
	}
}

func quickMul(w *wave, in *Inst, d []uint32) {
	a, b := w.in(in, 0), w.in(in, 1)
	for l := range d {
		d[l] = math.Float32bits(math.Float32frombits(a[l]) * math.Float32frombits(b[l]))
	}
	w.flush(&in.dst, d)
}

func quickSelect(w *wave, in *Inst, d []uint32) {
	a, b, m := w.in(in, 0), w.in(in, 1), w.scalar(in.src[2].code, w.lanes/32)
	for l := range d {
		x := a[l]
		if m>>l&1 == 1 {
			x = b[l]
		}
		d[l] = x
	}
}

func quickDot4(w *wave, in *Inst, d []uint32) {
	a, b, c := w.in(in, 0), w.in(in, 1), w.in(in, 2)
	// A byte without a sign is one with it and 256 where its upper bit is set.
	both := in.src[0].neg && in.src[1].neg
	signs := [2]bool{in.src[0].neg, in.src[1].neg}
	for l := range d {
		x, y := a[l], b[l]
		if both {
			d[l] = c[l] + uint32(int32(int8(x))*int32(int8(y))+int32(int8(x>>8))*int32(int8(y>>8))+
				int32(int8(x>>16))*int32(int8(y>>16))+int32(int8(x>>24))*int32(int8(y>>24)))
			continue
		}
		d[l] = c[l] + uint32(dotFields(x, y, 8, signs))
	}
}

// quickMix is a fused multiply-add of operands of 32 or 16 bits.
func quickMix(w *wave, in *Inst, d []uint32) {
	var x [3][]uint32
	for i := range x {
		o, b := &in.src[i], w.words[i][:w.lanes]
		x[i] = b
		switch {
		case o.vector() && o.t == f32:
			copy(b, w.in(in, i))
		case o.vector():
			shift := 0
			if o.hi {
				shift = 16
			}
			for l, h := range w.register(o.code) {
				b[l] = u32(float32(f16(uint64(h >> shift & 0xffff))))
			}
		default:
			w.read(&operand{t: o.t, code: o.code, value: o.value, hi: o.hi}, &w.buf[i])
			y := u32(float32(number(w.buf[i][0], o.t)))
			for l := range b {
				b[l] = y
			}
		}
		for l := range b {
			if o.abs {
				b[l] &= 0x7fffffff
			}
			if o.neg {
				b[l] ^= 0x80000000
			}
		}
	}
	a, b, c := x[0], x[1], x[2]
	for l := range d {
		d[l] = u32(fma32(math.Float32frombits(a[l]), math.Float32frombits(b[l]), math.Float32frombits(c[l])))
	}
	w.flush(&in.dst, d)
}

// runner makes one of it.
func (q quick) runner() func(w *wave, in *Inst) {
	return func(w *wave, in *Inst) {
		r := w.register(in.dst.code)
		if w.exec == w.all {
			q(w, in, r)
			return
		}
		d := w.words[3][:w.lanes]
		q(w, in, d)
		keep(r, d, w.exec)
	}
}

// keep writes the lanes that are on.
func keep(r, d []uint32, on uint64) {
	for l, x := range d {
		if on>>l&1 == 1 {
			r[l] = x
		}
	}
}

// quickBoth is both halves of VOPD: both read before either writes.
func quickBoth(x, y quick) func(w *wave, in *Inst) {
	return func(w *wave, in *Inst) {
		first, second := w.words[3][:w.lanes], w.words[4][:w.lanes]
		x(w, in, first)
		y(w, in.second, second)
		keep(w.register(in.second.dst.code), second, w.exec)
		keep(w.register(in.dst.code), first, w.exec)
	}
}
