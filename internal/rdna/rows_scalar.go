package rdna

import (
	"math"
	"math/bits"
)

// Functions of scalars: with a condition code as a second result, or without; the third form has the condition as
// input.
type (
	scalar1    = func(a uint64) uint64
	scalar1scc = func(a uint64) (uint64, bool)
	scalar2    = func(a, b uint64) uint64
	scalar2scc = func(a, b uint64) (uint64, bool)
	scalarIn   = func(a, b uint64, in bool) (uint64, bool)
	scalarCmp  = func(a, b uint64) bool
	scalarF1   = func(a float32) float32
	scalarF2   = func(a, b float32) float32
	scalarF3   = func(a, b, c float32) float32
)

func nonzero(x uint64) (uint64, bool)   { return x, x != 0 }
func nonzero32(x uint32) (uint64, bool) { return uint64(x), x != 0 }

var sop1Rows = []spec{
	{0, 0, "s_mov_b32", "b32 b32", func(a uint64) uint64 { return a }},
	{1, 1, "s_mov_b64", "b64 b64", func(a uint64) uint64 { return a }},
	{2, 2, "s_cmov_b32", "b32 b32 =b32", cmov{}},
	{3, 3, "s_cmov_b64", "b64 b64 =b64", cmov{}},
	{4, 4, "s_brev_b32", "b32 b32", func(a uint64) uint64 { return uint64(bits.Reverse32(uint32(a))) }},
	{5, 5, "s_brev_b64", "b64 b64", func(a uint64) uint64 { return bits.Reverse64(a) }},
	{8, 8, "s_ctz_i32_b32", "b32 b32", func(a uint64) uint64 { return firstBit(a, bits.TrailingZeros32(uint32(a))) }},
	{9, 9, "s_ctz_i32_b64", "b32 b64", func(a uint64) uint64 { return firstBit(a, bits.TrailingZeros64(a)) }},
	{10, 10, "s_clz_i32_u32", "b32 b32", func(a uint64) uint64 { return firstBit(a, bits.LeadingZeros32(uint32(a))) }},
	{11, 11, "s_clz_i32_u64", "b32 b64", func(a uint64) uint64 { return firstBit(a, bits.LeadingZeros64(a)) }},
	{14, 14, "s_sext_i32_i8", "b32 b32", func(a uint64) uint64 { return uint64(uint32(int8(a))) }},
	{15, 15, "s_sext_i32_i16", "b32 b32", func(a uint64) uint64 { return uint64(uint32(int16(a))) }},
	{16, 16, "s_bitset0_b32", "b32 b32 =b32", func(a, d uint64) uint64 { return d &^ (1 << (a & 31)) }},
	{18, 18, "s_bitset1_b32", "b32 b32 =b32", func(a, d uint64) uint64 { return d | 1<<(a&31) }},
	{20, 20, "s_bitreplicate_b64_b32", "b64 b32", func(a uint64) (d uint64) {
		for i := range 32 {
			d |= a >> i & 1 * 3 << (2 * i)
		}
		return d
	}},
	{21, 21, "s_abs_i32", "b32 b32", func(a uint64) (uint64, bool) { return nonzero32(uint32(max(int32(a), -int32(a)))) }},
	{24, 24, "s_bcnt1_i32_b32", "b32 b32", func(a uint64) (uint64, bool) { return nonzero(uint64(bits.OnesCount32(uint32(a)))) }},
	{25, 25, "s_bcnt1_i32_b64", "b32 b64", func(a uint64) (uint64, bool) { return nonzero(uint64(bits.OnesCount64(a))) }},
	{30, 30, "s_not_b32", "b32 b32", func(a uint64) (uint64, bool) { return nonzero32(^uint32(a)) }},
	{31, 31, "s_not_b64", "b64 b64", func(a uint64) (uint64, bool) { return nonzero(^a) }},
	{32, 32, "s_and_saveexec_b32", "b32 b32", saveExec(func(a, e uint64) uint64 { return a & e })},
	{33, 33, "s_and_saveexec_b64", "b64 b64", saveExec(func(a, e uint64) uint64 { return a & e })},
	{34, 34, "s_or_saveexec_b32", "b32 b32", saveExec(func(a, e uint64) uint64 { return a | e })},
	{35, 35, "s_or_saveexec_b64", "b64 b64", saveExec(func(a, e uint64) uint64 { return a | e })},
	{36, 36, "s_xor_saveexec_b32", "b32 b32", saveExec(func(a, e uint64) uint64 { return a ^ e })},
	{37, 37, "s_xor_saveexec_b64", "b64 b64", saveExec(func(a, e uint64) uint64 { return a ^ e })},
	{44, 44, "s_and_not0_saveexec_b32", "b32 b32", saveExec(func(a, e uint64) uint64 { return ^a & e })},
	{45, 45, "s_and_not0_saveexec_b64", "b64 b64", saveExec(func(a, e uint64) uint64 { return ^a & e })},
	{48, 48, "s_and_not1_saveexec_b32", "b32 b32", saveExec(func(a, e uint64) uint64 { return a &^ e })},
	{49, 49, "s_and_not1_saveexec_b64", "b64 b64", saveExec(func(a, e uint64) uint64 { return a &^ e })},
	{71, 71, "s_getpc_b64", "b64", getPC{}},
	{72, 72, "s_setpc_b64", "- b64", setPC{}},
	{-1, 78, "s_barrier_signal", "- b32", barrierSignal{}},
	{96, 96, "s_ceil_f32", "f32 f32", func(a float32) float32 { return float32(math.Ceil(float64(a))) }},
	{97, 97, "s_floor_f32", "f32 f32", func(a float32) float32 { return float32(math.Floor(float64(a))) }},
	{98, 98, "s_trunc_f32", "f32 f32", func(a float32) float32 { return float32(math.Trunc(float64(a))) }},
	{99, 99, "s_rndne_f32", "f32 f32", func(a float32) float32 { return float32(math.RoundToEven(float64(a))) }},
	{100, 100, "s_cvt_f32_i32", "f32 i32", func(a uint64) uint64 { return fbits(float32(int32(a))) }},
	{101, 101, "s_cvt_f32_u32", "f32 b32", func(a uint64) uint64 { return fbits(float32(uint32(a))) }},
	{102, 102, "s_cvt_i32_f32", "i32 f32", func(a uint64) uint64 { return f32ToI32(a) }},
	{103, 103, "s_cvt_u32_f32", "b32 f32", func(a uint64) uint64 { return f32ToU32(a) }},
	{104, 104, "s_cvt_f16_f32", "f16 f32", scalarConvert{}},
	{105, 105, "s_cvt_f32_f16", "f32 f16", scalarConvert{}},
	{106, 106, "s_cvt_hi_f32_f16", "f32 b32", func(a uint64) uint64 { return fbits(float32(f16(a >> 16))) }},
}

func fbits(x float32) uint64 { return uint64(math.Float32bits(x)) }
func fval(b uint64) float32  { return math.Float32frombits(uint32(b)) }
func f32ToI32(b uint64) uint64 {
	return uint64(uint32(toInt(float64(fval(b)), math.MinInt32, math.MaxInt32)))
}
func f32ToU32(b uint64) uint64      { return uint64(uint32(toInt(float64(fval(b)), 0, math.MaxUint32))) }
func signed(x uint64) int64         { return int64(int32(x)) }
func overflows(x int64) bool        { return x != int64(int32(x)) }
func low(x int64) uint64            { return uint64(uint32(x)) }
func extend(x uint64, n int) uint64 { return uint64(int64(x<<(64-n)) >> (64 - n)) }

// firstBit is the place of a bit, -1 if there is none.
func firstBit(a uint64, at int) uint64 {
	if a == 0 {
		return 0xffffffff
	}
	return uint64(at)
}

func bitField(a, b uint64, width int, signed bool) uint64 {
	at, n := int(b&uint64(width-1)), int(b>>16&0x7f)
	if n == 0 {
		return 0
	}
	x := a >> at
	if n < width {
		x &= 1<<n - 1
		if signed {
			x = extend(x, n)
		}
	} else if signed {
		x = extend(a, width) >> 0
		x = uint64(int64(x) >> at)
	}
	if width == 32 {
		x = uint64(uint32(x))
	}
	return x
}

var sop2Rows = []spec{
	{0, 0, "s_add_u32|s_add_co_u32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return low(int64(a + b)), (a+b)>>32 != 0 }},
	{1, 1, "s_sub_u32|s_sub_co_u32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return low(int64(a - b)), b > a }},
	{2, 2, "s_add_i32|s_add_co_i32", "i32 i32 i32", func(a, b uint64) (uint64, bool) { s := signed(a) + signed(b); return low(s), overflows(s) }},
	{3, 3, "s_sub_i32|s_sub_co_i32", "i32 i32 i32", func(a, b uint64) (uint64, bool) { s := signed(a) - signed(b); return low(s), overflows(s) }},
	{4, 4, "s_addc_u32|s_add_co_ci_u32", "b32 b32 b32", func(a, b uint64, in bool) (uint64, bool) { s := a + b + bit(in); return low(int64(s)), s>>32 != 0 }},
	{5, 5, "s_subb_u32|s_sub_co_ci_u32", "b32 b32 b32", func(a, b uint64, in bool) (uint64, bool) { s := a - b - bit(in); return low(int64(s)), b+bit(in) > a }},
	{6, 6, "s_absdiff_i32", "i32 i32 i32", func(a, b uint64) (uint64, bool) { d := signed(a) - signed(b); return nonzero32(uint32(max(d, -d))) }},
	{8, 8, "s_lshl_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(uint32(a) << (b & 31)) }},
	{9, 9, "s_lshl_b64", "b64 b64 b32", func(a, b uint64) (uint64, bool) { return nonzero(a << (b & 63)) }},
	{10, 10, "s_lshr_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(uint32(a) >> (b & 31)) }},
	{11, 11, "s_lshr_b64", "b64 b64 b32", func(a, b uint64) (uint64, bool) { return nonzero(a >> (b & 63)) }},
	{12, 12, "s_ashr_i32", "i32 i32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(uint32(int32(a) >> (b & 31))) }},
	{13, 13, "s_ashr_i64", "i64 i64 b32", func(a, b uint64) (uint64, bool) { return nonzero(uint64(int64(a) >> (b & 63))) }},
	{14, 14, "s_lshl1_add_u32", "b32 b32 b32", shiftAdd(1)},
	{15, 15, "s_lshl2_add_u32", "b32 b32 b32", shiftAdd(2)},
	{16, 16, "s_lshl3_add_u32", "b32 b32 b32", shiftAdd(3)},
	{17, 17, "s_lshl4_add_u32", "b32 b32 b32", shiftAdd(4)},
	{18, 18, "s_min_i32", "i32 i32 i32", func(a, b uint64) (uint64, bool) { return low(min(signed(a), signed(b))), signed(a) < signed(b) }},
	{19, 19, "s_min_u32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return min(a, b), a < b }},
	{20, 20, "s_max_i32", "i32 i32 i32", func(a, b uint64) (uint64, bool) { return low(max(signed(a), signed(b))), signed(a) >= signed(b) }},
	{21, 21, "s_max_u32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return max(a, b), a >= b }},
	{22, 22, "s_and_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero(a & b) }},
	{23, 23, "s_and_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(a & b) }},
	{24, 24, "s_or_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero(a | b) }},
	{25, 25, "s_or_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(a | b) }},
	{26, 26, "s_xor_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero(a ^ b) }},
	{27, 27, "s_xor_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(a ^ b) }},
	{28, 28, "s_nand_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(^uint32(a & b)) }},
	{29, 29, "s_nand_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(^(a & b)) }},
	{30, 30, "s_nor_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(^uint32(a | b)) }},
	{31, 31, "s_nor_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(^(a | b)) }},
	{32, 32, "s_xnor_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(^uint32(a ^ b)) }},
	{33, 33, "s_xnor_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(^(a ^ b)) }},
	{34, 34, "s_and_not1_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero(a &^ b) }},
	{35, 35, "s_and_not1_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(a &^ b) }},
	{36, 36, "s_or_not1_b32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero32(uint32(a) | ^uint32(b)) }},
	{37, 37, "s_or_not1_b64", "b64 b64 b64", func(a, b uint64) (uint64, bool) { return nonzero(a | ^b) }},
	{38, 38, "s_bfe_u32", "b32 b32 b32", func(a, b uint64) (uint64, bool) { return nonzero(bitField(a, b, 32, false)) }},
	{39, 39, "s_bfe_i32", "i32 i32 b32", func(a, b uint64) (uint64, bool) { return nonzero(bitField(a, b, 32, true)) }},
	{40, 40, "s_bfe_u64", "b64 b64 b32", func(a, b uint64) (uint64, bool) { return nonzero(bitField(a, b, 64, false)) }},
	{41, 41, "s_bfe_i64", "i64 i64 b32", func(a, b uint64) (uint64, bool) { return nonzero(bitField(a, b, 64, true)) }},
	{42, 42, "s_bfm_b32", "b32 b32 b32", func(a, b uint64) uint64 { return low(int64((1<<(a&31) - 1) << (b & 31))) }},
	{43, 43, "s_bfm_b64", "b64 b32 b32", func(a, b uint64) uint64 { return (1<<(a&63) - 1) << (b & 63) }},
	{44, 44, "s_mul_i32", "b32 b32 b32", func(a, b uint64) uint64 { return low(int64(a * b)) }},
	{45, 45, "s_mul_hi_u32", "b32 b32 b32", func(a, b uint64) uint64 { return a * b >> 32 }},
	{46, 46, "s_mul_hi_i32", "i32 i32 i32", func(a, b uint64) uint64 { return low(signed(a) * signed(b) >> 32) }},
	{48, 48, "s_cselect_b32", "b32 b32 b32", cselect{}},
	{49, 49, "s_cselect_b64", "b64 b64 b64", cselect{}},
	{50, 50, "s_pack_ll_b32_b16", "b32 b32 b32", func(a, b uint64) uint64 { return a&0xffff | b&0xffff<<16 }},
	{51, 51, "s_pack_lh_b32_b16", "b32 b32 b32", func(a, b uint64) uint64 { return a&0xffff | b>>16<<16 }},
	{52, 52, "s_pack_hh_b32_b16", "b32 b32 b32", func(a, b uint64) uint64 { return a>>16 | b>>16<<16 }},
	{53, 53, "s_pack_hl_b32_b16", "b32 b32 b32", func(a, b uint64) uint64 { return a>>16 | b&0xffff<<16 }},
	{64, 64, "s_add_f32", "f32 f32 f32", func(a, b float32) float32 { return a + b }},
	{65, 65, "s_sub_f32", "f32 f32 f32", func(a, b float32) float32 { return a - b }},
	{66, 66, "s_min_f32|s_min_num_f32", "f32 f32 f32", minNum[float32]},
	{67, 67, "s_max_f32|s_max_num_f32", "f32 f32 f32", maxNum[float32]},
	{68, 68, "s_mul_f32", "f32 f32 f32", func(a, b float32) float32 { return a * b }},
	{69, 69, "s_fmaak_f32", "f32 f32 f32 kf32", fma32},
	{70, 70, "s_fmamk_f32", "f32 f32 f32 kf32", func(a, b, k float32) float32 { return fma32(a, k, b) }},
	{71, 71, "s_fmac_f32", "f32 f32 f32 =f32", fma32},
	{72, 72, "s_cvt_pk_rtz_f16_f32", "b32 f32 f32", func(a, b uint64) uint64 { return packRTZ(a, b) }},
	{73, 73, "s_add_f16", "f16 f16 f16", func(a, b float64) float64 { return a + b }},
	{74, 74, "s_sub_f16", "f16 f16 f16", func(a, b float64) float64 { return a - b }},
	{75, 75, "s_min_f16|s_min_num_f16", "f16 f16 f16", minNum[float64]},
	{76, 76, "s_max_f16|s_max_num_f16", "f16 f16 f16", maxNum[float64]},
	{77, 77, "s_mul_f16", "f16 f16 f16", func(a, b float64) float64 { return a * b }},
	{78, 78, "s_fmac_f16", "f16 f16 f16 =f16", func(a, b, c float64) float64 { return math.FMA(a, b, c) }},
	{-1, 83, "s_add_nc_u64", "b64 b64 b64", func(a, b uint64) uint64 { return a + b }},
	{-1, 84, "s_sub_nc_u64", "b64 b64 b64", func(a, b uint64) uint64 { return a - b }},
	{-1, 85, "s_mul_u64", "b64 b64 b64", func(a, b uint64) uint64 { return a * b }},
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

func shiftAdd(n int) scalar2scc {
	return func(a, b uint64) (uint64, bool) { s := a<<n + b; return low(int64(s)), s>>32 != 0 }
}

func packRTZ(a, b uint64) uint64 {
	return toF16(float64(fval(a)), true) | toF16(float64(fval(b)), true)<<16
}

var sopcRows = func() []spec {
	list := []spec{
		{12, 12, "s_bitcmp0_b32", "- b32 b32", func(a, b uint64) bool { return a>>(b&31)&1 == 0 }},
		{13, 13, "s_bitcmp1_b32", "- b32 b32", func(a, b uint64) bool { return a>>(b&31)&1 == 1 }},
		{14, 14, "s_bitcmp0_b64", "- b64 b32", func(a, b uint64) bool { return a>>(b&63)&1 == 0 }},
		{15, 15, "s_bitcmp1_b64", "- b64 b32", func(a, b uint64) bool { return a>>(b&63)&1 == 1 }},
		{16, 16, "s_cmp_eq_u64", "- b64 b64", func(a, b uint64) bool { return a == b }},
		{17, 17, "s_cmp_lg_u64", "- b64 b64", func(a, b uint64) bool { return a != b }},
	}
	for i, name := range integerConditions {
		list = append(list,
			spec{i, i, "s_cmp_" + name + "_i32", "- i32 i32", compare(name, signed)},
			spec{6 + i, 6 + i, "s_cmp_" + name + "_u32", "- b32 b32", compare(name, same)})
	}
	for i, name := range floatConditions {
		if name == "f" || name == "t" {
			continue
		}
		list = append(list, spec{64 + i, 64 + i, "s_cmp_" + name + "_f32", "- f32 f32", floatCompare(name)},
			spec{80 + i, 80 + i, "s_cmp_" + name + "_f16", "- f16 f16", floatCompare(name)})
	}
	return list
}()

// sopkRows have 16 bits in the word, of which the sign is extended.
var sopkRows = append([]spec{
	{0, 0, "s_movk_i32", "b32", func(k uint64) uint64 { return k }},
	{1, 1, "s_version", "-", hint{}},
	{2, 2, "s_cmovk_i32", "b32 =b32", cmovK{}},
	{15, 15, "s_addk_i32|s_addk_co_i32", "b32 =b32", func(d, k uint64) (uint64, bool) { s := signed(d) + signed(k); return low(s), overflows(s) }},
	{16, 16, "s_mulk_i32", "b32 =b32", func(d, k uint64) uint64 { return low(signed(d) * signed(k)) }},
	{17, 17, "s_getreg_b32", "b32", getReg{}},
	{18, 18, "s_setreg_b32", "- =b32", setReg{}},
	{19, 19, "s_setreg_imm32_b32", "- kb32", setReg{}},
	{24, -1, "s_waitcnt_vscnt", "- =b32", waitOne{storeCount}},
	{25, -1, "s_waitcnt_vmcnt", "- =b32", waitOne{loadCount}},
	{27, -1, "s_waitcnt_lgkmcnt", "- =b32", waitOne{sharedCount}},
}, compareKRows()...)

// compareKRows compare a register with 16 bits, of which the sign is extended if the comparison has one.
func compareKRows() (list []spec) {
	for i, name := range integerConditions {
		list = append(list, spec{3 + i, -1, "s_cmpk_" + name + "_i32", "- =b32", compare(name, signed)},
			spec{9 + i, -1, "s_cmpk_" + name + "_u32", "- =b32", func(a, k uint64) bool { return compare(name, same)(a, k&0xffff) }})
	}
	return list
}

func same(x uint64) uint64 { return x }

// integerConditions are comparisons of scalars in the order of their opcodes.
var integerConditions = []string{"eq", "lg", "gt", "ge", "lt", "le"}

var soppRows = []spec{
	{0, 0, "s_nop", "-", hint{}},
	{3, 3, "s_sleep", "-", hint{}},
	{4, -1, "s_set_inst_prefetch_distance", "-", hint{}},
	{5, 5, "s_clause", "-", hint{}},
	{7, 7, "s_delay_alu", "-", hint{}},
	{8, 8, "s_waitcnt_depctr|s_wait_alu", "-", hint{}},
	{9, -1, "s_waitcnt", "-", waitMany{}},
	{10, 10, "s_wait_idle", "-", waitAll{}},
	{17, 17, "s_round_mode", "-", modeOp{0}},
	{18, 18, "s_denorm_mode", "-", modeOp{4}},
	{-1, 20, "s_barrier_wait", "-", barrierWait{}},
	{31, 31, "s_code_end", "-", unsupported{}},
	{32, 32, "s_branch", "-", branch(func(w *wave) bool { return true })},
	{33, 33, "s_cbranch_scc0", "-", branch(func(w *wave) bool { return !w.scc })},
	{34, 34, "s_cbranch_scc1", "-", branch(func(w *wave) bool { return w.scc })},
	{35, 35, "s_cbranch_vccz", "-", branch(func(w *wave) bool { return w.vcc() == 0 })},
	{36, 36, "s_cbranch_vccnz", "-", branch(func(w *wave) bool { return w.vcc() != 0 })},
	{37, 37, "s_cbranch_execz", "-", branch(func(w *wave) bool { return w.exec == 0 })},
	{38, 38, "s_cbranch_execnz", "-", branch(func(w *wave) bool { return w.exec != 0 })},
	{48, 48, "s_endpgm", "-", endProgram{}},
	{53, 53, "s_setprio", "-", hint{}},
	{54, 54, "s_sendmsg", "-", hint{}},
	{60, 60, "s_icache_inv", "-", hint{}},
	{61, -1, "s_barrier", "-", barrierBoth{}},
	{-1, 64, "s_wait_loadcnt", "-", waitOne{loadCount}},
	{-1, 65, "s_wait_storecnt", "-", waitOne{storeCount}},
	{-1, 66, "s_wait_samplecnt", "-", hint{}},
	{-1, 67, "s_wait_bvhcnt", "-", hint{}},
	{-1, 68, "s_wait_expcnt", "-", hint{}},
	{-1, 70, "s_wait_dscnt", "-", waitOne{sharedCount}},
	{-1, 71, "s_wait_kmcnt", "-", waitOne{scalarCount}},
	{-1, 72, "s_wait_loadcnt_dscnt", "-", waitTwo{loadCount}},
	{-1, 73, "s_wait_storecnt_dscnt", "-", waitTwo{storeCount}},
}
