package rdna

// matmul multiplies matrices of 16 by 16. In gfx11 rows of A and columns of B lie in lanes 0 to 15, and again in those
// of each further half row, all 16 elements in one lane; of C and D register v has row 2v and, in the upper half of a
// pair of rows of lanes, row 2v+1 (in waves of 64 rows 4v to 4v+3). In gfx12 a lane has half of the elements: of lanes
// 0 to 15 the first 8, and of C and D register v has row v, and row v+8 in the upper lanes.
type matmul struct {
	a     func(b uint64) float64 // of elements of 16 bits
	float bool
	short bool // C and D have 16 bits
	bits  int  // of integers
}

func (o matmul) run(w *wave, in *Inst) {
	if w.exec != w.all {
		w.fail(in, Unsupported, "a product of matrices with lanes off")
		return
	}
	if in.gen == GFX12 && w.lanes != 32 || in.clamp {
		w.fail(in, Unsupported, "a product of matrices in this form")
		return
	}
	bits := o.bits
	if o.float {
		bits = 16
	}
	var a, b [16][16]float64 // integers are exact
	number := func(operand int, x uint64) float64 {
		if o.float {
			return o.a(x)
		}
		return float64(fieldOf(uint32(x), bits, in.src[operand].neg))
	}
	for i := range 16 {
		for k := range 16 {
			a[i][k], b[i][k] = number(0, w.element(in, 0, i, k, bits)), number(1, w.element(in, 1, i, k, bits))
		}
	}
	var results [16][16]uint64
	c := &in.src[2]
	for i := range 16 {
		for j := range 16 {
			p := o.where(w, in, i, j)
			x := c.value
			if c.code != constant {
				x = uint64(w.register(c.code + p.reg)[p.lane] >> p.at)
			}
			if o.short && in.gen == GFX11 && c.hi {
				x >>= 16
			}
			sum := float64(fval(x & 0xffffffff))
			switch {
			case !o.float:
				sum = float64(signed(x))
			case o.short:
				sum = f16(x & 0xffff)
			}
			for k, y := range &a[i] {
				sum += y * b[j][k]
			}
			if !o.float {
				results[i][j] = low(int64(sum))
				continue
			}
			if results[i][j] = fbits(float32(sum)); o.short {
				results[i][j] = toF16(sum, w.rtz16)
			}
		}
	}
	o.write(w, in, c.hi, &results)
}

// resultAt is where an element of the result lies: bits of a lane of a register, from at on.
type resultAt struct{ reg, lane, at int }

func (o matmul) where(w *wave, in *Inst, i, j int) resultAt {
	switch {
	case in.gen == GFX11:
		rows := w.lanes / 16
		return resultAt{i / rows, j + 16*(i%rows), 0}
	case o.short:
		return resultAt{i % 8 / 2, j + 16*(i/8), 16 * (i % 2)}
	}
	return resultAt{i % 8, j + 16*(i/8), 0}
}

// write puts the results into the upper or other halves of registers, or into all of them.
func (o matmul) write(w *wave, in *Inst, upper bool, results *[16][16]uint64) {
	for i := range 16 {
		for j := range 16 {
			p := o.where(w, in, i, j)
			r := w.register(in.dst.code + p.reg)
			switch {
			case o.short && in.gen == GFX11 && upper:
				r[p.lane] = r[p.lane]&0xffff | uint32(results[i][j])<<16
			case o.short:
				r[p.lane] = r[p.lane]&^(0xffff<<p.at) | uint32(results[i][j])<<p.at
			default:
				r[p.lane] = uint32(results[i][j])
			}
		}
	}
}

// element is element k of row i of operand 0, or of column i of operand 1.
func (w *wave) element(in *Inst, operand, i, k, bits int) uint64 {
	lane, at := i, k
	if in.gen == GFX12 {
		lane, at = i+16*(k/8), k%8
	}
	each := 32 / bits
	x := w.register(in.src[operand].code + at/each)[lane]
	return uint64(x>>(bits*(at%each))) & (1<<bits - 1)
}
