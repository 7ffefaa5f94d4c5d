package rdna

type (
	packed2  lane2
	packed3  lane3
	packedF2 laneH2
	packedF3 laneH3
	// dot2 adds two products of numbers of 16 bits.
	dot2 struct {
		number func(b uint64) float64
		bf16   bool
	}
	// dotBits adds products of fields of so many bits.
	dotBits struct{ bits int }
	// mix is a fused multiply-add whose operands are of 32 or 16 bits each; of a result of 16 bits half says which: 1
	// low, 2 high.
	mix struct{ half int }
)

// halves returns operand i of a lane for the low and the high result.
func (w *wave) halves(in *Inst, i, l int) (low, high uint64) {
	o, x := &in.src[i], w.buf[i][l]
	low, high = x&0xffff, x&0xffff
	if o.hi {
		low = x >> 16 & 0xffff
	}
	if o.hiHi {
		high = x >> 16 & 0xffff
	}
	if !in.long { // VOP2 and VOPD have no bits that choose
		return x & 0xffff, x >> 16 & 0xffff
	}
	if o.neg {
		low ^= 1 << 15
	}
	if o.negHi {
		high ^= 1 << 15
	}
	return low, high
}

// plain reads operands without their signs, which are those of halves.
func (w *wave) plain(in *Inst) uint64 {
	for i := range in.src {
		o := in.src[i]
		o.neg, o.abs = false, false
		w.read(&o, &w.buf[i])
	}
	if in.dpp != nil {
		return w.moveLanes(in.dpp, &w.buf[0], w.exec)
	}
	return w.exec
}

func (w *wave) pack(in *Inst, f func(x [3]uint64) uint64) {
	on := w.plain(in)
	if in.clamp {
		w.fail(in, Unsupported, "halves that are clamped")
		return
	}
	for l := range w.lanes {
		var low, high [3]uint64
		for i := range in.src {
			low[i], high[i] = w.halves(in, i, l)
		}
		w.out[l] = f(low)&0xffff | f(high)<<16
	}
	w.store(in, &in.dst, on)
}

func (f packed2) run(w *wave, in *Inst) {
	w.pack(in, func(x [3]uint64) uint64 { return uint64(f(uint32(x[0]), uint32(x[1]))) })
}

func (f packed3) run(w *wave, in *Inst) {
	w.pack(in, func(x [3]uint64) uint64 { return uint64(f(uint32(x[0]), uint32(x[1]), uint32(x[2]))) })
}

func (f packedF2) run(w *wave, in *Inst) {
	w.pack(in, func(x [3]uint64) uint64 { return toF16(f(f16(x[0]), f16(x[1])), w.rtz16) })
}

func (f packedF3) run(w *wave, in *Inst) {
	w.pack(in, func(x [3]uint64) uint64 { return toF16(f(f16(x[0]), f16(x[1]), f16(x[2])), w.rtz16) })
}

func (o dot2) lanes(w *wave, in *Inst) {
	for l := range w.lanes {
		sum := float64(fval(w.buf[2][l]))
		if in.src[2].neg {
			sum = -sum
		}
		for h := range 2 {
			var x [2]uint64
			for i := range x {
				low, high := w.halves(in, i, l)
				if x[i] = low; h == 1 {
					x[i] = high
				}
			}
			sum += o.number(x[0]) * o.number(x[1])
		}
		w.out[l] = fbits(float32(sum))
	}
}

func (o dot2) run(w *wave, in *Inst) {
	on := w.plain(in)
	o.lanes(w, in)
	w.store(in, &in.dst, on)
}

func (o dotBits) run(w *wave, in *Inst) {
	on := w.plain(in)
	if in.clamp {
		w.fail(in, Unsupported, "a dot product that is clamped")
		return
	}
	signs := [2]bool{in.src[0].neg, in.src[1].neg}
	for l := range w.lanes {
		w.out[l] = low(int64(w.buf[2][l]) + dotFields(uint32(w.buf[0][l]), uint32(w.buf[1][l]), o.bits, signs))
	}
	w.store(in, &in.dst, on)
}

func dotFields(a, b uint32, bits int, signs [2]bool) (sum int64) {
	for at := 0; at < 32; at += bits {
		sum += fieldOf(a>>at, bits, signs[0]) * fieldOf(b>>at, bits, signs[1])
	}
	return sum
}

func fieldOf(x uint32, bits int, signed bool) int64 {
	x <<= 32 - bits
	if signed {
		return int64(int32(x) >> (32 - bits))
	}
	return int64(x >> (32 - bits))
}

func (o mix) run(w *wave, in *Inst) {
	on := w.operands(in)
	for l := range w.lanes {
		x := fma32(float32(w.number(in, 0, l)), float32(w.number(in, 1, l)), float32(w.number(in, 2, l)))
		if o.half == 0 {
			w.out[l] = fbits(x)
			continue
		}
		w.out[l] = toF16(float64(x), w.rtz16)
	}
	w.store(in, &in.dst, on)
}
