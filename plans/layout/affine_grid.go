package layout

import (
	"math/bits"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/ir/gguf/codebook"
)

// Formats of vectors of a grid, and of few bits: see package gguf for their bits.

// signed fills q with elements of a grid, negative where a bit of signs is set.
func signed(q []byte, grid []int8, signs byte) {
	for j, v := range grid {
		if signs>>j&1 != 0 {
			v = -v
		}
		q[j] = byte(v)
	}
}

// signs7 completes seven sign bits with the eighth, which makes their number even.
func signs7(b uint32) byte { return byte(b&127 | uint32(bits.OnesCount32(b&127)&1)<<7) }

func quantsIQ2_XXS(q, b []byte) {
	for r := range 32 {
		g := b[2+r/4*8:]
		signed(q[8*r:], codebook.IQ2XXS.Vector(int(g[r%4])), signs7(le.Uint32(g[4:])>>(r%4*7)))
	}
}

func scaleIQ2_XXS(b []byte, g int) float32 {
	return half(b) * float32(2*(b[2+8*g+7]>>4)+1) / 8
}

func quantsIQ2_XS(q, b []byte) {
	for r := range 32 {
		w := le.Uint16(b[2+2*r:])
		signed(q[8*r:], codebook.IQ2XS.Vector(int(w&511)), signs7(uint32(w>>9)))
	}
}

func scaleIQ2_XS(b []byte, g int) float32 { return half(b) * odd(b[66+g/2]>>(g%2*4)&15) / 8 }

func quantsIQ2_S(q, b []byte) {
	for r := range 32 {
		i := int(b[2+r]) | int(b[66+r/4])>>(r%4*2)&3<<8
		signed(q[8*r:], codebook.IQ2S.Vector(i), b[34+r])
	}
}

func scaleIQ2_S(b []byte, g int) float32 { return half(b) * odd(b[74+g/2]>>(g%2*4)&15) / 8 }

func quantsIQ3_XXS(q, b []byte) {
	for r := range 32 {
		signs := signs7(le.Uint32(b[66+r/4*4:]) >> (r % 4 * 7))
		signed(q[8*r:], codebook.IQ3XXS.Vector(int(b[2+2*r])), signs)
		signed(q[8*r+4:], codebook.IQ3XXS.Vector(int(b[3+2*r])), signs>>4)
	}
}

func scaleIQ3_XXS(b []byte, g int) float32 { return half(b) * odd(b[66+4*g+3]>>4) / 4 }

func quantsIQ3_S(q, b []byte) {
	for r := range 64 {
		i := int(b[2+r]) | int(b[66+r/8])>>(r%8)&1<<8
		signed(q[4*r:], codebook.IQ3S.Vector(i), b[74+r/2]>>(r%2*4))
	}
}

func scaleIQ3_S(b []byte, g int) float32 { return half(b) * odd(b[106+g/2]>>(g%2*4)&15) }

func odd(s byte) float32 { return float32(2*int(s) + 1) }

// shifted fills q with 8 times the elements of a grid, one more or one less.
func shifted(q []byte, grid []int8, less bool) {
	for j, v := range grid {
		if v = 8*v + 1; less {
			v -= 2
		}
		q[j] = byte(v)
	}
}

func quantsIQ1_S(q, b []byte) {
	for r := range 32 {
		h := le.Uint16(b[34+r/4*2:])
		shifted(q[8*r:], codebook.IQ1S.Vector(int(b[2+r])|int(h)>>(r%4*3)&7<<8), h>>15 != 0)
	}
}

func scaleIQ1_S(b []byte, g int) float32 {
	return half(b) * odd(byte(le.Uint16(b[34+2*g:])>>12&7)) / 8
}

func quantsIQ1_M(q, b []byte) {
	for r := range 32 {
		h := b[32+r/2] >> (r % 2 * 4)
		shifted(q[8*r:], codebook.IQ1S.Vector(int(b[r])|int(h&7)<<8), h&8 != 0)
	}
}

func scaleIQ1_M(b []byte, g int) float32 {
	var d uint16
	for k := range 4 {
		d |= le.Uint16(b[48+2*k:]) >> 12 << (4 * k)
	}
	return gguf.F16ToF32(d) * odd(byte(le.Uint16(b[48+g/4*2:])>>(g%4*3)&7)) / 8
}

func quantsTQ1_0(q, b []byte) {
	i := 0
	for _, part := range []struct{ from, bytes, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}} {
		power := byte(1)
		for range part.digits {
			for _, x := range b[part.from:][:part.bytes] {
				q[i] = byte(uint16(x*power)*3>>8) - 1
				i++
			}
			power *= 3
		}
	}
}

func scaleTQ1_0(b []byte, _ int) float32 { return half(b[52:]) }

func quantsTQ2_0(q, b []byte) {
	for i := range q {
		q[i] = bits2(b, i) - 1
	}
}

func scaleTQ2_0(b []byte, _ int) float32 { return half(b[64:]) }

func quantsQ1_0(q, b []byte) {
	for i := range q {
		q[i] = b[2+i/8]>>(i%8)&1<<1 - 1
	}
}

func quantsQ2_0(q, b []byte) {
	for i := range q {
		q[i] = b[2+i/4]>>(i%4*2)&3 - 1
	}
}

func quantsNVFP4(q, b []byte) {
	for s := range 4 {
		for j, n := range b[4+8*s:][:8] {
			q[16*s+j], q[16*s+8+j] = byte(codebook.E2M1[n&15]), byte(codebook.E2M1[n>>4])
		}
	}
}

func scaleNVFP4(b []byte, g int) float32 { return gguf.E4M3ToF32(b[g]) / 2 }
