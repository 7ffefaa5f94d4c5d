package rdna

import (
	"cmp"
	"math"
	"math/bits"
)

// Functions of lanes: of bits, of float32, and of float16 or float64 as float64, of one to three operands.
type (
	lane1  = func(a uint32) uint32
	lane2  = func(a, b uint32) uint32
	lane3  = func(a, b, c uint32) uint32
	laneF1 = func(a float32) float32
	laneF2 = func(a, b float32) float32
	laneF3 = func(a, b, c float32) float32
	laneH1 = func(a float64) float64
	laneH2 = func(a, b float64) float64
	laneH3 = func(a, b, c float64) float64
	laneW2 = func(a, b uint64) uint64
	// Comparisons, by the type of their operands.
	laneCmp  func(a, b uint64) bool
	laneCmpF func(a, b float64) bool
)

func identity(a float64) float64 { return a }
func u32(x float32) uint32       { return math.Float32bits(x) }

var vop1Rows = []spec{
	{0, 0, "v_nop", "-", hint{}},
	{1, 1, "v_mov_b32", "b32 b32", func(a uint32) uint32 { return a }},
	{2, 2, "v_readfirstlane_b32", "s32 b32", readFirstLane{}},
	{3, 3, "v_cvt_i32_f64", "i32 f64", func(a float64) float64 { return float64(toInt(a, math.MinInt32, math.MaxInt32)) }},
	{4, 4, "v_cvt_f64_i32", "f64 i32", identity},
	{5, 5, "v_cvt_f32_i32", "f32 i32", func(a uint32) uint32 { return u32(float32(int32(a))) }},
	{6, 6, "v_cvt_f32_u32", "f32 b32", func(a uint32) uint32 { return u32(float32(a)) }},
	{7, 7, "v_cvt_u32_f32", "b32 f32", func(a uint32) uint32 { return uint32(f32ToU32(uint64(a))) }},
	{8, 8, "v_cvt_i32_f32", "i32 f32", func(a uint32) uint32 { return uint32(f32ToI32(uint64(a))) }},
	{10, 10, "v_cvt_f16_f32", "f16 f32", identity},
	{11, 11, "v_cvt_f32_f16", "f32 f16", identity},
	{12, 12, "v_cvt_nearest_i32_f32", "i32 f32", func(a uint32) uint32 { return floorInt(float64(fval(uint64(a))) + .5) }},
	{13, 13, "v_cvt_floor_i32_f32", "i32 f32", func(a uint32) uint32 { return floorInt(float64(fval(uint64(a)))) }},
	{14, 14, "v_cvt_off_f32_i4", "f32 b32", func(a uint32) uint32 { return u32(float32(int32(a<<28)>>28) / 16) }},
	{15, 15, "v_cvt_f32_f64", "f32 f64", identity},
	{16, 16, "v_cvt_f64_f32", "f64 f32", identity},
	{17, 17, "v_cvt_f32_ubyte0", "f32 b32", func(a uint32) uint32 { return u32(float32(a & 255)) }},
	{18, 18, "v_cvt_f32_ubyte1", "f32 b32", func(a uint32) uint32 { return u32(float32(a >> 8 & 255)) }},
	{19, 19, "v_cvt_f32_ubyte2", "f32 b32", func(a uint32) uint32 { return u32(float32(a >> 16 & 255)) }},
	{20, 20, "v_cvt_f32_ubyte3", "f32 b32", func(a uint32) uint32 { return u32(float32(a >> 24)) }},
	{28, 28, "v_mov_b16", "b16 b16", func(a uint32) uint32 { return a }},
	{32, 32, "v_fract_f32", "f32 f32", fract[float32]},
	{33, 33, "v_trunc_f32", "f32 f32", func(a float32) float32 { return float32(math.Trunc(float64(a))) }},
	{34, 34, "v_ceil_f32", "f32 f32", func(a float32) float32 { return float32(math.Ceil(float64(a))) }},
	{35, 35, "v_rndne_f32", "f32 f32", func(a float32) float32 { return float32(math.RoundToEven(float64(a))) }},
	{36, 36, "v_floor_f32", "f32 f32", func(a float32) float32 { return float32(math.Floor(float64(a))) }},
	{37, 37, "v_exp_f32", "f32 f32", func(a float32) float32 { return float32(math.Exp2(float64(a))) }},
	{39, 39, "v_log_f32", "f32 f32", func(a float32) float32 { return float32(math.Log2(float64(a))) }},
	{42, 42, "v_rcp_f32", "f32 f32", func(a float32) float32 { return float32(1 / float64(a)) }},
	{43, 43, "v_rcp_iflag_f32", "f32 f32", func(a float32) float32 { return float32(1 / float64(a)) }},
	{46, 46, "v_rsq_f32", "f32 f32", func(a float32) float32 { return float32(1 / math.Sqrt(float64(a))) }},
	{51, 51, "v_sqrt_f32", "f32 f32", func(a float32) float32 { return float32(math.Sqrt(float64(a))) }},
	{53, 53, "v_sin_f32", "f32 f32", func(a float32) float32 { return float32(math.Sin(2 * math.Pi * float64(a))) }},
	{54, 54, "v_cos_f32", "f32 f32", func(a float32) float32 { return float32(math.Cos(2 * math.Pi * float64(a))) }},
	{55, 55, "v_not_b32", "b32 b32", func(a uint32) uint32 { return ^a }},
	{56, 56, "v_bfrev_b32", "b32 b32", bits.Reverse32},
	{57, 57, "v_clz_i32_u32", "b32 b32", func(a uint32) uint32 { return uint32(firstBit(uint64(a), bits.LeadingZeros32(a))) }},
	{58, 58, "v_ctz_i32_b32", "b32 b32", func(a uint32) uint32 { return uint32(firstBit(uint64(a), bits.TrailingZeros32(a))) }},
	{63, 63, "v_frexp_exp_i32_f32", "i32 f32", func(a uint32) uint32 { return frexpExp(a) }},
	{64, 64, "v_frexp_mant_f32", "f32 f32", func(a float32) float32 { m, _ := math.Frexp(float64(a)); return float32(m) }},
	{80, 80, "v_cvt_f16_u16", "f16 b16", identity},
	{81, 81, "v_cvt_f16_i16", "f16 i16", identity},
	{82, 82, "v_cvt_u16_f16", "b16 f16", func(a float64) float64 { return float64(toInt(a, 0, math.MaxUint16)) }},
	{83, 83, "v_cvt_i16_f16", "i16 f16", func(a float64) float64 { return float64(toInt(a, math.MinInt16, math.MaxInt16)) }},
	{84, 84, "v_rcp_f16", "f16 f16", func(a float64) float64 { return 1 / a }},
	{85, 85, "v_sqrt_f16", "f16 f16", math.Sqrt},
	{86, 86, "v_rsq_f16", "f16 f16", func(a float64) float64 { return 1 / math.Sqrt(a) }},
	{87, 87, "v_log_f16", "f16 f16", math.Log2},
	{88, 88, "v_exp_f16", "f16 f16", math.Exp2},
	{91, 91, "v_floor_f16", "f16 f16", math.Floor},
	{92, 92, "v_ceil_f16", "f16 f16", math.Ceil},
	{93, 93, "v_trunc_f16", "f16 f16", math.Trunc},
	{94, 94, "v_rndne_f16", "f16 f16", math.RoundToEven},
	{95, 95, "v_fract_f16", "f16 f16", func(a float64) float64 { return min(a-math.Floor(a), 1-0x1p-11) }},
	{101, 101, "v_swap_b32", "b32 b32", swapOp{}},
	{102, 102, "v_swap_b16", "b16 b16", swapOp{}},
	{103, 103, "v_permlane64_b32", "b32 b32", permlane64{}},
	{105, 105, "v_not_b16", "b16 b16", func(a uint32) uint32 { return ^a }},
	{106, 106, "v_cvt_i32_i16", "i32 i16", func(a uint32) uint32 { return uint32(int32(int16(a))) }},
	{107, 107, "v_cvt_u32_u16", "b32 b16", func(a uint32) uint32 { return a & 0xffff }},
}

func floorInt(x float64) uint32 { return uint32(toInt(math.Floor(x), math.MinInt32, math.MaxInt32)) }

func frexpExp(a uint32) uint32 {
	x := float64(fval(uint64(a)))
	if x == 0 || math.IsInf(x, 0) || x != x {
		return 0
	}
	_, e := math.Frexp(x)
	return uint32(int32(e))
}

func mulF[F float32 | float64](a, b F) F { return a * b }
func addF[F float32 | float64](a, b F) F { return a + b }
func subF[F float32 | float64](a, b F) F { return a - b }
func revF[F float32 | float64](a, b F) F { return b - a }

func i24(x uint32) int64  { return int64(int32(x<<8) >> 8) }
func u24(x uint32) uint64 { return uint64(x & 0xffffff) }
func mulDX9(a, b float32) float32 {
	if a == 0 || b == 0 {
		return 0
	}
	return a * b
}

var vop2Rows = []spec{
	{1, 1, "v_cndmask_b32", "b32 b32 b32 cm", selectOp{}},
	{-1, 2, "v_add_f64", "f64 f64 f64", addF[float64]},
	{-1, 6, "v_mul_f64", "f64 f64 f64", mulF[float64]},
	{-1, 13, "v_min_num_f64", "f64 f64 f64", minNum[float64]},
	{-1, 14, "v_max_num_f64", "f64 f64 f64", maxNum[float64]},
	{2, -1, "v_dot2acc_f32_f16", "f32 pk pk =f32", dot2{f16, false}},
	{3, 3, "v_add_f32", "f32 f32 f32", addF[float32]},
	{4, 4, "v_sub_f32", "f32 f32 f32", subF[float32]},
	{5, 5, "v_subrev_f32", "f32 f32 f32", revF[float32]},
	{7, 7, "v_mul_dx9_zero_f32", "f32 f32 f32", mulDX9},
	{8, 8, "v_mul_f32", "f32 f32 f32", mulF[float32]},
	{9, 9, "v_mul_i32_i24", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(i24(a) * i24(b)) }},
	{10, 10, "v_mul_hi_i32_i24", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(i24(a) * i24(b) >> 32) }},
	{11, 11, "v_mul_u32_u24", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(u24(a) * u24(b)) }},
	{12, 12, "v_mul_hi_u32_u24", "b32 b32 b32", func(a, b uint32) uint32 { return uint32(u24(a) * u24(b) >> 32) }},
	{15, 21, "v_min_f32|v_min_num_f32", "f32 f32 f32", minNum[float32]},
	{16, 22, "v_max_f32|v_max_num_f32", "f32 f32 f32", maxNum[float32]},
	{17, 17, "v_min_i32", "i32 i32 i32", func(a, b uint32) uint32 { return uint32(min(int32(a), int32(b))) }},
	{18, 18, "v_max_i32", "i32 i32 i32", func(a, b uint32) uint32 { return uint32(max(int32(a), int32(b))) }},
	{19, 19, "v_min_u32", "b32 b32 b32", func(a, b uint32) uint32 { return min(a, b) }},
	{20, 20, "v_max_u32", "b32 b32 b32", func(a, b uint32) uint32 { return max(a, b) }},
	{24, 24, "v_lshlrev_b32", "b32 b32 b32", func(a, b uint32) uint32 { return b << (a & 31) }},
	{25, 25, "v_lshrrev_b32", "b32 b32 b32", func(a, b uint32) uint32 { return b >> (a & 31) }},
	{26, 26, "v_ashrrev_i32", "i32 b32 i32", func(a, b uint32) uint32 { return uint32(int32(b) >> (a & 31)) }},
	{27, 27, "v_and_b32", "b32 b32 b32", func(a, b uint32) uint32 { return a & b }},
	{28, 28, "v_or_b32", "b32 b32 b32", func(a, b uint32) uint32 { return a | b }},
	{29, 29, "v_xor_b32", "b32 b32 b32", func(a, b uint32) uint32 { return a ^ b }},
	{30, 30, "v_xnor_b32", "b32 b32 b32", func(a, b uint32) uint32 { return ^(a ^ b) }},
	{-1, 31, "v_lshlrev_b64", "b64 b32 b64", func(a, b uint64) uint64 { return b << (a & 63) }},
	{32, 32, "v_add_co_ci_u32", "b32 b32 b32 cm", carryOp(func(a, b, c uint64) (uint64, bool) { s := a + b + c; return s, s>>32 != 0 })},
	{33, 33, "v_sub_co_ci_u32", "b32 b32 b32 cm", carryOp(func(a, b, c uint64) (uint64, bool) { return a - b - c, b+c > a })},
	{34, 34, "v_subrev_co_ci_u32", "b32 b32 b32 cm", carryOp(func(a, b, c uint64) (uint64, bool) { return b - a - c, a+c > b })},
	{37, 37, "v_add_nc_u32", "b32 b32 b32", func(a, b uint32) uint32 { return a + b }},
	{38, 38, "v_sub_nc_u32", "b32 b32 b32", func(a, b uint32) uint32 { return a - b }},
	{39, 39, "v_subrev_nc_u32", "b32 b32 b32", func(a, b uint32) uint32 { return b - a }},
	{43, 43, "v_fmac_f32", "f32 f32 f32 =f32", fma32},
	{44, 44, "v_fmamk_f32", "f32 f32 f32 kf32", func(a, b, k float32) float32 { return fma32(a, k, b) }},
	{45, 45, "v_fmaak_f32", "f32 f32 f32 kf32", fma32},
	{47, 47, "v_cvt_pk_rtz_f16_f32", "b32 f32 f32", func(a, b uint32) uint32 { return uint32(packRTZ(uint64(a), uint64(b))) }},
	{58, 48, "v_min_f16|v_min_num_f16", "f16 f16 f16", minNum[float64]},
	{57, 49, "v_max_f16|v_max_num_f16", "f16 f16 f16", maxNum[float64]},
	{50, 50, "v_add_f16", "f16 f16 f16", addF[float64]},
	{51, 51, "v_sub_f16", "f16 f16 f16", subF[float64]},
	{52, 52, "v_subrev_f16", "f16 f16 f16", revF[float64]},
	{53, 53, "v_mul_f16", "f16 f16 f16", mulF[float64]},
	{54, 54, "v_fmac_f16", "f16 f16 f16 =f16", math.FMA},
	{55, 55, "v_fmamk_f16", "f16 f16 f16 kf16", func(a, b, k float64) float64 { return math.FMA(a, k, b) }},
	{56, 56, "v_fmaak_f16", "f16 f16 f16 kf16", math.FMA},
	{60, 60, "v_pk_fmac_f16", "pk pk pk =pk", packedF3(math.FMA)},
	{59, 59, "v_ldexp_f16", "f16 f16 i16", func(a, b float64) float64 { return math.Ldexp(a, int(b)) }},
}

// floatConditions are comparisons of numbers in the order of their opcodes; the first and the last are of gfx11 only.
var floatConditions = []string{"f", "lt", "eq", "le", "gt", "lg", "ge", "o", "u", "nge", "nlg", "ngt", "nle", "neq", "nlt", "t"}

func floatCompare(name string) laneCmpF {
	switch name {
	case "lt":
		return func(a, b float64) bool { return a < b }
	case "eq":
		return func(a, b float64) bool { return a == b }
	case "le":
		return func(a, b float64) bool { return a <= b }
	case "gt":
		return func(a, b float64) bool { return a > b }
	case "lg":
		return func(a, b float64) bool { return a < b || a > b }
	case "ge":
		return func(a, b float64) bool { return a >= b }
	case "o":
		return func(a, b float64) bool { return a == a && b == b }
	case "u":
		return func(a, b float64) bool { return a != a || b != b }
	case "nge":
		return func(a, b float64) bool { return !(a >= b) }
	case "nlg":
		return func(a, b float64) bool { return !(a < b || a > b) }
	case "ngt":
		return func(a, b float64) bool { return !(a > b) }
	case "nle":
		return func(a, b float64) bool { return !(a <= b) }
	case "neq":
		return func(a, b float64) bool { return a != b }
	case "nlt":
		return func(a, b float64) bool { return !(a < b) }
	}
	always := name == "t"
	return func(a, b float64) bool { return always }
}

// compare compares integers as read makes them.
func compare[T cmp.Ordered](name string, read func(uint64) T) laneCmp {
	switch name {
	case "lt":
		return func(a, b uint64) bool { return read(a) < read(b) }
	case "eq":
		return func(a, b uint64) bool { return read(a) == read(b) }
	case "le":
		return func(a, b uint64) bool { return read(a) <= read(b) }
	case "gt":
		return func(a, b uint64) bool { return read(a) > read(b) }
	case "ne", "lg":
		return func(a, b uint64) bool { return read(a) != read(b) }
	case "ge":
		return func(a, b uint64) bool { return read(a) >= read(b) }
	}
	always := name == "t"
	return func(a, b uint64) bool { return always }
}

// vopcRows are comparisons into a mask and, 128 further on, into EXEC.
func vopcRows() (list []spec) {
	add := func(op int, name, types string, fn any, old bool) {
		op12 := op
		if old {
			op12 = -1
		}
		put := func(first int, prefix string, fn any) {
			at := op12
			if at >= 0 {
				at += first
			}
			list = append(list, spec{op + first, at, prefix + name, types, fn})
		}
		put(0, "v_cmp_", compareOp{fn, false})
		put(128, "v_cmpx_", compareOp{fn, true})
	}
	for i, name := range floatConditions {
		old := name == "f" || name == "t"
		for first, t := range map[int]string{0: "f16", 16: "f32", 32: "f64"} {
			add(first+i, name+"_"+t, "m "+t+" "+t, floatCompare(name), old)
		}
	}
	for i, name := range []string{"f", "lt", "eq", "le", "gt", "ne", "ge", "t"} {
		old := name == "f" || name == "t"
		if !old {
			add(48+i, name+"_i16", "m i16 i16", compare(name, func(x uint64) int16 { return int16(x) }), false)
			add(56+i, name+"_u16", "m u16 u16", compare(name, func(x uint64) uint16 { return uint16(x) }), false)
		}
		add(64+i, name+"_i32", "m i32 i32", compare(name, signed), old)
		add(72+i, name+"_u32", "m u32 u32", compare(name, same), old)
		add(80+i, name+"_i64", "m i64 i64", compare(name, func(x uint64) int64 { return int64(x) }), old)
		add(88+i, name+"_u64", "m u64 u64", compare(name, same), old)
	}
	add(125, "class_f16", "m f16 b16", laneCmp(func(a, b uint64) bool { return b>>classOf(f16(a), a>>9&1 == 1)&1 == 1 }), false)
	add(126, "class_f32", "m f32 b32", laneCmp(func(a, b uint64) bool { return b>>classOf32(a)&1 == 1 }), false)
	return list
}

// classOf is the bit of v_cmp_class that a number of 16 bits has; of what is none, quiet tells the kind.
func classOf(x float64, quiet bool) int {
	neg, a := math.Signbit(x), math.Abs(x)
	pick := func(minus, plus int) int {
		if neg {
			return minus
		}
		return plus
	}
	switch {
	case x != x && quiet:
		return 1
	case x != x:
		return 0
	case math.IsInf(x, 0):
		return pick(2, 9)
	case a == 0:
		return pick(5, 6)
	case a < 0x1p-14:
		return pick(4, 7)
	}
	return pick(3, 8)
}

func classOf32(b uint64) int {
	x := fval(b)
	if b&0x7f800000 == 0 && b&0x7fffff != 0 {
		return 4 + 3*int(1-b>>31)
	}
	if x == x && !math.IsInf(float64(x), 0) && x != 0 {
		return 3 + 5*int(1-b>>31)
	}
	return classOf(float64(x), b>>22&1 == 1)
}
