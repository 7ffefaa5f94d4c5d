//go:build !windows

package llvm

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/plans/object"
)

// TestOps runs every operation on numbers, of values that vary and of values that do not.
func TestOps(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	type binary = func(x, y kernel.Operand) kernel.Value
	type unary = func(x kernel.Operand) kernel.Value
	var next int
	f := build(t, func(b *kernel.Builder) {
		x, g, y := b.Arg("x", kernel.Read), b.Arg("g", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		put := func(v kernel.Value) {
			if e := v.Type(); e.Elem() == kernel.Bool {
				v = b.Convert(kernel.U32.Vec(e.Lanes()), v)
			}
			for e := range v.Type().Lanes() {
				w := v
				if v.Type().Lanes() > 1 {
					w = b.Elem(v, e)
				}
				y.Store(b.Add(b.LocalID(), 16*next), w)
				next++
			}
		}
		for _, at := range []kernel.Value{b.LocalID(), b.WorkgroupID(0)} {
			for _, n := range []int{1, 2, 4} {
				u, v := x.Load(kernel.U32.Vec(n), at), x.Load(kernel.U32.Vec(n), b.Add(at, 16))
				i, j := b.Bitcast(kernel.I32.Vec(n), u), b.Bitcast(kernel.I32.Vec(n), v)
				f, h := g.Load(kernel.F32.Vec(n), at), g.Load(kernel.F32.Vec(n), b.Add(at, 16))
				for _, o := range []binary{
					func(x, y kernel.Operand) kernel.Value { return b.Add(x, y, 1) },
					func(x, y kernel.Operand) kernel.Value { return b.Mul(x, y, 3) },
					b.Sub, b.Min, b.Max, b.Eq, b.Ne, b.Lt, b.Le, b.Gt, b.Ge, b.Div,
				} {
					put(o(u, v))
					put(o(i, j))
					put(o(f, h))
				}
				for _, o := range []binary{
					func(x, y kernel.Operand) kernel.Value { return b.And(x, y) },
					func(x, y kernel.Operand) kernel.Value { return b.Or(x, y) }, b.Xor, b.Mod,
				} {
					put(o(u, v))
					put(o(i, j))
				}
				for _, o := range []binary{b.Shl, b.Shr} {
					put(o(u, b.And(v, 31)))
					put(o(i, b.And(v, 31)))
					put(o(i, 7))
				}
				put(b.Div(u, 7))
				put(b.Mod(u, 16))
				put(b.Not(u))
				put(b.Not(b.Lt(u, v)))
				put(b.And(b.Lt(u, v), b.Gt(f, h)))
				put(b.Or(b.Lt(u, v), b.Eq(f, h)))
				for _, o := range []unary{b.Neg, b.Abs} {
					put(o(f))
					put(o(i))
				}
				put(b.Sqrt(b.Abs(f)))
				put(b.InverseSqrt(b.Abs(f)))
				put(b.IsNaN(f))
				put(b.FMA(f, h, f))
				put(b.Select(b.Lt(u, v), f, h))
				put(b.Select(b.Lt(i, j), i, j))
				put(b.Convert(f.Type(), u))
				put(b.Convert(f.Type(), i))
				put(b.Convert(i.Type(), b.Mul(f, 1000)))
				put(b.Convert(u.Type(), b.Mul(b.Abs(f), 1000)))
				put(b.Exp(b.Mul(f, 20)))
				put(b.Exp2(b.Mul(h, 30)))
				if n > 1 {
					put(b.Elem(u, b.Mod(b.LocalID(), n)))
					put(b.Elem(u, b.Mod(b.WorkgroupID(0), n)))
					continue
				}
				put(b.BitExtract(u, 4, 5))
				put(b.BitExtract(i, b.And(v, 15), b.And(b.Shr(v, 4), 15)))
				put(b.DotI8(u, v))
				put(b.DotU8(u, v))
				put(b.Add(b.DotU8(u, v), i))
				put(b.UnpackHalf(b.And(u, 0xbbffbbff)))
				put(b.PackHalf(b.Vec(f, h)))
				put(b.FMAHalf(b.And(u, 0xbbffbbff), b.And(v, 0xbbffbbff), b.And(b.Xor(u, v), 0xbbffbbff)))
				put(b.Permute(u, v, b.Mul(b.Xor(u, v), 0x9e3779b1)))
				lower, upper := b.PairHalves(u, v)
				put(lower)
				put(upper)
			}
		}
	})
	any := words(r, 256, func() uint32 {
		if v := r.Uint32() >> r.IntN(32); v != 0 {
			return v
		}
		return 1
	})
	agree(t, f, nil, [3]int{1, 1, 1}, [][]byte{any, floats(r, 256), make([]byte, 64*next)}, 2.5e-7)
}

// TestExp holds the exponentials against those of Go over their whole range.
func TestExp(t *testing.T) {
	const n = 1 << 16
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		at := b.Add(b.Mul(b.WorkgroupID(0), 16), b.LocalID())
		v := x.Load(kernel.F32, at)
		y.Store(b.Mul(at, 2), b.Exp(v))
		y.Store(b.Add(b.Mul(at, 2), 1), b.Exp2(v))
	})
	r := rand.New(rand.NewPCG(5, 6))
	special := []float64{0, math.Inf(1), math.Inf(-1), 88.8, -87.4, -103.9, -200, 1e30, -1e30, 128, 127.999, -149, -149.5, math.NaN()}
	at := 0
	x := words(r, n, func() uint32 {
		at++
		if at <= len(special) {
			return math.Float32bits(float32(special[at-1]))
		}
		return math.Float32bits(float32(r.Float64()*240 - 120))
	})
	agree(t, f, nil, [3]int{n / 16, 1, 1}, [][]byte{x, make([]byte, 8*n)}, 2e-7)
}

// TestMemory accesses buffers and shared arrays in every way.
func TestMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var next int
	f := build(t, func(b *kernel.Builder) {
		x, other, y, z := b.Arg("x", kernel.Read), b.Arg("other", kernel.Read), b.Arg("y", kernel.ReadWrite), b.Arg("z", kernel.Write)
		b.Workgroup(16)
		lane := b.LocalID()
		put := func(v kernel.Value) {
			for e := range v.Type().Lanes() {
				w := v
				if v.Type().Lanes() > 1 {
					w = b.Elem(v, e)
				}
				z.Store(b.Add(lane, 16*next), w)
				next++
			}
		}
		odd := b.Eq(b.And(lane, 1), 1)
		for _, typ := range []kernel.Type{kernel.U32, kernel.F32, kernel.U32.Vec(2), kernel.I32.Vec(4)} {
			shared := b.Shared(typ, 64)
			for i, at := range []kernel.Value{lane, b.Add(b.Mul(lane, 3), 5), b.WorkgroupID(0), b.Sub(40, lane), b.Add(lane, 7)} {
				put(x.Load(typ, at))
				v := b.Var(typ, 0)
				b.If(odd, func() { v.Set(x.Load(typ, at)) })
				put(v.Get())
				if i != 2 {
					shared.Store(at, x.Load(typ, at))
					b.Barrier()
					b.If(odd, func() { shared.Store(at, x.Load(typ, b.Add(at, 1))) })
					b.Barrier()
					put(shared.Load(at))
					if typ.Lanes() > 1 {
						shared.StoreElem(at, b.Mod(lane, typ.Lanes()), b.Bitcast(typ.Elem(), lane))
						b.Barrier()
						put(shared.LoadElem(at, b.Mod(b.Add(lane, 1), typ.Lanes())))
						put(shared.LoadElem(at, 1))
					}
				} else {
					b.If(b.Eq(lane, 9), func() { shared.Store(3, x.Load(typ, lane)) })
					b.Barrier()
					put(shared.Load(3))
					put(shared.Load(b.And(b.Mul(lane, 0), 0)))
				}
				b.Barrier()
			}
			y.Store(lane, x.Load(typ, b.Add(lane, 3)))
			b.BarrierBuffers()
			b.If(odd, func() { y.Store(lane, x.Load(typ, b.Add(lane, 9))) })
			b.BarrierBuffers()
			put(y.Load(typ, lane))
			b.If(b.Lt(lane, 5), func() { y.Store(b.Add(b.Mul(lane, 2), 30), x.Load(typ, lane)) })
			b.BarrierBuffers()
			if typ.Lanes() == 1 {
				among := b.Among([]*kernel.Buffer{x, other}, b.WorkgroupID(0))
				put(among.Load(typ, lane))
				put(b.Among([]*kernel.Buffer{x, other}, b.And(lane, 1)).Load(typ, b.Add(lane, 2)))
			}
		}
		put(x.Load16(b.Add(lane, 1)))
		put(x.Load16(b.Mul(lane, 3)))
		put(x.Load16(5))
		b.If(odd, func() { z.Store16(b.Add(lane, 32*next), b.Add(lane, 70000)) })
		next++
		count := b.Shared(kernel.U32, 4)
		b.If(b.Lt(lane, 4), func() { count.Store(lane, 1) })
		b.Barrier()
		put(count.AtomicAdd(b.And(lane, 3), lane))
		b.If(odd, func() { count.AtomicAdd(0, b.Mul(lane, 7)) })
		b.Barrier()
		put(count.Load(b.And(lane, 3)))
		put(y.AtomicAdd(100, 3))
		put(y.AtomicAdd(b.Add(101, b.And(lane, 1)), lane))
	})
	agree(t, f, nil, [3]int{1, 1, 1}, [][]byte{floats(r, 1024), floats(r, 1024), floats(r, 1024), make([]byte, 64*next)}, 0)
}

// TestSubgroup runs the operations between lanes, with all lanes and with some.
// TestTable reads constants, which lie behind the code: of every machine, an object of one piece.
func TestTable(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var table []uint32
	for range 512 {
		table = append(table, r.Uint32())
	}
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		one := b.Table(kernel.U32, 100, table[:100], nil)
		two := b.Table(kernel.U32.Vec(2), 256, table, func(word func(i kernel.Operand) kernel.Value, i kernel.Value) kernel.Value {
			return b.Vec(word(b.Mul(i, 2)), word(b.Add(b.Mul(i, 2), 1)))
		})
		b.For(b.LocalID(), 64, 16, func(i kernel.Value) {
			w := x.Load(kernel.U32, i)
			pair := two.Load(b.Mod(w, 256))
			y.Store(i, b.Add(one.Load(b.Mod(w, 100)), b.Mul(b.Elem(pair, 0), 5), b.Elem(pair, 1)))
		})
	})
	agree(t, f, nil, [3]int{1, 1, 1}, [][]byte{words(r, 64, r.Uint32), make([]byte, 256)}, 0)
	for _, m := range Machines {
		text, err := Lower(f, nil, m)
		if err != nil {
			t.Fatal(err)
		}
		code, err := m.Compile(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := object.Read(code); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

func TestSubgroup(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	var next int
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		lane := b.LocalID()
		all := func() {
			put := func(v kernel.Value) {
				for e := range v.Type().Lanes() {
					w := v
					if v.Type().Lanes() > 1 {
						w = b.Elem(v, e)
					}
					if w.Type() == kernel.Bool {
						w = b.Convert(kernel.U32, w)
					}
					y.Store(b.Add(lane, 16*next), w)
					next++
				}
			}
			for _, typ := range []kernel.Type{kernel.U32, kernel.I32, kernel.F32, kernel.F32.Vec(4)} {
				v := x.Load(typ, lane)
				for _, o := range []func(kernel.Value) kernel.Value{b.SubgroupAdd, b.SubgroupMax, b.SubgroupMin, b.SubgroupExclusiveAdd} {
					put(o(v))
					put(o(x.Load(typ, 3)))
				}
				put(b.SubgroupShuffle(v, lane))
				put(b.SubgroupShuffle(v, b.WorkgroupID(0)))
				put(b.SubgroupShuffleXor(v, b.Mul(b.WorkgroupID(0), 2)))
			}
			odd := b.Eq(b.And(lane, 1), 1)
			put(b.SubgroupAny(odd))
			put(b.SubgroupAny(b.Gt(lane, 14)))
			put(b.SubgroupElect())
		}
		all()
		v := x.Load(kernel.F32, lane)
		y.Store(b.Add(lane, 16*next), b.SubgroupShuffle(v, b.Sub(15, lane)))
		next++
		for _, mask := range []int{1, 2, 4, 8, 5} {
			y.Store(b.Add(lane, 16*next), b.SubgroupShuffleXor(v, mask))
			next++
		}
		b.If(b.Gt(b.Mod(b.Mul(lane, 7), 5), 1), all)
		b.ReturnIf(b.Lt(lane, 6))
		all()
	})
	agree(t, f, nil, [3]int{1, 1, 1}, [][]byte{floats(r, 1024), make([]byte, 64*next)}, 4e-6)
}

// TestGrid has workgroups in three dimensions.
func TestGrid(t *testing.T) {
	f := build(t, func(b *kernel.Builder) {
		y := b.Arg("y", kernel.Write)
		b.Workgroup(b.SpecU32("size", 64))
		x, yy, z := b.WorkgroupID(0), b.WorkgroupID(1), b.WorkgroupID(2)
		at := b.Add(x, b.Mul(b.NumWorkgroups(0), b.Add(yy, b.Mul(b.NumWorkgroups(1), z))))
		y.Store(b.Add(b.Mul(at, 16), b.LocalID()), b.Add(x, b.Mul(yy, 100), b.Mul(z, 10000)))
	})
	agree(t, f, map[uint32]uint32{0: 16}, [3]int{3, 4, 5}, [][]byte{make([]byte, 3*4*5*64)}, 0)
}

// TestLine: what the first workgroup of a line leaves in shared memory serves the others.
func TestLine(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		s := b.Shared(kernel.F32, 16)
		b.Line(func() {
			v := x.Load(kernel.F32, b.Add(b.Mul(b.WorkgroupID(1), 16), b.LocalID()))
			s.Store(b.LocalID(), b.Mul(v, 2))
		})
		b.Barrier()
		at := b.Add(b.Mul(b.WorkgroupID(1), b.NumWorkgroups(0)), b.WorkgroupID(0))
		y.Store(b.Add(b.Mul(at, 16), b.LocalID()), b.Add(s.Load(b.Sub(15, b.LocalID())), b.Convert(kernel.F32, b.WorkgroupID(0))))
	})
	agree(t, f, nil, [3]int{5, 3, 1}, [][]byte{floats(r, 48), make([]byte, 5*3*64)}, 0)
}

// TestWorkgroupAhead: the workgroup two further on, in the same line and call; where every workgroup runs for itself,
// its own.
func TestWorkgroupAhead(t *testing.T) {
	f := build(t, func(b *kernel.Builder) {
		y := b.Arg("y", kernel.Write)
		b.Workgroup(16)
		at := b.Add(b.Mul(b.WorkgroupID(1), b.NumWorkgroups(0)), b.WorkgroupID(0))
		y.Store(b.Add(b.Mul(at, 16), b.LocalID()), b.WorkgroupAhead(2))
	})
	const none = 99 // not run
	got := func(y []byte) (list []uint32) {
		for at := 0; at < len(y); at += 64 {
			list = append(list, binary.LittleEndian.Uint32(y[at:]))
		}
		return list
	}
	fresh := func() []byte {
		y := make([]byte, 10*64)
		for at := 0; at < len(y); at += 64 {
			y[at] = none
		}
		return y
	}
	y := fresh()
	if err := f.Run(nil, Lanes, [3]int{5, 2, 1}, [][]byte{y}); err != nil {
		t.Fatal(err)
	}
	if want := []uint32{0, 1, 2, 3, 4, 0, 1, 2, 3, 4}; !slices.Equal(got(y), want) {
		t.Errorf("one by one: %d, want %d", got(y), want)
	}
	for _, m := range machines(t) {
		y := fresh()
		nativePart(t, f, nil, m)(nil, [3]int{5, 2, 1}, 1, 9, [][]byte{y})
		if want := []uint32{none, 3, 4, 3, 4, 2, 3, 2, 3, none}; !slices.Equal(got(y), want) {
			t.Errorf("%s: %d, want %d", m.Name, got(y), want)
		}
	}
}

// TestPrefetch asks for memory that a kernel reads, for some beyond it, and for what it writes.
func TestPrefetch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		b.For(0, 4, 1, func(i kernel.Value) {
			at := b.Add(b.Mul(i, 16), b.LocalID())
			x.Prefetch(b.Mul(i, 1<<20))
			y.Prefetch(b.Mul(i, 16))
			y.Store(at, x.Load(kernel.U32, at))
		})
	})
	agree(t, f, nil, [3]int{1, 1, 1}, [][]byte{floats(r, 64), make([]byte, 256)}, 0)
}

// TestTiles compiles what multiplies tiles for every machine that has them, and runs it where this processor has.
func TestTiles(t *testing.T) {
	f := build(t, func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(16)
		pairs, sums := b.Shared(kernel.U32, 512), b.Shared(kernel.F32, 320)
		b.For(b.LocalID(), 512, 16, func(i kernel.Value) { pairs.Store(i, x.Load(kernel.U32, i)) })
		b.For(b.LocalID(), 320, 16, func(i kernel.Value) { sums.Store(i, b.Convert(kernel.F32, i)) })
		b.Barrier()
		b.TileZero(0)
		b.TileLoad(1, sums, 4, 20)
		b.TileLoad(2, pairs, 0, 16)
		b.TileLoad(3, pairs, 256, 16)
		b.TileMulAdd(0, 2, 3)
		b.TileMulAdd(1, 2, 3)
		b.TileStore(sums, 0, 20, 0)
		b.TileStore(sums, 4, 20, 1)
		b.Barrier()
		b.For(b.LocalID(), 320, 16, func(i kernel.Value) { y.Store(b.Add(b.Mul(b.WorkgroupID(0), 320), i), sums.Load(i)) })
	})
	r := rand.New(rand.NewPCG(13, 14))
	agree(t, f, nil, [3]int{3, 1, 1}, [][]byte{floats(r, 512), make([]byte, 3*1280)}, 1e-4)
	with := 0
	for _, m := range Machines {
		text, err := Lower(f, nil, m)
		if !m.Tiles {
			if err == nil {
				t.Errorf("%s: tiles are lowered", m.Name)
			}
			continue
		}
		with++
		if err != nil {
			t.Fatal(err)
		}
		code, err := m.Compile(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		if o, err := object.Read(code); err != nil || o.Size == 0 {
			t.Errorf("%s: %v", m.Name, err)
		}
		assembly, err := m.Assembly(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ldtilecfg", "tilerelease", "tilezero", "tileloadd", "tilestored", "tdpbf16ps"} {
			if !strings.Contains(assembly, name) {
				t.Errorf("%s: no %s", m.Name, name)
			}
		}
	}
	if with == 0 {
		t.Error("no machine has tiles")
	}
}
