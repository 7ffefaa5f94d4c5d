package rdna

import "encoding/binary"

// memory is where an address leads.
type memory struct {
	data   []byte // from the address on
	buffer int    // its number, -1 if nobody may write there
	at     int
}

// find returns the bytes at an address.
func (w *wave) find(in *Inst, addr uint64, n int, store bool) (memory, bool) {
	m := w.m
	within := func(data []byte, base uint64) (memory, bool) {
		at := addr - base
		if addr < base || at+uint64(n) > uint64(len(data)) {
			return memory{}, false
		}
		return memory{data[at:], -1, int(at)}, true
	}
	switch {
	case addr >= setBase:
		if p, ok := within(m.set, setBase); ok && !store {
			return p, true
		}
	case addr >= pushBase:
		if p, ok := within(m.push, pushBase); ok && !store {
			return p, true
		}
	case addr >= codeBase && addr < codeBase+uint64(len(m.code)):
		if p, ok := within(m.code, codeBase); ok && !store {
			return p, true
		}
	default:
		if m.last < 0 || addr-m.buffers[m.last].base >= uint64(len(m.buffers[m.last].Data)) {
			m.last = m.nearest(addr)
		}
		if m.last < 0 {
			break
		}
		b := &m.buffers[m.last]
		p, ok := within(b.Data, b.base)
		if ok && (!store || b.Writable) {
			if b.Writable {
				p.buffer = m.last
			}
			return p, true
		}
		what := "loads"
		if store {
			what = "stores"
		}
		w.fail(in, OutOfRegion, "%s %d bytes at %d of %s, which has %d", what, n, int64(addr-b.base), b.Name, len(b.Data))
		return memory{}, false
	}
	w.fail(in, OutOfRegion, "%d bytes at %#x", n, addr)
	return memory{}, false
}

// nearest is the last buffer that begins at an address or before, -1 for none within a window.
func (m *machine) nearest(addr uint64) int {
	best := -1
	for i := range m.buffers {
		if b := &m.buffers[i]; b.base <= addr && addr-b.base < window && (best < 0 || b.base > m.buffers[best].base) {
			best = i
		}
	}
	return best
}

func (o scalarLoad) run(w *wave, in *Inst) {
	base := w.scalar(in.mem.addr, 2)
	if o.buffer {
		base &= 1<<48 - 1
	}
	addr := base + uint64(in.imm)
	if in.mem.saddr != nullReg {
		addr += uint64(w.scalar32(in.mem.saddr))
	}
	if o.bytes >= 4 {
		addr &^= 3
	}
	p, ok := w.find(in, addr, o.bytes, false)
	if !ok {
		return
	}
	if p.buffer >= 0 && !w.useBuffer(in, p.buffer, p.at, o.bytes, false, false) {
		if w.fault != nil {
			return
		}
		p.data = w.noise(o.bytes)
	}
	w.m.counts.ScalarLoads++
	w.m.counts.ScalarBytes += int64(o.bytes)
	if o.bytes < 4 {
		x := little(p.data, o.bytes)
		if o.signed {
			x = uint32(extend(uint64(x), 8*o.bytes))
		}
		w.setScalar32(in.dst.code, x)
	}
	for i := 0; i+4 <= o.bytes; i += 4 {
		w.setScalar(in.dst.code+i/4, 1, uint64(little(p.data[i:], 4)))
	}
	var r regset
	r.add(in.dst.code, max(1, o.bytes/4))
	w.begin(scalarCount, pending{fills: r})
}

// at returns the address of a lane, or its place in shared memory or scratch.
func (w *wave) at(in *Inst, l int) uint64 {
	m := &in.mem
	switch in.row.form {
	case ds:
		return uint64(w.register(firstVector + m.addr)[l])
	case scratch:
		x := in.imm
		if m.saddr != nullReg {
			x += int64(int32(w.scalar32(m.saddr)))
		}
		if m.vaddr {
			x += int64(int32(w.register(firstVector + m.addr)[l]))
		}
		return uint64(x)
	}
	if in.row.form == mubuf {
		offset := uint64(in.imm)
		if m.saddr != nullReg {
			offset += uint64(w.scalar32(m.saddr))
		}
		if m.vaddr {
			offset += uint64(w.register(firstVector + m.addr)[l])
		}
		if records := w.scalar32(m.resource + 2); offset >= uint64(records) {
			w.fail(in, OutOfRegion, "lane %d: byte %d of a buffer of %d", l, offset, records)
		}
		return w.scalar(m.resource, 2)&(1<<48-1) + offset
	}
	low := uint64(w.register(firstVector + m.addr)[l])
	if m.saddr != nullReg {
		return w.scalar(m.saddr, 2) + low + uint64(in.imm)
	}
	return (low | uint64(w.register(firstVector + m.addr + 1)[l])<<32) + uint64(in.imm)
}

// places are the addresses of all lanes that are on.
func (w *wave) places(in *Inst, offset uint64, where *lanes) {
	if in.row.form != global {
		for l := range w.lanes {
			if w.exec>>l&1 == 1 {
				where[l] = in.wrapped(w.at(in, l) + offset)
			}
		}
		return
	}
	low, base := w.register(firstVector+in.mem.addr), offset+uint64(in.imm)
	if in.mem.saddr != nullReg {
		base += w.scalar(in.mem.saddr, 2)
		for l, x := range low {
			where[l] = base + uint64(x)
		}
		return
	}
	for l, x := range w.register(firstVector + in.mem.addr + 1) {
		where[l] = base + (uint64(low[l]) | uint64(x)<<32)
	}
}

// bypasses reports whether a load asks no cache that other workgroups do not see.
func (in *Inst) bypasses() bool {
	if in.gen == GFX12 {
		return in.mem.scope >= 2
	}
	return in.mem.glc
}

// bytes returns what lies at the address of a lane, in the memory that the instruction uses.
func (w *wave) bytes(in *Inst, addr uint64, n, l int, store bool) ([]byte, bool) {
	switch in.row.form {
	case ds:
		if addr+uint64(n) > uint64(len(w.g.shared)) {
			w.fail(in, OutOfRegion, "lane %d: %d bytes at %d of shared memory, which has %d", l, n, addr, len(w.g.shared))
			return nil, false
		}
		if n > 1 && addr%uint64(min(n, 4)) != 0 {
			w.fail(in, OutOfRegion, "lane %d: %d bytes at %d of shared memory, which is not aligned", l, n, addr)
			return nil, false
		}
		return w.g.shared[addr:], w.useShared(in, int(addr), n, store)
	case scratch:
		// Each lane has its own part of what the wave has.
		each := uint64(len(w.scratch) / w.lanes)
		if addr+uint64(n) > each {
			w.fail(in, OutOfRegion, "lane %d: %d bytes at %d of scratch, which has %d", l, n, int64(addr), each)
			return nil, false
		}
		return w.scratch[uint64(l)*each+addr:], true
	}
	p, ok := w.find(in, addr, n, store)
	if !ok {
		return nil, false
	}
	if p.buffer < 0 || w.useBuffer(in, p.buffer, p.at, n, store, in.bypasses()) {
		return p.data, true
	}
	if w.fault == nil { // loaded ahead
		return w.noise(n), true
	}
	return nil, false
}

// wrapped is the address that a sum leads to: in shared memory it has 32 bits.
func (in *Inst) wrapped(addr uint64) uint64 {
	if in.row.form == ds {
		return addr & 0xffffffff
	}
	return addr
}

// noise is what a load ahead may find.
func (w *wave) noise(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(w.m.garbage() >> (8 * (i % 4)))
	}
	return b
}

// addresses are how many an instruction has, and what it adds to each.
func (o transfer) addresses(in *Inst) []uint64 {
	if in.row.form != ds {
		return zeroOffset
	}
	if o.pair > 0 {
		return []uint64{uint64(in.mem.offsets[0] * o.pair), uint64(in.mem.offsets[1] * o.pair)}
	}
	return []uint64{uint64(in.mem.offsets[0] | in.mem.offsets[1]<<8)}
}

var zeroOffset = []uint64{0}

func (o transfer) run(w *wave, in *Inst) {
	if o.store && in.row.form != ds {
		w.issued++
	}
	// All addresses are read first: what is loaded may come to where they are.
	where := &w.where
	offsets := o.addresses(in)
	for a, offset := range offsets {
		w.places(in, offset, &where[a])
	}
	for a := range offsets {
		if !o.store && o.loadPlain(w, in, &where[a], in.dst.code+a*o.registers()) {
			continue
		}
		data := in.dst.code + a*o.registers()
		if o.store {
			data = firstVector + in.mem.data
			if a == 1 {
				data = firstVector + in.mem.data2
			}
		}
		if o.shareWords(w, in, &where[a], data) {
			continue
		}
		if w.fault != nil {
			return
		}
		for l := range w.lanes {
			if w.exec>>l&1 == 0 {
				continue
			}
			b, ok := w.bytes(in, where[a][l], o.bytes, l, o.store)
			if !ok {
				return
			}
			o.move(w, data, l, b)
		}
	}
	w.charge(in, o.bytes*len(offsets), o.store)
	if in.row.form == ds {
		for a := range offsets {
			w.m.counts.SharedConflicts += conflicts(&where[a], w.exec, w.lanes, o.registers())
		}
	}
	w.track(in, &o, where[:len(offsets)])
}

// loadPlain loads whole words of all lanes if they lie in one buffer that nobody writes, and else does nothing.
func (o transfer) loadPlain(w *wave, in *Inst, where *lanes, first int) bool {
	if in.row.form != global || o.bytes < 4 || w.m.last < 0 {
		return false
	}
	b := &w.m.buffers[w.m.last]
	size := uint64(len(b.Data))
	if b.Writable || size < uint64(o.bytes) {
		return false
	}
	for l := range w.lanes {
		if at := where[l] - b.base; w.exec>>l&1 == 1 && at > size-uint64(o.bytes) {
			return false
		}
	}
	for i := range o.bytes / 4 {
		r := w.register(first + i)
		for l := range r {
			if w.exec>>l&1 == 1 {
				r[l] = binary.LittleEndian.Uint32(b.Data[where[l]-b.base+uint64(4*i):])
			}
		}
	}
	return true
}

// shareWords moves whole words of all lanes to or from shared memory if all lie in it, and else does nothing; it may
// find a race.
func (o transfer) shareWords(w *wave, in *Inst, where *lanes, data int) bool {
	if in.row.form != ds || o.bytes < 4 {
		return false
	}
	shared := w.g.shared
	for l := range w.lanes {
		if at := where[l]; w.exec>>l&1 == 1 && (at%4 != 0 || at+uint64(o.bytes) > uint64(len(shared))) {
			return false
		}
	}
	for l := range w.lanes {
		if w.exec>>l&1 == 1 && !w.useShared(in, int(where[l]), o.bytes, o.store) {
			return false
		}
	}
	for i := range o.bytes / 4 {
		r := w.register(data + i)
		for l := range r {
			if w.exec>>l&1 == 0 {
				continue
			}
			if b := shared[where[l]+uint64(4*i):]; o.store {
				binary.LittleEndian.PutUint32(b, r[l])
			} else {
				r[l] = binary.LittleEndian.Uint32(b)
			}
		}
	}
	return true
}

// move moves a lane's bytes.
func (o transfer) move(w *wave, data, l int, b []byte) {
	if o.bytes >= 4 {
		for i := range o.bytes / 4 {
			r := w.register(data + i)
			if o.store {
				binary.LittleEndian.PutUint32(b[4*i:], r[l])
			} else {
				r[l] = binary.LittleEndian.Uint32(b[4*i:])
			}
		}
		return
	}
	r := w.register(data)
	if o.store {
		x := r[l]
		if o.half == 2 {
			x >>= 16
		}
		for i := range o.bytes {
			b[i] = byte(x >> (8 * i))
		}
		return
	}
	x := little(b, o.bytes)
	if o.signed {
		x = uint32(extend(uint64(x), 8*o.bytes))
	}
	switch o.half {
	case 0:
		r[l] = x
	case 1:
		r[l] = r[l]&^0xffff | x&0xffff
	case 2:
		r[l] = r[l]&0xffff | x<<16
	}
}

// charge counts an access of all lanes.
func (w *wave) charge(in *Inst, bytes int, store bool) {
	lanes := 0
	for x := w.exec; x != 0; x &= x - 1 {
		lanes++
	}
	n, c := int64(bytes*lanes), &w.m.counts
	switch {
	case in.row.form == scratch:
		c.ScratchBytes += n
	case in.row.form == ds && store:
		c.SharedStores++
		c.SharedBytes += n
	case in.row.form == ds:
		c.SharedLoads++
		c.SharedBytes += n
	case store:
		c.GlobalStores++
		c.StoredBytes += n
	default:
		c.GlobalLoads++
		c.LoadedBytes += n
	}
}

// track begins the access of a transfer.
func (w *wave) track(in *Inst, o *transfer, where []lanes) {
	var p pending
	if !o.store {
		p.fills.add(in.dst.code, o.registers()*len(where))
	}
	switch {
	case in.row.form == ds:
		p.store = o.store
		if last := len(w.spans) - 1; last >= 0 {
			p.shared, w.spans = w.spans[last][:0], w.spans[:last]
		}
		for a := range where {
			for l := range w.lanes {
				if w.exec>>l&1 == 1 {
					p.shared = append(p.shared, span{int(where[a][l]), o.bytes})
				}
			}
		}
		w.begin(sharedCount, p)
	case o.store:
		w.begin(storeCount, p)
	default:
		w.begin(loadCount, p)
	}
}

// returns reports whether an atomic instruction gives what was there before.
func (in *Inst) returns(o atomic) bool {
	switch {
	case in.row.form == ds:
		return o.returns
	case in.gen == GFX12:
		return in.mem.th&1 == 1
	}
	return in.mem.glc
}

func (o atomic) run(w *wave, in *Inst) {
	shared := in.row.form == ds
	returns := in.returns(o)
	if !shared {
		w.publish()
	}
	offset := uint64(0)
	if shared {
		offset = uint64(in.mem.offsets[0] | in.mem.offsets[1]<<8)
	}
	for l := range w.lanes {
		if w.exec>>l&1 == 0 {
			continue
		}
		addr := in.wrapped(w.at(in, l) + offset)
		var b []byte
		if shared {
			if addr+uint64(o.bytes) > uint64(len(w.g.shared)) {
				w.fail(in, OutOfRegion, "lane %d: %d bytes at %d of shared memory, which has %d", l, o.bytes, addr, len(w.g.shared))
				return
			}
			b = w.g.shared[addr:]
		} else {
			p, ok := w.find(in, addr, o.bytes, true)
			if !ok {
				return
			}
			b = p.data
		}
		word := func(first int) uint64 {
			x := uint64(w.register(first)[l])
			if o.bytes == 8 {
				x |= uint64(w.register(first + 1)[l]) << 32
			}
			return x
		}
		x, y := word(firstVector+in.mem.data), uint64(0)
		switch {
		case o.two && shared:
			y = word(firstVector + in.mem.data2)
		case o.two:
			y = word(firstVector + in.mem.data + o.bytes/4)
		}
		old := uint64(little(b, 4))
		if o.bytes == 8 {
			old |= uint64(little(b[4:], 4)) << 32
		}
		next := o.f(old, x, y)
		for i := range o.bytes {
			b[i] = byte(next >> (8 * i))
		}
		if returns {
			w.register(in.dst.code)[l] = uint32(old)
			if o.bytes == 8 {
				w.register(in.dst.code + 1)[l] = uint32(old >> 32)
			}
		}
	}
	w.m.counts.Atomics++
	var p pending
	c := storeCount
	if returns {
		p.fills.add(in.dst.code, o.bytes/4)
		c = loadCount
	} else if !shared {
		w.issued++
	}
	if shared {
		c = sharedCount
	}
	w.begin(c, p)
}

func (o lanesMove) run(w *wave, in *Inst) {
	offset := in.mem.offsets[0] | in.mem.offsets[1]<<8
	var from, to lanes
	for l := range w.lanes {
		if w.exec>>l&1 == 0 {
			continue
		}
		if o.swizzle {
			from[l] = uint64(w.register(firstVector + in.mem.addr)[l])
			continue
		}
		from[l] = uint64(w.register(firstVector + in.mem.data)[l])
	}
	for l := range w.lanes {
		switch {
		case o.swizzle && offset&0x8000 == 0: // a mask of ands, ors and xors in 32 lanes
			at := (l%32&(offset&31) | offset>>5&31) ^ offset>>10&31
			to[l] = from[l&^31|at]
		case o.swizzle && offset&0xff00 == 0x8000: // of four
			to[l] = from[l&^3|offset>>(2*(l%4))&3]
		case o.swizzle:
			w.fail(in, Unsupported, "swizzle %#x", offset)
			return
		case o.push:
			if w.exec>>l&1 == 1 {
				to[int(w.register(firstVector + in.mem.addr)[l]+uint32(offset))/4%w.lanes] = from[l]
			}
		default:
			to[l] = from[int(w.register(firstVector + in.mem.addr)[l]+uint32(offset))/4%w.lanes]
		}
	}
	w.out = to
	w.store(in, &in.dst, w.exec)
	var p pending
	p.fills.add(in.dst.code, 1)
	w.begin(sharedCount, p)
}

func (o invalidate) run(w *wave, in *Inst) {
	if !o.scalar {
		w.invalidated = w.m.time
	}
}

func (writeBack) run(w *wave, in *Inst) { w.issued++; w.begin(storeCount, pending{}) }

// least is how many bytes the instruction takes at least, 0 if it takes none; halves of registers are 2.
func (in *Inst) least() int {
	switch o := in.row.fn.(type) {
	case transfer:
		return o.bytes
	case scalarLoad:
		return o.bytes
	}
	return 0
}

// memoryRegisters adds the registers that an instruction of memory uses to those of its fields.
func (in *Inst) memoryRegisters() {
	m := &in.mem
	reads := func(first, n int) { in.use(&in.reads, first, n) }
	address := func() {
		switch {
		case in.row.form == ds:
			reads(firstVector+m.addr, 1)
		case in.row.form == mubuf:
			reads(m.resource, 4)
			reads(m.saddr, 1)
			if m.vaddr {
				reads(firstVector+m.addr, 1)
			}
		case in.row.form == scratch:
			reads(m.saddr, 1)
			if m.vaddr {
				reads(firstVector+m.addr, 1)
			}
		case m.saddr != nullReg:
			reads(m.saddr, 2)
			reads(firstVector+m.addr, 1)
		default:
			reads(firstVector+m.addr, 2)
		}
	}
	switch o := in.row.fn.(type) {
	case scalarLoad:
		reads(m.addr, 2)
		if o.buffer {
			reads(m.addr, 4)
		}
		reads(m.saddr, 1)
		in.use(&in.writes, in.dst.code, max(1, o.bytes/4))
	case transfer:
		address()
		n := len(o.addresses(in))
		switch {
		case !o.store:
			in.use(&in.writes, in.dst.code, n*o.registers())
		default:
			reads(firstVector+m.data, o.registers())
			if n == 2 {
				reads(firstVector+m.data2, o.registers())
			}
		}
	case atomic:
		address()
		n := o.bytes / 4
		if in.returns(o) {
			in.use(&in.writes, in.dst.code, n)
		}
		if o.two && in.row.form != ds {
			n *= 2
		}
		reads(firstVector+m.data, n)
		if o.two && in.row.form == ds {
			reads(firstVector+m.data2, o.bytes/4)
		}
	case lanesMove:
		reads(firstVector+m.addr, 1)
		if !o.swizzle {
			reads(firstVector+m.data, 1)
		}
		in.use(&in.writes, in.dst.code, 1)
	}
}
