package kernel_test

import "github.com/zincc-dev/zincc/codegen/kernel"

// kernelCase is a kernel that tests lower, validate and print.
type kernelCase struct {
	name   string
	golden bool
	build  func(b *kernel.Builder)
}

var kernelCases = []kernelCase{
	{"reduce", true, reduce},
	{"transpose", true, transpose},
	{"nested", true, nested},
	{"half", true, half},
	{"arithmetic", false, arithmetic},
	{"memory", false, memory},
	{"lanes", false, lanes},
	{"control", false, control},
	{"specialization", true, specialization},
	{"tables", true, tables},
	{"copies", true, func(b *kernel.Builder) { copies(b, "") }},
}

// reduce sums 64 floats, one a lane: y[subgroup] = sum over the subgroup, and
// y[8+lane] = the sum over the workgroup.
func reduce(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.Write)
	size := b.SpecU32("size", 64)
	b.Workgroup(size)
	lane := b.LocalID()
	v := x.Load(kernel.F32, lane)
	sum := b.SubgroupAdd(v)
	b.If(b.Eq(b.SubgroupLane(), 0), func() { y.Store(b.SubgroupID(), sum) })
	y.Store(b.Add(lane, 8), WorkgroupAdd(b, size, v))
}

// transpose writes an n x n matrix of floats, n a multiple of 4, through shared
// memory, with vectors on both sides: a workgroup of n lanes a matrix.
func transpose(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.Write)
	n := b.SpecU32("n", 16)
	b.Workgroup(n)
	v4 := kernel.F32.Vec(4)
	tile := b.Shared(v4, b.Mul(n, b.Div(n, 4)))
	quads := b.Div(n, 4)
	row := b.LocalID()
	b.For(0, quads, 1, func(q kernel.Value) {
		at := b.Add(b.Mul(row, quads), q)
		tile.Store(at, x.Load(v4, at))
	})
	b.Barrier()
	b.ForUnroll(0, quads, 1, func(q kernel.Value) {
		var e []kernel.Operand
		for i := range 4 {
			from := b.Add(b.Mul(b.Add(b.Mul(q, 4), i), quads), b.Div(row, 4))
			e = append(e, tile.LoadElem(from, b.Mod(row, 4)))
		}
		y.Store(b.Add(b.Mul(row, quads), q), b.Vec(e...))
	})
}

// nested counts the pairs i < n, j <= i with (i+j) % 3 == lane % 3, at most 5 of each i: y[lane].
func nested(b *kernel.Builder) {
	y := b.Arg("y", kernel.ReadWrite)
	n := b.SpecU32("n", 10)
	b.Workgroup(8)
	lane := b.LocalID()
	total := b.Var(kernel.U32, 0)
	b.For(0, n, 1, func(i kernel.Value) {
		found := b.Var(kernel.U32, 0)
		b.For(0, b.Add(i, 1), 1, func(j kernel.Value) {
			hit := b.Eq(b.Mod(b.Add(i, j), 3), b.Mod(lane, 3))
			b.If(b.And(hit, b.Lt(found.Get(), 5)), func() { found.Set(b.Add(found.Get(), 1)) })
		})
		total.Set(b.Add(total.Get(), found.Get()))
	})
	y.Store(lane, total.Get())
}

// half unpacks, doubles and packs pairs of f16 in place, 8 words a lane.
func half(b *kernel.Builder) {
	x := b.Arg("x", kernel.ReadWrite)
	b.Workgroup(8)
	at := b.Mul(b.LocalID(), 8)
	for half := range 2 {
		i := b.Add(at, half*4)
		words := x.Load(kernel.U32.Vec(4), b.Div(i, 4))
		var out []kernel.Operand
		for e := range 4 {
			pair := b.UnpackHalf(b.Elem(words, e))
			out = append(out, b.PackHalf(b.Mul(pair, 2)))
		}
		x.Store(b.Div(i, 4), b.Vec(out...))
	}
}

// specialization sizes everything by expressions of constants.
func specialization(b *kernel.Builder) {
	y := b.Arg("y", kernel.Write)
	k := b.SpecU32("k", 4096)
	scale := b.SpecF32("scale", 0.5)
	b.Workgroup(b.Min(b.Div(k, 16), 256))
	big := b.Gt(k, 1000)
	n := b.Select(big, b.Shr(k, 4), b.Add(k, 1))
	buffer := b.Shared(kernel.U32, b.Max(n, 64))
	buffer.Store(b.LocalID(), n)
	b.If(b.And(big, b.Not(b.Eq(b.And(k, 1), 1))), func() {
		y.Store(b.LocalID(), b.Mul(scale, b.Convert(kernel.F32, buffer.Load(b.LocalID()))))
	})
	y.Store(b.Add(b.WorkgroupSize(), b.LocalID()), b.Splat(scale, 4))
}

// arithmetic uses every operation on numbers with every type it takes.
func arithmetic(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.Write)
	b.Workgroup(64)
	at := b.LocalID()
	next := 0
	put := func(v kernel.Value) {
		if t := v.Type(); t.Elem() == kernel.Bool {
			v = b.Convert(kernel.U32.Vec(t.Lanes()), v)
		}
		y.Store(b.Add(at, next), v)
		next++
	}
	type binary = func(x, y kernel.Operand) kernel.Value
	type unary = func(x kernel.Operand) kernel.Value
	for _, lanes := range []int{1, 2, 4} {
		u, i, f := x.Load(kernel.U32.Vec(lanes), at), x.Load(kernel.I32.Vec(lanes), at), x.Load(kernel.F32.Vec(lanes), at)
		for _, o := range []binary{
			func(x, y kernel.Operand) kernel.Value { return b.Add(x, y, 1) },
			func(x, y kernel.Operand) kernel.Value { return b.Mul(x, y, 3) },
			b.Sub, b.Div, b.Min, b.Max, b.Eq, b.Ne, b.Lt, b.Le, b.Gt, b.Ge,
		} {
			put(o(u, b.Add(u, 7)))
			put(o(5, i))
			put(o(f, 1.5))
		}
		for _, o := range []binary{
			func(x, y kernel.Operand) kernel.Value { return b.And(x, y, 0x7f) },
			func(x, y kernel.Operand) kernel.Value { return b.Or(x, y, 3) },
			b.Xor, b.Mod, b.Shl, b.Shr,
		} {
			put(o(u, 3))
			put(o(i, 3))
		}
		put(b.Not(u))
		put(b.Not(i))
		for _, o := range []unary{
			b.Neg, b.Abs, b.Sqrt, b.InverseSqrt, b.Exp, b.Exp2, b.IsNaN,
		} {
			put(o(f))
		}
		put(b.Neg(i))
		put(b.Abs(i))
		put(b.FMA(f, f, 1))
		put(b.Clamp(f, -1, 1))
		put(b.Select(b.Lt(u, 3), f, 0))
		put(b.BitExtract(u, 4, 4))
		put(b.BitExtract(i, 4, 4))
		put(b.Convert(f.Type(), u))
		put(b.Convert(f.Type(), i))
		put(b.Convert(u.Type(), f))
		put(b.Convert(i.Type(), f))
		put(b.Convert(i.Type(), u))
		put(b.Bitcast(u.Type(), f))
	}
	put(b.DotI8(x.Load(kernel.U32, at), 0x01010101))
	v := x.Load(kernel.F32.Vec(4), at)
	put(b.Elem(v, b.And(at, 3)))
	put(b.Select(b.Lt(at, 3), v, b.Splat(b.F32(1), 4)))
	put(b.Or(b.Lt(at, 3), b.Bool(false)))
}

// memory uses every access to buffers and shared arrays.
func memory(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.ReadWrite)
	z := b.Arg("z", kernel.Write)
	b.Workgroup(32)
	at := b.LocalID()
	for _, t := range []kernel.Type{kernel.U32, kernel.I32, kernel.F32} {
		for _, lanes := range []int{1, 2, 4} {
			v := t.Vec(lanes)
			z.Store(at, x.Load(v, at))
			z.Store(at, y.Load(v, at))
			s := b.Shared(v, 32)
			s.Store(at, x.Load(v, at))
			b.Barrier()
			z.Store(at, s.Load(b.Sub(31, at)))
			if lanes > 1 {
				s.StoreElem(at, 1, s.LoadElem(at, b.And(at, 1)))
			}
		}
	}
	x.Prefetch(at)
	z.Store16(at, x.Load16(at))
	y.Store(at, y.AtomicAdd(0, 1))
	n := b.Shared(kernel.U32, 2)
	z.Store(at, n.AtomicAdd(0, 1))
}

// lanes uses every operation of subgroups and every builtin.
func lanes(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.Write)
	b.Workgroup(64)
	id := b.Add(b.SubgroupLane(), b.SubgroupID(), b.NumSubgroups(), b.LocalID())
	for dim := range 3 {
		id = b.Add(id, b.WorkgroupID(dim), b.NumWorkgroups(dim))
	}
	for _, t := range []kernel.Type{kernel.U32, kernel.I32, kernel.F32, kernel.F32.Vec(4)} {
		v := x.Load(t, id)
		for _, o := range []func(kernel.Value) kernel.Value{
			b.SubgroupAdd, b.SubgroupMax, b.SubgroupMin, b.SubgroupExclusiveAdd,
		} {
			y.Store(id, o(v))
		}
		y.Store(id, b.SubgroupShuffle(v, b.SubgroupLane()))
		y.Store(id, b.SubgroupShuffleXor(v, 1))
	}
	odd := b.Eq(b.And(id, 1), 1)
	y.Store(id, b.Select(b.Or(b.SubgroupAny(odd), b.SubgroupElect()), id, 0))
}

// control uses every statement.
func control(b *kernel.Builder) {
	y := b.Arg("y", kernel.ReadWrite)
	b.Workgroup(32)
	lane := b.LocalID()
	b.ReturnIf(b.Ge(lane, 30))
	v := b.Var(kernel.U32, lane)
	b.For(0, 4, 1, func(kernel.Value) {
		b.IfElse(b.Eq(b.And(v.Get(), 1), 0), func() {
			v.Set(b.Add(b.Mul(v.Get(), 3), 1))
		}, func() {
			b.For(v.Get(), 50, 7, func(i kernel.Value) {
				b.ReturnIf(b.Eq(y.Load(kernel.U32, i), 12345))
				v.Set(b.Add(v.Get(), i))
			})
			v.Set(b.Add(v.Get(), 1))
		})
	})
	flag := b.Var(kernel.Bool, false)
	pair := b.Var(kernel.F32.Vec(2), 0)
	b.If(flag.Get(), func() { pair.Set(b.Add(pair.Get(), 1)) })
	flag.Set(b.Lt(v.Get(), 99))
	y.Store(lane, pair.Get())
	y.Store(lane, v.Get())
}

// tables looks words up: y[lane] = the x[lane]-th of a few, plus elements of an array of pairs.
func tables(b *kernel.Builder) {
	x := b.Arg("x", kernel.Read)
	y := b.Arg("y", kernel.Write)
	size := b.SpecU32("size", 16)
	b.Workgroup(size)
	few := b.Table(kernel.U32, 5, []uint32{2, 3, 5, 7, 11}, nil)
	pairs := b.Table(kernel.U32.Vec(2), 60, tableOfPairs(), pairsOf(b))
	i := x.Load(kernel.U32, b.LocalID())
	pair := pairs.Load(b.Mod(i, 60))
	v := b.Add(few.Load(b.Mod(i, 5)), b.Mul(b.Elem(pair, 0), 3), b.Elem(pair, 1))
	y.Store(b.LocalID(), b.Add(v, b.Table(kernel.U32, 5, []uint32{2, 3, 5, 7, 11}, nil).Load(0)))
}

func tableOfPairs() []uint32 {
	words := make([]uint32, 120)
	for i := range words {
		words[i] = uint32(i*i*i) ^ 0x80000000
	}
	return words
}

func pairsOf(b *kernel.Builder) func(word func(i kernel.Operand) kernel.Value, i kernel.Value) kernel.Value {
	return func(word func(i kernel.Operand) kernel.Value, i kernel.Value) kernel.Value {
		return b.Vec(word(b.Mul(i, 2)), word(b.Add(b.Mul(i, 2), 1)))
	}
}
