package rdna

type (
	readFirstLane struct{}
	readLane      struct{}
	writeLane     struct{}
	permlane16    struct{ cross bool }
	permlaneVar   struct{ cross bool }
	permlane64    struct{}
	countBelow    struct{ high bool }
)

// moveLanes puts into each lane of b what DPP says, and returns the lanes that write.
func (w *wave) moveLanes(d *dpp, b *lanes, on uint64) uint64 {
	from, writes := *b, uint64(0)
	for l := range w.lanes {
		if d.rowMask>>(l/16%4)&1 == 0 || d.banks>>(l%16/4)&1 == 0 {
			continue
		}
		src := d.source(l, w.lanes)
		switch {
		case src >= 0 && (d.fetchInactive || w.exec>>src&1 == 1):
			b[l] = from[src]
		case d.zero || d.eight:
			b[l] = 0
		default:
			continue
		}
		writes |= 1 << l
	}
	return on & writes
}

// source is the lane that lane l reads, -1 for none.
func (d *dpp) source(l, lanes int) int {
	if d.eight {
		return l&^7 | int(d.ctrl>>(3*(l%8))&7)
	}
	row, at, n := l&^15, l%16, int(d.ctrl&15)
	within := func(at int) int {
		if at < 0 || at > 15 {
			return -1
		}
		return row | at
	}
	switch c := d.ctrl; {
	case c < 0x100: // of four
		return l&^3 | int(c>>(2*(l%4))&3)
	case c >= 0x101 && c <= 0x10f: // left
		return within(at + n)
	case c >= 0x111 && c <= 0x11f: // right
		return within(at - n)
	case c >= 0x121 && c <= 0x12f: // around
		return row | (at-n)&15
	case c == 0x140: // mirrored
		return row | 15 - at
	case c == 0x141:
		return l&^7 | 7 - l%8
	case c >= 0x150 && c <= 0x15f: // one for all
		return row | n
	case c >= 0x160 && c <= 0x16f:
		return row | at ^ n
	}
	return -1
}

func (readFirstLane) run(w *wave, in *Inst) {
	b, l := w.fetch(in, 0), 0
	if w.exec != 0 {
		l = firstLane(w.exec)
	}
	w.setScalar(in.dst.code, 1, b[l])
}

func (readLane) run(w *wave, in *Inst) {
	b := w.fetch(in, 0)
	w.setScalar(in.dst.code, 1, b[int(w.fetch(in, 1)[0])%w.lanes])
}

func (writeLane) run(w *wave, in *Inst) {
	x, l := w.fetch(in, 0)[0], int(w.fetch(in, 1)[0])%w.lanes
	w.register(in.dst.code)[l] = uint32(x)
}

// permute moves within rows of 16, or between the rows of a pair: which returns the lane in the row that a lane reads.
func (w *wave) permute(in *Inst, cross bool, which func(l int) int) {
	b := w.fetch(in, 0)
	fetchInactive, zero := in.src[0].hi, in.src[1].hi
	writes := uint64(0)
	for l := range w.lanes {
		src := l&^15 | which(l)
		if cross {
			src ^= 16
		}
		switch {
		case fetchInactive || w.exec>>src&1 == 1:
			w.out[l] = b[src]
		case zero:
			w.out[l] = 0
		default:
			continue
		}
		writes |= 1 << l
	}
	w.store(in, &in.dst, w.exec&writes)
}

func (o permlane16) run(w *wave, in *Inst) {
	sel := w.fetch(in, 1)[0]&0xffffffff | w.fetch(in, 2)[0]<<32
	w.permute(in, o.cross, func(l int) int { return int(sel >> (4 * (l % 16)) & 15) })
}

func (o permlaneVar) run(w *wave, in *Inst) {
	sel := w.fetch(in, 1)
	w.permute(in, o.cross, func(l int) int { return int(sel[l] & 15) })
}

func (permlane64) run(w *wave, in *Inst) {
	b := w.fetch(in, 0)
	if w.lanes < 64 {
		return // it does nothing in waves of 32
	}
	for l := range w.lanes {
		w.out[l] = b[l^32]
	}
	w.store(in, &in.dst, w.exec)
}

// countBelow counts bits of a mask below the lane.
func (o countBelow) run(w *wave, in *Inst) {
	on := w.operands(in)
	for l := range w.lanes {
		below := uint64(1)<<l - 1
		if o.high {
			below >>= 32
		} else {
			below &= 0xffffffff
		}
		n, m := w.buf[1][l], w.buf[0][l]&below
		for ; m != 0; m &= m - 1 {
			n++
		}
		w.out[l] = n
	}
	w.store(in, &in.dst, on)
}
