package rdna

// transfer moves some bytes between a register, or several, and memory, for each lane.
type transfer struct {
	bytes  int
	store  bool
	signed bool
	half   int // 1, 2: the low or high half of the register, of which the other stays; 0 for all of it
	pair   int // of two addresses: the bytes that an offset counts; else 0
}

// registers is how many registers of data it moves at each address.
func (t transfer) registers() int { return (t.bytes + 3) / 4 }

// atomic changes memory in one step for each lane, and may return what was there.
type atomic struct {
	bytes   int
	f       func(old, x, y uint64) uint64
	returns bool // in shared memory, where the opcode says so
	two     bool // two operands: what is compared is the second
}

// scalarLoad reads scalar registers.
type scalarLoad struct {
	bytes  int
	signed bool
	buffer bool // through a descriptor, which four registers have
}

type (
	invalidate struct{ scalar bool }
	writeBack  struct{}
	lanesMove  struct{ push, swizzle bool } // ds_bpermute, ds_permute, ds_swizzle
)

var smemRows = []spec{
	{0, 0, "s_load_b32", "-", scalarLoad{bytes: 4}},
	{1, 1, "s_load_b64", "-", scalarLoad{bytes: 8}},
	{2, 2, "s_load_b128", "-", scalarLoad{bytes: 16}},
	{3, 3, "s_load_b256", "-", scalarLoad{bytes: 32}},
	{4, 4, "s_load_b512", "-", scalarLoad{bytes: 64}},
	{-1, 5, "s_load_b96", "-", scalarLoad{bytes: 12}},
	{-1, 8, "s_load_i8", "-", scalarLoad{bytes: 1, signed: true}},
	{-1, 9, "s_load_u8", "-", scalarLoad{bytes: 1}},
	{-1, 10, "s_load_i16", "-", scalarLoad{bytes: 2, signed: true}},
	{-1, 11, "s_load_u16", "-", scalarLoad{bytes: 2}},
	{8, 16, "s_buffer_load_b32", "-", scalarLoad{bytes: 4, buffer: true}},
	{9, 17, "s_buffer_load_b64", "-", scalarLoad{bytes: 8, buffer: true}},
	{10, 18, "s_buffer_load_b128", "-", scalarLoad{bytes: 16, buffer: true}},
	{11, 19, "s_buffer_load_b256", "-", scalarLoad{bytes: 32, buffer: true}},
	{12, 20, "s_buffer_load_b512", "-", scalarLoad{bytes: 64, buffer: true}},
	{-1, 21, "s_buffer_load_b96", "-", scalarLoad{bytes: 12, buffer: true}},
	{-1, 24, "s_buffer_load_i8", "-", scalarLoad{bytes: 1, signed: true, buffer: true}},
	{-1, 25, "s_buffer_load_u8", "-", scalarLoad{bytes: 1, buffer: true}},
	{-1, 26, "s_buffer_load_i16", "-", scalarLoad{bytes: 2, signed: true, buffer: true}},
	{-1, 27, "s_buffer_load_u16", "-", scalarLoad{bytes: 2, buffer: true}},
	{32, -1, "s_gl1_inv", "-", invalidate{}},
	{33, 33, "s_dcache_inv", "-", invalidate{scalar: true}},
	{-1, 36, "s_prefetch_inst", "-", hint{}},
	{-1, 37, "s_prefetch_inst_pc_rel", "-", hint{}},
	{-1, 38, "s_prefetch_data", "-", hint{}},
	{-1, 40, "s_prefetch_data_pc_rel", "-", hint{}},
}

// mubufRows load through a descriptor, as RADV does from tables behind the code, and in gfx11 make the caches of a
// compute unit and of an array of them forget.
var mubufRows = append(named("buffer_", flatTransfers), []spec{
	{43, -1, "buffer_gl0_inv", "-", invalidate{}},
	{44, -1, "buffer_gl1_inv", "-", invalidate{}},
}...)

var dsRows = append([]spec{
	{13, 13, "ds_store_b32", "-", transfer{bytes: 4, store: true}},
	{14, 14, "ds_store_2addr_b32", "-", transfer{bytes: 4, store: true, pair: 4}},
	{15, 15, "ds_store_2addr_stride64_b32", "-", transfer{bytes: 4, store: true, pair: 256}},
	{30, 30, "ds_store_b8", "-", transfer{bytes: 1, store: true, half: 1}},
	{31, 31, "ds_store_b16", "-", transfer{bytes: 2, store: true, half: 1}},
	{53, 53, "ds_swizzle_b32", "-", lanesMove{swizzle: true}},
	{54, 54, "ds_load_b32", "-", transfer{bytes: 4}},
	{55, 55, "ds_load_2addr_b32", "-", transfer{bytes: 4, pair: 4}},
	{56, 56, "ds_load_2addr_stride64_b32", "-", transfer{bytes: 4, pair: 256}},
	{57, 57, "ds_load_i8", "-", transfer{bytes: 1, signed: true}},
	{58, 58, "ds_load_u8", "-", transfer{bytes: 1}},
	{59, 59, "ds_load_i16", "-", transfer{bytes: 2, signed: true}},
	{60, 60, "ds_load_u16", "-", transfer{bytes: 2}},
	{77, 77, "ds_store_b64", "-", transfer{bytes: 8, store: true}},
	{78, 78, "ds_store_2addr_b64", "-", transfer{bytes: 8, store: true, pair: 8}},
	{79, 79, "ds_store_2addr_stride64_b64", "-", transfer{bytes: 8, store: true, pair: 512}},
	{118, 118, "ds_load_b64", "-", transfer{bytes: 8}},
	{119, 119, "ds_load_2addr_b64", "-", transfer{bytes: 8, pair: 8}},
	{120, 120, "ds_load_2addr_stride64_b64", "-", transfer{bytes: 8, pair: 512}},
	{160, 160, "ds_store_b8_d16_hi", "-", transfer{bytes: 1, store: true, half: 2}},
	{161, 161, "ds_store_b16_d16_hi", "-", transfer{bytes: 2, store: true, half: 2}},
	{162, 162, "ds_load_u8_d16", "-", transfer{bytes: 1, half: 1}},
	{163, 163, "ds_load_u8_d16_hi", "-", transfer{bytes: 1, half: 2}},
	{164, 164, "ds_load_i8_d16", "-", transfer{bytes: 1, half: 1, signed: true}},
	{165, 165, "ds_load_i8_d16_hi", "-", transfer{bytes: 1, half: 2, signed: true}},
	{166, 166, "ds_load_u16_d16", "-", transfer{bytes: 2, half: 1}},
	{167, 167, "ds_load_u16_d16_hi", "-", transfer{bytes: 2, half: 2}},
	{178, 178, "ds_permute_b32", "-", lanesMove{push: true}},
	{179, 179, "ds_bpermute_b32", "-", lanesMove{}},
	{222, 222, "ds_store_b96", "-", transfer{bytes: 12, store: true}},
	{223, 223, "ds_store_b128", "-", transfer{bytes: 16, store: true}},
	{254, 254, "ds_load_b96", "-", transfer{bytes: 12}},
	{255, 255, "ds_load_b128", "-", transfer{bytes: 16}},
}, dsAtomics()...)

// operation is what an atomic instruction does, whatever the memory.
type operation struct {
	name string
	f    func(old, x, y uint64) uint64
}

var (
	atomicAdd     = operation{"add_u32", func(old, x, _ uint64) uint64 { return low(int64(old + x)) }}
	atomicSub     = operation{"sub_u32", func(old, x, _ uint64) uint64 { return low(int64(old - x)) }}
	atomicMinI    = operation{"min_i32", func(old, x, _ uint64) uint64 { return low(min(signed(old), signed(x))) }}
	atomicMinU    = operation{"min_u32", func(old, x, _ uint64) uint64 { return min(old, x) }}
	atomicMaxI    = operation{"max_i32", func(old, x, _ uint64) uint64 { return low(max(signed(old), signed(x))) }}
	atomicMaxU    = operation{"max_u32", func(old, x, _ uint64) uint64 { return max(old, x) }}
	atomicAnd     = operation{"and_b32", func(old, x, _ uint64) uint64 { return old & x }}
	atomicOr      = operation{"or_b32", func(old, x, _ uint64) uint64 { return old | x }}
	atomicXor     = operation{"xor_b32", func(old, x, _ uint64) uint64 { return old ^ x }}
	atomicSwap    = operation{"swap_b32", func(_, x, _ uint64) uint64 { return x }}
	atomicCompare = operation{"cmpswap_b32", func(old, x, y uint64) uint64 {
		if old == y {
			return x
		}
		return old
	}}
	atomicInc = operation{"inc_u32", func(old, x, _ uint64) uint64 {
		if old >= x {
			return 0
		}
		return old + 1
	}}
	atomicAddF = operation{"add_f32", func(old, x, _ uint64) uint64 { return flush(fbits(fval(flush(old)) + fval(flush(x)))) }}
	atomicMaxF = operation{"max_num_f32", func(old, x, _ uint64) uint64 { return fbits(maxNum(fval(old), fval(x))) }}
	atomicMinF = operation{"min_num_f32", func(old, x, _ uint64) uint64 { return fbits(minNum(fval(old), fval(x))) }}
)

func dsAtomics() (list []spec) {
	for op, o := range map[int]operation{0: atomicAdd, 1: atomicSub, 3: atomicInc, 5: atomicMinI, 6: atomicMaxI, 7: atomicMinU, 8: atomicMaxU,
		9: atomicAnd, 10: atomicOr, 11: atomicXor} {
		list = append(list, spec{op, op, "ds_" + o.name, "-", atomic{bytes: 4, f: o.f}},
			spec{32 + op, 32 + op, "ds_" + o.name[:len(o.name)-4] + "_rtn" + o.name[len(o.name)-4:], "-", atomic{bytes: 4, f: o.f, returns: true}})
	}
	return append(list,
		spec{16, 16, "ds_cmpstore_b32", "-", atomic{bytes: 4, f: atomicCompare.f, two: true}},
		spec{48, 48, "ds_cmpstore_rtn_b32", "-", atomic{bytes: 4, f: atomicCompare.f, two: true, returns: true}},
		spec{45, 45, "ds_storexchg_rtn_b32", "-", atomic{bytes: 4, f: atomicSwap.f, returns: true}},
		spec{21, 21, "ds_add_f32", "-", atomic{bytes: 4, f: atomicAddF.f}},
		spec{121, 121, "ds_add_rtn_f32", "-", atomic{bytes: 4, f: atomicAddF.f, returns: true}})
}

// flatTransfers are the instructions that global memory and scratch have alike, without what their names begin with.
var flatTransfers = []spec{
	{16, 16, "load_u8", "-", transfer{bytes: 1}},
	{17, 17, "load_i8", "-", transfer{bytes: 1, signed: true}},
	{18, 18, "load_u16", "-", transfer{bytes: 2}},
	{19, 19, "load_i16", "-", transfer{bytes: 2, signed: true}},
	{20, 20, "load_b32", "-", transfer{bytes: 4}},
	{21, 21, "load_b64", "-", transfer{bytes: 8}},
	{22, 22, "load_b96", "-", transfer{bytes: 12}},
	{23, 23, "load_b128", "-", transfer{bytes: 16}},
	{24, 24, "store_b8", "-", transfer{bytes: 1, store: true, half: 1}},
	{25, 25, "store_b16", "-", transfer{bytes: 2, store: true, half: 1}},
	{26, 26, "store_b32", "-", transfer{bytes: 4, store: true}},
	{27, 27, "store_b64", "-", transfer{bytes: 8, store: true}},
	{28, 28, "store_b96", "-", transfer{bytes: 12, store: true}},
	{29, 29, "store_b128", "-", transfer{bytes: 16, store: true}},
	{30, 30, "load_d16_u8", "-", transfer{bytes: 1, half: 1}},
	{31, 31, "load_d16_i8", "-", transfer{bytes: 1, half: 1, signed: true}},
	{32, 32, "load_d16_b16", "-", transfer{bytes: 2, half: 1}},
	{33, 33, "load_d16_hi_u8", "-", transfer{bytes: 1, half: 2}},
	{34, 34, "load_d16_hi_i8", "-", transfer{bytes: 1, half: 2, signed: true}},
	{35, 35, "load_d16_hi_b16", "-", transfer{bytes: 2, half: 2}},
	{36, 36, "store_d16_hi_b8", "-", transfer{bytes: 1, store: true, half: 2}},
	{37, 37, "store_d16_hi_b16", "-", transfer{bytes: 2, store: true, half: 2}},
}

func named(prefix string, lines []spec) []spec {
	list := make([]spec, len(lines))
	for i, s := range lines {
		s.name = prefix + s.name
		list[i] = s
	}
	return list
}

func scratchRows() []spec { return named("scratch_", flatTransfers) }

var globalRows = append(named("global_", flatTransfers), []spec{
	{-1, 43, "global_inv", "-", invalidate{}},
	{-1, 44, "global_wb", "-", writeBack{}},
	{51, 51, "global_atomic_swap_b32", "-", atomic{bytes: 4, f: atomicSwap.f}},
	{52, 52, "global_atomic_cmpswap_b32", "-", atomic{bytes: 4, f: atomicCompare.f, two: true}},
	{53, 53, "global_atomic_add_u32", "-", atomic{bytes: 4, f: atomicAdd.f}},
	{54, 54, "global_atomic_sub_u32", "-", atomic{bytes: 4, f: atomicSub.f}},
	{56, 56, "global_atomic_min_i32", "-", atomic{bytes: 4, f: atomicMinI.f}},
	{57, 57, "global_atomic_min_u32", "-", atomic{bytes: 4, f: atomicMinU.f}},
	{58, 58, "global_atomic_max_i32", "-", atomic{bytes: 4, f: atomicMaxI.f}},
	{59, 59, "global_atomic_max_u32", "-", atomic{bytes: 4, f: atomicMaxU.f}},
	{60, 60, "global_atomic_and_b32", "-", atomic{bytes: 4, f: atomicAnd.f}},
	{61, 61, "global_atomic_or_b32", "-", atomic{bytes: 4, f: atomicOr.f}},
	{62, 62, "global_atomic_xor_b32", "-", atomic{bytes: 4, f: atomicXor.f}},
	{63, 63, "global_atomic_inc_u32", "-", atomic{bytes: 4, f: atomicInc.f}},
	{67, 67, "global_atomic_add_u64", "-", atomic{bytes: 8, f: func(old, x, _ uint64) uint64 { return old + x }}},
	{81, 81, "global_atomic_min_f32|global_atomic_min_num_f32", "-", atomic{bytes: 4, f: atomicMinF.f}},
	{82, 82, "global_atomic_max_f32|global_atomic_max_num_f32", "-", atomic{bytes: 4, f: atomicMaxF.f}},
	{86, 86, "global_atomic_add_f32", "-", atomic{bytes: 4, f: atomicAddF.f}},
}...)
