package layout

import "github.com/zincc-dev/zincc/ir"

// ternary is the recipe of TQ1_0, whose digits to base 3 go to other bytes, as those of the file have elements of many
// runs. A run of 32 takes 52 bits, an eighth of the block's: byte k of its four in plane q is five digits, of elements
// k, 8+k, 16+k, 24+k and 28+k, as a fraction in units of 1/256; elements 4+k, 12+k and 20+k are one in units of 1/32,
// of which plane h has the upper four bits and plane l the lowest. Multiplied by 3, every other byte of a word makes a
// digit and the fraction that is left. Nibbles and bits lie such that a kernel moves those of two fractions at once.
func ternary() Recipe {
	return Recipe{Name: "packed", DType: ir.TQ1_0, Format: ir.TQ1_0.String(), Group: 32, fields: []field{
		ofDigits("q", 32, func(dst, q []byte, run int) {
			for k, dst := 0, dst[4*run:]; k < 4; k++ {
				dst[k] = fraction(8, q[k], q[8+k], q[16+k], q[24+k], q[28+k])
			}
		}),
		ofDigits("h", 16, func(dst, q []byte, run int) {
			for k, n := range nibbleOf {
				dst[2*run+n/2] |= fraction(5, q[4+k], q[12+k], q[20+k]) >> 1 << (n % 2 * 4)
			}
		}),
		ofDigits("l", 4, func(dst, q []byte, run int) {
			for k, n := range bitOf {
				dst[run/2] |= fraction(5, q[4+k], q[12+k], q[20+k]) & 1 << (n + run%2*4)
			}
		}),
		{name: "d", size: 2, from: 52},
	}}
}

// nibbleOf and bitOf are where byte k of a run's fractions of three digits has its nibble and its bit.
var nibbleOf, bitOf = [4]int{1, 0, 3, 2}, [4]int{3, 2, 1, 0}

// ofDigits is a plane made of the digits of each run of a block.
func ofDigits(name string, size int, fill func(dst, q []byte, run int)) field {
	return field{name: name, size: size, fill: func(dst, block []byte) {
		q := digits(block)
		clear(dst)
		for run := range 8 {
			fill(dst, q[32*run:][:32], run)
		}
	}}
}

// ternaryParts are the parts of the file's block: bytes of some digits each, which are elements as far apart as the
// part has bytes.
var ternaryParts = [3]struct{ from, bytes, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}}

// digits returns those of a block of the file, 0 to 2.
func digits(block []byte) (q [256]byte) {
	to := q[:]
	for _, p := range ternaryParts {
		for k, x := range block[p.from:][:p.bytes] {
			for i := range p.digits {
				to[i*p.bytes+k], x = byte(uint16(x)*3>>8), x*3
			}
		}
		to = to[p.bytes*p.digits:]
	}
	return
}

// fraction returns digits as a fraction to base 3: the least number of units of 1/2^bits of which multiplications make
// all of them.
func fraction(bits int, digits ...byte) byte {
	n, of := 0, 1
	for _, d := range digits {
		n, of = 3*n+int(d), 3*of
	}
	return byte((n<<bits + of - 1) / of)
}
