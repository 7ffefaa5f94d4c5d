package rdna

import "math"

// runs is what executes an instruction as a whole.
type runs interface{ run(w *wave, in *Inst) }

// runner returns what executes the instruction, by the kind of its row's function.
func runner(in *Inst) func(w *wave, in *Inst) {
	if in.second != nil {
		if x, y := quickOf(in), quickOf(in.second); x != nil && y != nil {
			return quickBoth(x, y)
		}
		return runBoth
	}
	if in.row.form >= vop1 {
		if q := quickOf(in); q != nil {
			return q.runner()
		}
	}
	if in.row.form < vop1 {
		if f := scalarRunner(in.row.fn); f != nil {
			return f
		}
	} else if f := laneRunner(in.row.saturating(in)); f != nil {
		return f
	}
	if r, ok := in.row.fn.(runs); ok {
		return r.run
	}
	return nil
}

// saturating returns the row's function, or what it is where an integer result is clamped; nil if that is not known.
func (r *row) saturating(in *Inst) any {
	if !in.clamp || in.dst.t.float() {
		return r.fn
	}
	f, ok := saturated[r.name[in.gen]]
	if !ok {
		return nil
	}
	return f
}

// saturated are sums that are clamped to the range of their type.
var saturated = map[string]lane2{
	"v_add_nc_u32": func(a, b uint32) uint32 { return uint32(min(uint64(a)+uint64(b), math.MaxUint32)) },
	"v_sub_nc_u32": func(a, b uint32) uint32 { return a - min(a, b) },
	"v_add_nc_i32": func(a, b uint32) uint32 { return saturate(int64(int32(a)) + int64(int32(b))) },
	"v_sub_nc_i32": func(a, b uint32) uint32 { return saturate(int64(int32(a)) - int64(int32(b))) },
	"v_add_nc_u16": func(a, b uint32) uint32 { return min(a&0xffff+b&0xffff, math.MaxUint16) },
	"v_sub_nc_u16": func(a, b uint32) uint32 { return a&0xffff - min(a&0xffff, b&0xffff) },
}

func saturate(x int64) uint32 { return uint32(max(min(x, math.MaxInt32), math.MinInt32)) }

// fetch reads operand i of all lanes, with its signs.
func (w *wave) fetch(in *Inst, i int) *lanes {
	o, b := &in.src[i], &w.buf[i]
	w.read(o, b)
	return b
}

func (w *wave) read(o *operand, b *lanes) {
	n := w.lanes
	switch {
	case o.code == constant || !o.vector():
		x := o.value
		if o.code != constant {
			x = w.scalar(o.code, o.t.registers(w.lanes))
			if o.t.half() && o.hi {
				x >>= 16
			}
		}
		for l := range n {
			b[l] = x
		}
	case o.t.wide():
		low, high := w.register(o.code), w.register(o.code+1)
		for l := range n {
			b[l] = uint64(low[l]) | uint64(high[l])<<32
		}
	case o.t.half() && o.hi:
		for l, x := range w.register(o.code) {
			b[l] = uint64(x >> 16)
		}
	default:
		for l, x := range w.register(o.code) {
			b[l] = uint64(x)
		}
	}
	if o.t.half() {
		for l := range n {
			b[l] &= 0xffff
		}
	}
	if o.t == f32 && w.flush32 {
		for l := range n {
			if x := b[l]; x&0x7f800000 == 0 {
				b[l] = x & 0x80000000
			}
		}
	}
	if (o.abs || o.neg) && o.t != mask {
		sign := o.t.signBit()
		for l := range n {
			if o.abs {
				b[l] &^= sign
			}
			if o.neg {
				b[l] ^= sign
			}
		}
	}
}

// store writes the result of the lanes that are on.
func (w *wave) store(in *Inst, o *operand, on uint64) {
	n, d := w.lanes, &w.out
	if o.t.float() && (in.omod != 0 || in.clamp) {
		for l := range n {
			d[l] = w.limit(d[l], o.t, in.omod, in.clamp)
		}
	}
	if o.t == f32 && w.flush32 {
		for l := range n {
			if x := d[l]; x&0x7f800000 == 0 {
				d[l] = x & 0x80000000
			}
		}
	}
	r := w.register(o.code)
	switch {
	case o.t.wide():
		high := w.register(o.code + 1)
		for l := range n {
			if on>>l&1 == 1 {
				r[l], high[l] = uint32(d[l]), uint32(d[l]>>32)
			}
		}
	case o.t.half() && o.hi:
		for l := range n {
			if on>>l&1 == 1 {
				r[l] = r[l]&0xffff | uint32(d[l])<<16
			}
		}
	case o.t.half():
		for l := range n {
			if on>>l&1 == 1 {
				r[l] = r[l]&^0xffff | uint32(d[l])&0xffff
			}
		}
	case on == w.all:
		for l := range r {
			r[l] = uint32(d[l])
		}
	default:
		for l := range r {
			if on>>l&1 == 1 {
				r[l] = uint32(d[l])
			}
		}
	}
}

// limit multiplies a result by the output modifier and clamps it to 0 to 1.
func (w *wave) limit(b uint64, t typ, omod int, clamp bool) uint64 {
	x := number(b, t) * [...]float64{1, 2, 4, .5}[omod]
	if clamp {
		if x != x {
			x = 0
		}
		x = min(max(x, 0), 1)
	}
	return w.encode(x, t)
}

// number reads bits as a number of a type.
func number(b uint64, t typ) float64 {
	switch t {
	case f16t:
		return f16(b & 0xffff)
	case bf16t:
		return bf16(b & 0xffff)
	case f32:
		return float64(fval(b))
	case f64:
		return math.Float64frombits(b)
	case i16:
		return float64(int16(b))
	case b16:
		return float64(uint16(b))
	case i32:
		return float64(int32(b))
	}
	return float64(uint32(b))
}

// encode rounds a number to a type.
func (w *wave) encode(x float64, t typ) uint64 {
	switch t {
	case f16t:
		return toF16(x, w.rtz16)
	case bf16t:
		return toBF16(x)
	case f32:
		return fbits(float32(x))
	case f64:
		return math.Float64bits(x)
	}
	return uint64(uint32(int64(x)))
}

// operands reads all operands and returns the lanes that write.
func (w *wave) operands(in *Inst) uint64 {
	on := w.exec
	for i := range in.src {
		w.fetch(in, i)
	}
	if in.dpp != nil {
		on = w.moveLanes(in.dpp, &w.buf[0], on)
	}
	return on
}

// laneRunner makes a runner of a function of lanes.
func laneRunner(fn any) func(w *wave, in *Inst) {
	var each func(w *wave, in *Inst)
	switch f := fn.(type) {
	case lane1:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = uint64(f(uint32(w.buf[0][l])))
			}
		}
	case lane2:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = uint64(f(uint32(w.buf[0][l]), uint32(w.buf[1][l])))
			}
		}
	case lane3:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = uint64(f(uint32(w.buf[0][l]), uint32(w.buf[1][l]), uint32(w.buf[2][l])))
			}
		}
	case laneF1:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = fbits(f(fval(w.buf[0][l])))
			}
		}
	case laneF2:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = fbits(f(fval(w.buf[0][l]), fval(w.buf[1][l])))
			}
		}
	case laneF3:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = fbits(f(fval(w.buf[0][l]), fval(w.buf[1][l]), fval(w.buf[2][l])))
			}
		}
	case laneH1:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = w.encode(f(w.number(in, 0, l)), in.dst.t)
			}
		}
	case laneH2:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = w.encode(f(w.number(in, 0, l), w.number(in, 1, l)), in.dst.t)
			}
		}
	case laneH3:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = w.encode(f(w.number(in, 0, l), w.number(in, 1, l), w.number(in, 2, l)), in.dst.t)
			}
		}
	case laneW2:
		each = func(w *wave, in *Inst) {
			for l := range w.lanes {
				w.out[l] = f(w.buf[0][l], w.buf[1][l])
			}
		}
	default:
		return nil
	}
	return func(w *wave, in *Inst) {
		on := w.operands(in)
		each(w, in)
		w.store(in, &in.dst, on)
	}
}

func (w *wave) number(in *Inst, i, l int) float64 { return number(w.buf[i][l], in.src[i].t) }

// runBoth executes both halves of VOPD: both read before either writes.
func runBoth(w *wave, in *Inst) {
	laneOf(w, in)
	first := w.out
	laneOf(w, in.second)
	w.store(in.second, &in.second.dst, w.exec)
	w.out = first
	w.store(in, &in.dst, w.exec)
}

// laneOf computes a half of VOPD without writing it.
func laneOf(w *wave, in *Inst) {
	w.operands(in)
	switch f := in.row.fn.(type) {
	case lane1:
		w.out = w.buf[0]
	case lane2:
		for l := range w.lanes {
			w.out[l] = uint64(f(uint32(w.buf[0][l]), uint32(w.buf[1][l])))
		}
	case laneF2:
		for l := range w.lanes {
			w.out[l] = fbits(f(fval(w.buf[0][l]), fval(w.buf[1][l])))
		}
	case laneF3:
		for l := range w.lanes {
			w.out[l] = fbits(f(fval(w.buf[0][l]), fval(w.buf[1][l]), fval(w.buf[2][l])))
		}
	case selectOp:
		f.lanes(w)
	case dot2:
		f.lanes(w, in)
	}
}

type (
	// compareOp compares lanes into a mask, or into EXEC.
	compareOp struct {
		fn   any
		exec bool
	}
	// selectOp takes the second operand where the mask says so.
	selectOp struct{}
	// carryOp adds or subtracts with a carry out.
	carryOp func(a, b, carry uint64) (uint64, bool)
	// wideMad multiplies and adds 64 bits.
	wideMad  func(a, b, c uint64) (uint64, bool)
	divScale struct{}
	divFmas  struct{}
	swapOp   struct{}
	// onScalar computes a function of one scalar by the lanes' unit.
	onScalar func(a float64) float64
)

func (o compareOp) run(w *wave, in *Inst) {
	on := w.operands(in)
	var x uint64
	switch f := o.fn.(type) {
	case laneCmp:
		for l := range w.lanes {
			if on>>l&1 == 1 && f(w.buf[0][l], w.buf[1][l]) {
				x |= 1 << l
			}
		}
	case laneCmpF:
		for l := range w.lanes {
			if on>>l&1 == 1 && f(w.number(in, 0, l), w.number(in, 1, l)) {
				x |= 1 << l
			}
		}
	}
	if o.exec {
		w.exec = x
		return
	}
	w.setScalar(in.dst.code, w.lanes/32, x)
}

func (selectOp) lanes(w *wave) {
	m := w.buf[2][0]
	for l := range w.lanes {
		w.out[l] = w.buf[m>>l&1][l]
	}
}

func (o selectOp) run(w *wave, in *Inst) {
	on := w.operands(in)
	o.lanes(w)
	w.store(in, &in.dst, on)
}

func (o carryOp) run(w *wave, in *Inst) {
	on := w.operands(in)
	var x uint64
	for l := range w.lanes {
		c := uint64(0)
		if len(in.src) == 3 {
			c = w.buf[2][0] >> l & 1
		}
		sum, out := o(w.buf[0][l], w.buf[1][l], c)
		if w.out[l] = sum; out && on>>l&1 == 1 {
			x |= 1 << l
		}
	}
	w.store(in, &in.dst, on)
	w.setScalar(in.sdst.code, w.lanes/32, x)
}

func (o wideMad) run(w *wave, in *Inst) {
	on := w.operands(in)
	var x uint64
	for l := range w.lanes {
		sum, out := o(w.buf[0][l], w.buf[1][l], w.buf[2][l])
		if w.out[l] = sum; out && on>>l&1 == 1 {
			x |= 1 << l
		}
	}
	w.store(in, &in.dst, on)
	w.setScalar(in.sdst.code, w.lanes/32, x)
}

// Division scales operand 0, which is the denominator or the numerator, so that neither the quotient nor the reciprocal
// leave the range.
func (divScale) run(w *wave, in *Inst) {
	on := w.operands(in)
	var x uint64
	for l := range w.lanes {
		a, b, c := fval(w.buf[0][l]), fval(w.buf[1][l]), fval(w.buf[2][l])
		y, scaled := scaleDivision(a, b, c)
		if w.out[l] = fbits(y); scaled && on>>l&1 == 1 {
			x |= 1 << l
		}
	}
	w.store(in, &in.dst, on)
	w.setScalar(in.sdst.code, w.lanes/32, x)
}

func scaleDivision(a, b, c float32) (float32, bool) {
	exp := func(x float32) int { return int(math.Float32bits(x) >> 23 & 255) }
	up := func(x float32) float32 { return float32(math.Ldexp(float64(x), 64)) }
	denormal := func(x float64) bool { return x != 0 && math.Abs(x) < 0x1p-126 }
	switch {
	case b == 0 || c == 0:
		return float32(math.NaN()), false
	case exp(c)-exp(b) >= 96:
		if a == b {
			a = up(a)
		}
		return a, true
	case denormal(float64(b)):
		return up(a), false
	case denormal(1/float64(b)) && denormal(float64(c)/float64(b)):
		if a == b {
			a = up(a)
		}
		return a, true
	case denormal(1 / float64(b)):
		return float32(math.Ldexp(float64(a), -64)), false
	case denormal(float64(c) / float64(b)):
		if a == c {
			a = up(a)
		}
		return a, true
	case exp(c) <= 23:
		return up(a), false
	}
	return a, false
}

func (divFmas) run(w *wave, in *Inst) {
	on, m := w.operands(in), w.vcc()
	for l := range w.lanes {
		x := fma32(fval(w.buf[0][l]), fval(w.buf[1][l]), fval(w.buf[2][l]))
		if m>>l&1 == 1 {
			x = float32(math.Ldexp(float64(x), 32))
		}
		w.out[l] = fbits(x)
	}
	w.store(in, &in.dst, on)
}

func (swapOp) run(w *wave, in *Inst) {
	var a, b lanes
	d := in.dst
	w.read(&in.src[0], &a)
	w.read(&d, &b)
	w.out = a
	w.store(in, &d, w.exec)
	w.out = b
	w.store(in, &in.src[0], w.exec)
}

func (o onScalar) run(w *wave, in *Inst) {
	w.fetch(in, 0)
	x := w.encode(o(w.number(in, 0, 0)), f32)
	if in.omod != 0 || in.clamp {
		x = w.limit(x, f32, in.omod, in.clamp)
	}
	w.setScalar(in.dst.code, 1, x)
}
