package llvm

import (
	"fmt"
	"strings"

	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/internal/processor"
)

// Machine is a kind of processor that there is code for.
type Machine struct {
	Name string
	Doc  string
	Arch string // amd64 or arm64, as Go names it
	CPU  string // of llc
	Attr string // features beside those of CPU
	// Features are what a processor must have, sorted, by the names of package processor.
	Features []string

	// dot adds the products of four bytes of each word to sum: of x unsigned, of y signed.
	dot func(e *emitter, sum, x, y value.Value) value.Value
	// signed is dot of signed bytes.
	signed  func(e *emitter, sum, x, y value.Value) value.Value
	permute bool // AVX-512 picks elements by index
	pairs   bool // AVX2 adds products of bytes two by two, in 16 bits
	Tiles   bool // AMX multiplies tiles of bf16
	// Shared is the bytes of a thread's shared memory, which are to stay in a core's second cache.
	Shared int
	// ahead is how many bytes ahead a loop asks for a line, if not aheadBytes.
	ahead int64
}

var v3 = []string{"avx2", "bmi2", "f16c", "fma"}

// Machines are the kinds, those of an architecture from the simplest on.
var Machines = []*Machine{
	{Name: "x86-64-v3", Doc: "AVX2 and FMA: Haswell, Zen, and later", Arch: "amd64", CPU: "x86-64-v3", Features: v3, pairs: true, Shared: 512 << 10},
	{Name: "x86-64-v4", Doc: "AVX-512 with VNNI: Ice Lake, Sapphire Rapids, Zen 4, Zen 5", Arch: "amd64", CPU: "x86-64-v4", Attr: "+avx512vnni",
		Features: []string{"avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "bmi2", "f16c", "fma"}, dot: vnni, permute: true, Shared: 512 << 10},
	{Name: "x86-64-amx", Doc: "AVX-512 with VNNI and AMX with bfloat16: Sapphire Rapids and later, on Linux", Arch: "amd64", CPU: "x86-64-v4", Attr: "+avx512vnni",
		Features: []string{"amx-bf16", "amx-tile", "avx2", "avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl", "avx512vnni", "bmi2", "f16c", "fma"}, dot: vnni, permute: true, Tiles: true, Shared: 1792 << 10, ahead: 2 << 10}, // Intel's wait longer for memory
	{Name: "arm64", Doc: "NEON with dot products: Neoverse N1, Graviton 2, Apple M1, and later", Arch: "arm64", CPU: "neoverse-n1", Attr: "+reserve-x18,+reserve-x28", Features: []string{"dotprod"}, dot: biased, signed: sdot, Shared: 512 << 10},
	{Name: "arm64-i8mm", Doc: "NEON with dot products of unsigned and signed bytes: Neoverse V1, Graviton 3, Apple M2, and later", Arch: "arm64", CPU: "neoverse-n1", Attr: "+i8mm,+reserve-x18,+reserve-x28", Features: []string{"dotprod", "i8mm"}, dot: usdot, signed: sdot, Shared: 512 << 10},
}

// MachineOf returns the machine of that name.
func MachineOf(name string) (*Machine, error) {
	var names []string
	for _, m := range Machines {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return nil, fmt.Errorf("unknown machine %q; there are %s", name, strings.Join(names, ", "))
}

// Here reports whether this processor is one.
func (m *Machine) Here() bool {
	return m.Arch == processor.Arch && len(processor.Missing(m.Features)) == 0
}

// Wide reports whether registers hold a value of all lanes: then kernels may keep dozens of them.
func (m *Machine) Wide() bool { return m.permute }

// writes is the feature of llc with which code asks for a line to write it, a hint on every processor of 64 bits; "" if
// there is no need.
func (m *Machine) writes() string {
	if m.Arch == "amd64" {
		return "+prfchw"
	}
	return ""
}

// triple is that of Linux everywhere: code that calls nothing differs by the calling convention alone.
func (m *Machine) triple() string {
	if m.Arch == "arm64" {
		return "aarch64-unknown-linux-gnu"
	}
	return "x86_64-unknown-linux-gnu"
}

// vnni is one instruction.
func vnni(e *emitter, sum, x, y value.Value) value.Value {
	return e.call("llvm.x86.avx512.vpdpbusd.512", wide(types.I32), sum, x, y)
}

// quarters does by parts of 128 bits.
func quarters(e *emitter, sum, x, y value.Value, do func(sum, x, y value.Value) value.Value) value.Value {
	part := func(v value.Value, i int) value.Value {
		return e.shuffle(v, v, 4, func(j int) int { return 4*i + j })
	}
	bytes := vector(types.I8, 16)
	var list [4]value.Value
	for i := range list {
		list[i] = do(part(sum, i), e.bitcast(part(x, i), bytes), e.bitcast(part(y, i), bytes))
	}
	low := e.shuffle(list[0], list[1], 8, func(i int) int { return i })
	high := e.shuffle(list[2], list[3], 8, func(i int) int { return i })
	return e.shuffle(low, high, Lanes, func(i int) int { return i })
}

// usdot is one instruction for 4 words.
func usdot(e *emitter, sum, x, y value.Value) value.Value {
	return quarters(e, sum, x, y, func(sum, x, y value.Value) value.Value {
		return e.call("llvm.aarch64.neon.usdot.v4i32.v16i8", vector(types.I32, 4), sum, x, y)
	})
}

// sdot is one instruction for 4 words.
func sdot(e *emitter, sum, x, y value.Value) value.Value {
	return quarters(e, sum, x, y, func(sum, x, y value.Value) value.Value {
		return e.call("llvm.aarch64.neon.sdot.v4i32.v16i8", vector(types.I32, 4), sum, x, y)
	})
}

// biased makes unsigned bytes signed ones with 128 less, and adds 128 times the sum of y again.
func biased(e *emitter, sum, x, y value.Value) value.Value {
	bias := sdot(e, e.k(sum, 0), e.k(x, 0x01010101), y)
	return sdot(e, e.plus(sum, e.shl(bias, e.k(bias, 7))), e.xor(x, e.k(x, 0x80808080)), y)
}
