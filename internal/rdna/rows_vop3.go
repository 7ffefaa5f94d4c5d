package rdna

import (
	"math"
	"math/bits"
)

func median[T int32 | uint32 | int16 | uint16](a, b, c T) T { return max(min(a, b), min(max(a, b), c)) }

// ints makes functions of lanes from those of signed numbers.
func ints2(f func(a, b int32) int32) lane2 {
	return func(a, b uint32) uint32 { return uint32(f(int32(a), int32(b))) }
}
func ints3(f func(a, b, c int32) int32) lane3 {
	return func(a, b, c uint32) uint32 { return uint32(f(int32(a), int32(b), int32(c))) }
}
func shorts2(f func(a, b int16) int16) lane2 {
	return func(a, b uint32) uint32 { return uint32(uint16(f(int16(a), int16(b)))) }
}
func shorts3(f func(a, b, c int16) int16) lane3 {
	return func(a, b, c uint32) uint32 { return uint32(uint16(f(int16(a), int16(b), int16(c)))) }
}

// permByte is a byte that v_perm_b32 chooses of eight.
func permByte(x uint64, sel uint32) uint32 {
	switch {
	case sel < 8:
		return uint32(x >> (8 * sel) & 255)
	case sel < 12: // signs of words
		return uint32(255 * (x >> (15 + 16*(sel-8)) & 1))
	case sel == 12:
		return 0
	}
	return 255
}

func perm(a, b, sel uint32) (d uint32) {
	x := uint64(a)<<32 | uint64(b)
	for i := range 4 {
		d |= permByte(x, sel>>(8*i)&255) << (8 * i)
	}
	return d
}

// clamp16 is what packing conversions do with what does not fit.
func pack16(lo, hi int64, least, most int64) uint32 {
	return uint32(max(min(lo, most), least))&0xffff | uint32(max(min(hi, most), least))<<16
}

func ldexp32(a, b uint32) uint32 {
	return u32(float32(math.Ldexp(float64(fval(uint64(a))), int(int32(b)))))
}

var vop3Rows = []spec{
	{521, 521, "v_fma_dx9_zero_f32", "f32 f32 f32 f32", func(a, b, c float32) float32 { return mulDX9(a, b) + c }},
	{522, 522, "v_mad_i32_i24", "i32 i32 i32 i32", func(a, b, c uint32) uint32 { return uint32(i24(a)*i24(b)) + c }},
	{523, 523, "v_mad_u32_u24", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return uint32(u24(a)*u24(b)) + c }},
	{528, 528, "v_bfe_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a >> (b & 31) & (1<<(c&31) - 1) }},
	{529, 529, "v_bfe_i32", "i32 i32 b32 b32", func(a, b, c uint32) uint32 {
		if c &= 31; c == 0 {
			return 0
		}
		return uint32(int32(uint32(int32(a)>>(b&31))<<(32-c)) >> (32 - c))
	}},
	{530, 530, "v_bfi_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a&b | ^a&c }},
	{531, 531, "v_fma_f32", "f32 f32 f32 f32", fma32},
	{532, 532, "v_fma_f64", "f64 f64 f64 f64", math.FMA},
	{534, 534, "v_alignbit_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return uint32((uint64(a)<<32 | uint64(b)) >> (c & 31)) }},
	{535, 535, "v_alignbyte_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return uint32((uint64(a)<<32 | uint64(b)) >> (8 * (c & 3))) }},
	{537, 553, "v_min3_f32|v_min3_num_f32", "f32 f32 f32 f32", func(a, b, c float32) float32 { return minNum(minNum(a, b), c) }},
	{538, 538, "v_min3_i32", "i32 i32 i32 i32", ints3(func(a, b, c int32) int32 { return min(a, b, c) })},
	{539, 539, "v_min3_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return min(a, b, c) }},
	{540, 554, "v_max3_f32|v_max3_num_f32", "f32 f32 f32 f32", func(a, b, c float32) float32 { return maxNum(maxNum(a, b), c) }},
	{541, 541, "v_max3_i32", "i32 i32 i32 i32", ints3(func(a, b, c int32) int32 { return max(a, b, c) })},
	{542, 542, "v_max3_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return max(a, b, c) }},
	{543, 561, "v_med3_f32|v_med3_num_f32", "f32 f32 f32 f32", med3[float32]},
	{544, 544, "v_med3_i32", "i32 i32 i32 i32", ints3(median[int32])},
	{545, 545, "v_med3_u32", "b32 b32 b32 b32", median[uint32]},
	{549, 549, "v_sad_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return max(a, b) - min(a, b) + c }},
	{551, 551, "v_div_fixup_f32", "f32 f32 f32 f32", divFixup},
	{567, 567, "v_div_fmas_f32", "f32 f32 f32 f32", divFmas{}},
	{576, 576, "v_xor3_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a ^ b ^ c }},
	{577, 577, "v_mad_u16", "b16 b16 b16 b16", func(a, b, c uint32) uint32 { return a*b + c }},
	{580, 580, "v_perm_b32", "b32 b32 b32 b32", perm},
	{581, 581, "v_xad_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return (a ^ b) + c }},
	{582, 582, "v_lshl_add_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a<<(b&31) + c }},
	{583, 583, "v_add_lshl_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return (a + b) << (c & 31) }},
	{584, 584, "v_fma_f16", "f16 f16 f16 f16", math.FMA},
	{585, 555, "v_min3_f16|v_min3_num_f16", "f16 f16 f16 f16", func(a, b, c float64) float64 { return minNum(minNum(a, b), c) }},
	{586, 586, "v_min3_i16", "i16 i16 i16 i16", shorts3(func(a, b, c int16) int16 { return min(a, b, c) })},
	{587, 587, "v_min3_u16", "b16 b16 b16 b16", func(a, b, c uint32) uint32 { return min(a, b, c) }},
	{588, 556, "v_max3_f16|v_max3_num_f16", "f16 f16 f16 f16", func(a, b, c float64) float64 { return maxNum(maxNum(a, b), c) }},
	{589, 589, "v_max3_i16", "i16 i16 i16 i16", shorts3(func(a, b, c int16) int16 { return max(a, b, c) })},
	{590, 590, "v_max3_u16", "b16 b16 b16 b16", func(a, b, c uint32) uint32 { return max(a, b, c) }},
	{591, 562, "v_med3_f16|v_med3_num_f16", "f16 f16 f16 f16", med3[float64]},
	{592, 592, "v_med3_i16", "i16 i16 i16 i16", shorts3(median[int16])},
	{593, 593, "v_med3_u16", "b16 b16 b16 b16", func(a, b, c uint32) uint32 { return median(a, b, c) }},
	{595, 595, "v_mad_i16", "i16 i16 i16 i16", func(a, b, c uint32) uint32 { return a*b + c }},
	{597, 597, "v_add3_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a + b + c }},
	{598, 598, "v_lshl_or_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a<<(b&31) | c }},
	{599, 599, "v_and_or_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a&b | c }},
	{600, 600, "v_or3_b32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return a | b | c }},
	{601, 601, "v_mad_u32_u16", "b32 b16 b16 b32", func(a, b, c uint32) uint32 { return a&0xffff*(b&0xffff) + c }},
	{602, 602, "v_mad_i32_i16", "i32 i16 i16 i32", func(a, b, c uint32) uint32 { return uint32(int32(int16(a))*int32(int16(b))) + c }},
	{603, 603, "v_permlane16_b32", "b32 b32 sb32 sb32", permlane16{}},
	{604, 604, "v_permlanex16_b32", "b32 b32 sb32 sb32", permlane16{cross: true}},
	{605, 605, "v_cndmask_b16", "b16 b16 b16 m", selectOp{}},
	{606, 617, "v_maxmin_f32|v_maxmin_num_f32", "f32 f32 f32 f32", func(a, b, c float32) float32 { return minNum(maxNum(a, b), c) }},
	{607, 616, "v_minmax_f32|v_minmax_num_f32", "f32 f32 f32 f32", func(a, b, c float32) float32 { return maxNum(minNum(a, b), c) }},
	{608, 619, "v_maxmin_f16|v_maxmin_num_f16", "f16 f16 f16 f16", func(a, b, c float64) float64 { return minNum(maxNum(a, b), c) }},
	{609, 618, "v_minmax_f16|v_minmax_num_f16", "f16 f16 f16 f16", func(a, b, c float64) float64 { return maxNum(minNum(a, b), c) }},
	{610, 610, "v_maxmin_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return min(max(a, b), c) }},
	{611, 611, "v_minmax_u32", "b32 b32 b32 b32", func(a, b, c uint32) uint32 { return max(min(a, b), c) }},
	{612, 612, "v_maxmin_i32", "i32 i32 i32 i32", ints3(func(a, b, c int32) int32 { return min(max(a, b), c) })},
	{613, 613, "v_minmax_i32", "i32 i32 i32 i32", ints3(func(a, b, c int32) int32 { return max(min(a, b), c) })},
	{-1, 640, "v_s_exp_f32", "s32 sf32", onScalar(math.Exp2)},
	{-1, 642, "v_s_log_f32", "s32 sf32", onScalar(math.Log2)},
	{-1, 644, "v_s_rcp_f32", "s32 sf32", onScalar(func(a float64) float64 { return 1 / a })},
	{-1, 646, "v_s_rsq_f32", "s32 sf32", onScalar(func(a float64) float64 { return 1 / math.Sqrt(a) })},
	{-1, 648, "v_s_sqrt_f32", "s32 sf32", onScalar(math.Sqrt)},
	{771, 771, "v_add_nc_u16", "b16 b16 b16", func(a, b uint32) uint32 { return a + b }},
	{772, 772, "v_sub_nc_u16", "b16 b16 b16", func(a, b uint32) uint32 { return a - b }},
	{773, 773, "v_mul_lo_u16", "b16 b16 b16", func(a, b uint32) uint32 { return a * b }},
	{774, 774, "v_cvt_pk_i16_f32", "pk f32 f32", func(a, b uint32) uint32 {
		return pack16(int64(int32(f32ToI32(uint64(a)))), int64(int32(f32ToI32(uint64(b)))), math.MinInt16, math.MaxInt16)
	}},
	{775, 775, "v_cvt_pk_u16_f32", "pk f32 f32", func(a, b uint32) uint32 {
		return pack16(int64(f32ToU32(uint64(a))), int64(f32ToU32(uint64(b))), 0, math.MaxUint16)
	}},
	{777, 777, "v_max_u16", "b16 b16 b16", func(a, b uint32) uint32 { return max(a, b) }},
	{778, 778, "v_max_i16", "i16 i16 i16", shorts2(func(a, b int16) int16 { return max(a, b) })},
	{779, 779, "v_min_u16", "b16 b16 b16", func(a, b uint32) uint32 { return min(a, b) }},
	{780, 780, "v_min_i16", "i16 i16 i16", shorts2(func(a, b int16) int16 { return min(a, b) })},
	{781, 781, "v_add_nc_i16", "i16 i16 i16", func(a, b uint32) uint32 { return a + b }},
	{782, 782, "v_sub_nc_i16", "i16 i16 i16", func(a, b uint32) uint32 { return a - b }},
	{-1, 783, "v_permlane16_var_b32", "b32 b32 b32", permlaneVar{}},
	{-1, 784, "v_permlanex16_var_b32", "b32 b32 b32", permlaneVar{cross: true}},
	{785, 785, "v_pack_b32_f16", "b32 f16 f16", func(a, b uint32) uint32 { return a&0xffff | b<<16 }},
	{796, 796, "v_ldexp_f32", "f32 f32 i32", ldexp32},
	{797, 797, "v_bfm_b32", "b32 b32 b32", func(a, b uint32) uint32 { return (1<<(a&31) - 1) << (b & 31) }},
	{798, 798, "v_bcnt_u32_b32", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(bits.OnesCount32(a)) + b }},
	{799, 799, "v_mbcnt_lo_u32_b32", "b32 b32 b32", countBelow{}},
	{800, 800, "v_mbcnt_hi_u32_b32", "b32 b32 b32", countBelow{high: true}},
	{803, 803, "v_cvt_pk_u16_u32", "pk b32 b32", func(a, b uint32) uint32 { return pack16(int64(a), int64(b), 0, math.MaxUint16) }},
	{804, 804, "v_cvt_pk_i16_i32", "pk i32 i32", func(a, b uint32) uint32 {
		return pack16(int64(int32(a)), int64(int32(b)), math.MinInt16, math.MaxInt16)
	}},
	{805, 805, "v_sub_nc_i32", "i32 i32 i32", func(a, b uint32) uint32 { return a - b }},
	{806, 806, "v_add_nc_i32", "i32 i32 i32", func(a, b uint32) uint32 { return a + b }},
	{807, -1, "v_add_f64", "f64 f64 f64", addF[float64]},
	{808, -1, "v_mul_f64", "f64 f64 f64", mulF[float64]},
	{809, -1, "v_min_f64", "f64 f64 f64", minNum[float64]},
	{810, -1, "v_max_f64", "f64 f64 f64", maxNum[float64]},
	{812, 812, "v_mul_lo_u32", "b32 b32 b32", func(a, b uint32) uint32 { return a * b }},
	{813, 813, "v_mul_hi_u32", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(uint64(a) * uint64(b) >> 32) }},
	{814, 814, "v_mul_hi_i32", "i32 i32 i32", ints2(func(a, b int32) int32 { return int32(int64(a) * int64(b) >> 32) })},
	{824, 824, "v_lshlrev_b16", "b16 b16 b16", func(a, b uint32) uint32 { return b << (a & 15) }},
	{825, 825, "v_lshrrev_b16", "b16 b16 b16", func(a, b uint32) uint32 { return b & 0xffff >> (a & 15) }},
	{826, 826, "v_ashrrev_i16", "i16 b16 i16", func(a, b uint32) uint32 { return uint32(int32(int16(b)) >> (a & 15)) }},
	{828, -1, "v_lshlrev_b64", "b64 b32 b64", func(a, b uint64) uint64 { return b << (a & 63) }},
	{829, 829, "v_lshrrev_b64", "b64 b32 b64", func(a, b uint64) uint64 { return b >> (a & 63) }},
	{830, 830, "v_ashrrev_i64", "i64 b32 i64", func(a, b uint64) uint64 { return uint64(int64(b) >> (a & 63)) }},
	{864, 864, "v_readlane_b32", "s32 b32 sb32", readLane{}},
	{865, 865, "v_writelane_b32", "b32 sb32 sb32", writeLane{}},
	{866, 866, "v_and_b16", "b16 b16 b16", func(a, b uint32) uint32 { return a & b }},
	{867, 867, "v_or_b16", "b16 b16 b16", func(a, b uint32) uint32 { return a | b }},
	{868, 868, "v_xor_b16", "b16 b16 b16", func(a, b uint32) uint32 { return a ^ b }},
}

var vop3sdRows = []spec{
	{764, 764, "v_div_scale_f32", "f32 f32 f32 f32", divScale{}},
	{766, 766, "v_mad_u64_u32|v_mad_co_u64_u32", "b64 b32 b32 b64", wideMad(func(a, b, c uint64) (uint64, bool) {
		hi, lo := bits.Mul64(a, b)
		lo, over := bits.Add64(lo, c, 0)
		return lo, hi+over != 0
	})},
	{767, 767, "v_mad_i64_i32|v_mad_co_i64_i32", "i64 i32 i32 i64", wideMad(func(a, b, c uint64) (uint64, bool) {
		p := signed(a) * signed(b)
		s := p + int64(c)
		return uint64(s), (s < p) != (int64(c) < 0)
	})},
	{768, 768, "v_add_co_u32", "b32 b32 b32", carryOp(func(a, b, _ uint64) (uint64, bool) { s := a + b; return s, s>>32 != 0 })},
	{769, 769, "v_sub_co_u32", "b32 b32 b32", carryOp(func(a, b, _ uint64) (uint64, bool) { return a - b, b > a })},
	{770, 770, "v_subrev_co_u32", "b32 b32 b32", carryOp(func(a, b, _ uint64) (uint64, bool) { return b - a, a > b })},
}

// divFixup finishes a division a of c by b: of what is no number, zero or infinite.
func divFixup(q, b, c float32) float32 {
	neg := math.Signbit(float64(b)) != math.Signbit(float64(c))
	signed := func(x float64) float32 {
		if neg {
			x = -x
		}
		return float32(x)
	}
	inf := func(x float32) bool { return math.IsInf(float64(x), 0) }
	switch {
	case c != c:
		return c
	case b != b:
		return b
	case b == 0 && c == 0 || inf(b) && inf(c):
		return float32(math.NaN())
	case b == 0 || inf(c):
		return signed(math.Inf(1))
	case inf(b) || c == 0:
		return signed(0)
	}
	return signed(math.Abs(float64(q)))
}

// vop3pRows work on halves of registers, or multiply vectors and matrices.
var vop3pRows = []spec{
	{0, 0, "v_pk_mad_i16", "pk pk pk pk", packed3(func(a, b, c uint32) uint32 { return a*b + c })},
	{1, 1, "v_pk_mul_lo_u16", "pk pk pk", packed2(func(a, b uint32) uint32 { return a * b })},
	{2, 2, "v_pk_add_i16", "pk pk pk", packed2(func(a, b uint32) uint32 { return a + b })},
	{3, 3, "v_pk_sub_i16", "pk pk pk", packed2(func(a, b uint32) uint32 { return a - b })},
	{4, 4, "v_pk_lshlrev_b16", "pk pk pk", packed2(func(a, b uint32) uint32 { return b << (a & 15) })},
	{5, 5, "v_pk_lshrrev_b16", "pk pk pk", packed2(func(a, b uint32) uint32 { return b >> (a & 15) })},
	{6, 6, "v_pk_ashrrev_i16", "pk pk pk", packed2(func(a, b uint32) uint32 { return uint32(int32(int16(b)) >> (a & 15)) })},
	{7, 7, "v_pk_max_i16", "pk pk pk", packed2(shorts2(func(a, b int16) int16 { return max(a, b) }))},
	{8, 8, "v_pk_min_i16", "pk pk pk", packed2(shorts2(func(a, b int16) int16 { return min(a, b) }))},
	{9, 9, "v_pk_mad_u16", "pk pk pk pk", packed3(func(a, b, c uint32) uint32 { return a*b + c })},
	{10, 10, "v_pk_add_u16", "pk pk pk", packed2(func(a, b uint32) uint32 { return a + b })},
	{11, 11, "v_pk_sub_u16", "pk pk pk", packed2(func(a, b uint32) uint32 { return a - b })},
	{12, 12, "v_pk_max_u16", "pk pk pk", packed2(func(a, b uint32) uint32 { return max(a, b) })},
	{13, 13, "v_pk_min_u16", "pk pk pk", packed2(func(a, b uint32) uint32 { return min(a, b) })},
	{14, 14, "v_pk_fma_f16", "pk pk pk pk", packedF3(math.FMA)},
	{15, 15, "v_pk_add_f16", "pk pk pk", packedF2(addF[float64])},
	{16, 16, "v_pk_mul_f16", "pk pk pk", packedF2(mulF[float64])},
	{17, 27, "v_pk_min_f16|v_pk_min_num_f16", "pk pk pk", packedF2(minNum[float64])},
	{18, 28, "v_pk_max_f16|v_pk_max_num_f16", "pk pk pk", packedF2(maxNum[float64])},
	{19, 19, "v_dot2_f32_f16", "f32 pk pk f32", dot2{f16, false}},
	{22, 22, "v_dot4_i32_iu8", "i32 b32 b32 i32", dotBits{8}},
	{23, 23, "v_dot4_u32_u8", "b32 b32 b32 b32", dotBits{8}},
	{24, 24, "v_dot8_i32_iu4", "i32 b32 b32 i32", dotBits{4}},
	{25, 25, "v_dot8_u32_u4", "b32 b32 b32 b32", dotBits{4}},
	{26, 26, "v_dot2_f32_bf16", "f32 pk pk f32", dot2{bf16, true}},
	{32, 32, "v_fma_mix_f32", "f32 f32 f32 f32", mix{}},
	{33, 33, "v_fma_mixlo_f16", "f16 f32 f32 f32", mix{half: 1}},
	{34, 34, "v_fma_mixhi_f16", "f16 f32 f32 f32", mix{half: 2}},
	{64, -1, "v_wmma_f32_16x16x16_f16", "v8 v8 v8 v8", matmul{a: f16, float: true}},
	{65, -1, "v_wmma_f32_16x16x16_bf16", "v8 v8 v8 v8", matmul{a: bf16, float: true}},
	{66, -1, "v_wmma_f16_16x16x16_f16", "v8 v8 v8 v8", matmul{a: f16, float: true, short: true}},
	{68, -1, "v_wmma_i32_16x16x16_iu8", "v8 v4 v4 v8", matmul{bits: 8}},
	{69, -1, "v_wmma_i32_16x16x16_iu4", "v8 v2 v2 v8", matmul{bits: 4}},
	{-1, 64, "v_wmma_f32_16x16x16_f16", "v8 v4 v4 v8", matmul{a: f16, float: true}},
	{-1, 65, "v_wmma_f32_16x16x16_bf16", "v8 v4 v4 v8", matmul{a: bf16, float: true}},
	{-1, 66, "v_wmma_f16_16x16x16_f16", "v4 v4 v4 v4", matmul{a: f16, float: true, short: true}},
	{-1, 68, "v_wmma_i32_16x16x16_iu8", "v8 v2 v2 v8", matmul{bits: 8}},
}

// vopdHalves are the instructions of which VOPD executes two, by their opcodes there: the names of their rows in gfx11.
var vopdHalves = map[int]string{0: "v_fmac_f32", 1: "v_fmaak_f32", 2: "v_fmamk_f32", 3: "v_mul_f32", 4: "v_add_f32", 5: "v_sub_f32", 6: "v_subrev_f32",
	7: "v_mul_dx9_zero_f32", 8: "v_mov_b32", 9: "v_cndmask_b32", 10: "v_max_f32", 11: "v_min_f32", 12: "v_dot2acc_f32_f16", 16: "v_add_nc_u32",
	17: "v_lshlrev_b32", 18: "v_and_b32"}
