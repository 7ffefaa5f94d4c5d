package ptx

import "github.com/zincc-dev/zincc/codegen/kernel"

// merged lowers (x & mask) | fill, of which NVIDIA's compiler makes two instructions where mask and fill are numbers,
// and reports whether n is that. Of whole bytes, a permutation takes the place of a shift, too.
func (l *lowering) merged(n *kernel.Node) bool {
	if n.Op() != kernel.OpOr || n.Type().Elem() != kernel.U32 {
		return false
	}
	masked, fill, ok := l.besideNumber(n)
	if !ok || masked.Op() != kernel.OpAnd {
		return false
	}
	x, mask, ok := l.besideNumber(masked)
	if !ok {
		return false
	}
	instr, numbers := "lop3.b32 %s, %s, %d, %d, 0xEA", [2]uint32{mask, fill} // x & mask | fill
	if shifted, by, ok := l.besideNumber(x); ok && x.Op() == kernel.OpShr && shifted == x.Args()[0] && by%8 == 0 {
		if order, ok := byteOrder(mask, fill, by/8); ok {
			x, instr, numbers = shifted, "prmt.b32 %s, %s, %d, %d", [2]uint32{fill, order}
		}
	} else if order, ok := byteOrder(mask, fill, 0); ok {
		instr, numbers = "prmt.b32 %s, %s, %d, %d", [2]uint32{fill, order}
	}
	var v []operand
	for _, o := range l.value(x) {
		to := l.reg(words)
		l.do(instr, to, o.as(kernel.U32), numbers[0], numbers[1])
		v = append(v, register(to))
	}
	l.values[n] = v
	return true
}

// bytesOf lowers x >> number & mask of whole bytes, and a signed byte of x, to a permutation: of shifts and extensions
// of the sign NVIDIA's compiler makes an instruction more. It reports whether n is one.
func (l *lowering) bytesOf(n *kernel.Node) bool {
	x, order, ok := n, uint32(0), false
	switch n.Op() {
	case kernel.OpAnd:
		if n.Type().Elem() != kernel.U32 {
			return false
		}
		shifted, mask, number := l.besideNumber(n)
		if !number || shifted.Op() != kernel.OpShr {
			return false
		}
		var by uint32
		if x, by, number = l.besideNumber(shifted); !number || x != shifted.Args()[0] || by%8 > 0 || by == 0 {
			return false
		}
		order, ok = byteOrder(mask, 0, by/8)
	case kernel.OpBitExtract:
		x = n.Args()[0]
		if offset, count := l.scalar(n.Args()[1]), l.scalar(n.Args()[2]); n.Type().Elem() == kernel.I32 && offset.lit && count.lit && offset.bits%8 == 0 && count.bits == 8 {
			const sign = 0x8880 // these bytes are the sign of the one that they name
			order, ok = 0x1111*(offset.bits/8)|sign, true
		}
	}
	if !ok {
		return false
	}
	var v []operand
	for _, o := range l.value(x) {
		to := l.reg(words)
		l.do("prmt.b32 %s, %s, 0, %d", to, o.as(kernel.U32), order)
		v = append(v, register(to))
	}
	l.values[n] = v
	return true
}

// byteOrder returns, as prmt takes it, which bytes of x, that is shifted right by so many, and of fill (x & mask) |
// fill has.
func byteOrder(mask, fill, shift uint32) (order uint32, ok bool) {
	for i := range uint32(4) {
		of := func(word uint32) uint32 { return word >> (8 * i) & 0xff }
		switch {
		case of(mask) == 0:
			order |= (4 + i) << (4 * i)
		case of(mask) == 0xff && of(fill) == 0 && i+shift < 4:
			order |= (i + shift) << (4 * i)
		default:
			return 0, false
		}
	}
	return order, true
}

// besideNumber returns the operand of an operation whose only other one is a number, alike in all elements, and the
// number.
func (l *lowering) besideNumber(n *kernel.Node) (beside *kernel.Node, number uint32, ok bool) {
	args := n.Args()
	if len(args) != 2 || args[0].Static() == args[1].Static() {
		return nil, 0, false
	}
	beside, known := args[0], l.value(args[1])
	if args[0].Static() {
		beside, known = args[1], l.value(args[0])
	}
	for _, v := range known {
		if !v.lit || v != known[0] {
			return nil, 0, false
		}
	}
	return beside, known[0].bits, true
}
