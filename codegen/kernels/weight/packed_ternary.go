package weight

import "github.com/zincc-dev/zincc/codegen/kernel"

// fractions are four bytes of fractions to base 3, in units of 1/256: bytes 0 and 2 of a word, and 1 and 3, each in the
// low half of 16 bits.
type fractions [2]kernel.Value

const evenBytes = 0x00ff00ff

// times multiplies them by a power of 3, which takes so many digits off.
func (f fractions) times(b *kernel.Builder, power kernel.Operand) fractions {
	for i, x := range f {
		f[i] = b.And(b.Mul(x, power), evenBytes)
	}
	return f
}

// first returns the first digits, less 1, as signed bytes.
func (f fractions) first(b *kernel.Builder) kernel.Value {
	even, odd := b.Add(b.Mul(f[0], 3), 0x7f007f00), b.Add(b.Mul(f[1], 3), 0x7f007f00) // 127 more: carries stay within the half
	both := b.Xor(odd, b.And(b.Xor(odd, b.Shr(even, 8)), evenBytes))
	return b.Xor(both, uint32(128*ones))
}

// ternaryFractions returns the fractions of five digits of a run, and those of three: see layout.ternary.
func ternaryFractions(b *kernel.Builder, w []kernel.Value) (fives, threes fractions) {
	fives = fractions{b.And(w[0], evenBytes), b.And(b.Shr(w[0], 8), evenBytes)}
	nibbles, bits := b.And(w[1], 0xffff), b.And(w[2], 15)
	nibbles, bits = b.Or(nibbles, b.Shl(nibbles, 8)), b.Or(bits, b.Shl(bits, 18))
	for i := range threes {
		threes[i] = b.Or(b.And(b.Shl(nibbles, 4*i), 0x00f000f0), b.And(b.Shl(bits, i), 0x00080008))
	}
	return
}

// octetTQ1 returns a digit of the fractions of five, and one of those of three or, of the last octet, another of those
// of five.
func octetTQ1(b *kernel.Builder, w []kernel.Value, j kernel.Operand) [2]kernel.Value {
	fives, threes := ternaryFractions(b, w)
	if j, ok := j.(int); ok {
		for range j { // one after the other, as all octets of a run have these in common
			fives, threes = fives.times(b, 3), threes.times(b, 3)
		}
		if j == 3 {
			threes = fives.times(b, 3)
		}
		return [2]kernel.Value{fives.first(b), threes.first(b)}
	}
	of := j.(kernel.Value)
	last, power := b.Eq(of, 3), b.And(b.Shr(b.U32(27<<24|9<<16|3<<8|1), b.Mul(of, 8)), 255)
	fives = fives.times(b, power)
	for i := range threes {
		threes[i] = b.Select(last, fives[i], threes[i])
	}
	return [2]kernel.Value{fives.first(b), threes.times(b, b.Select(last, 3, power)).first(b)}
}
