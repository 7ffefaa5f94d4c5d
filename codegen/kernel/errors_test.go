package kernel_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

func TestBuildErrors(t *testing.T) {
	type parts struct {
		b       *kernel.Builder
		x, y    *kernel.Buffer
		u, i, f kernel.Value
		v       kernel.Value // f32x4
		p       kernel.Value // bool
		s       *kernel.Array
	}
	for _, c := range []struct {
		name string
		make func(k parts)
		want string
	}{
		{"types", func(k parts) { k.b.Add(k.u, k.f) }, "add of u32 and f32"},
		{"kind", func(k parts) { k.b.Add(k.p, k.p) }, "add of bool"},
		{"float and", func(k parts) { k.b.And(k.f, k.f) }, "and of f32"},
		{"numbers only", func(k parts) { k.b.Mul(2, 3) }, "compute it in Go"},
		{"negative", func(k parts) { k.b.Add(k.u, -1) }, "int -1 as u32"},
		{"fraction", func(k parts) { k.b.Add(k.i, 0.5) }, "float64 0.5 as i32"},
		{"too large", func(k parts) { k.b.Add(k.f, 1<<24+1) }, "int 16777217 as f32"},
		{"no number", func(k parts) { k.b.Add(k.u, "1") }, "string 1 as u32"},
		{"zero Value", func(k parts) { k.b.Add(kernel.Value{}, 1) }, "the zero Value as operand"},
		{"by zero", func(k parts) { k.b.Div(k.b.U32(3), 0) }, "div by zero"},
		{"wide shift", func(k parts) { k.b.Shl(k.b.U32(3), 32) }, "shl by 32"},
		{"shift by float", func(k parts) { k.b.Shl(k.u, k.f) }, "shl of u32 by f32"},
		{"select", func(k parts) { k.b.Select(k.u, k.f, 0) }, "select of f32 by u32"},
		{"if", func(k parts) { k.b.If(k.u, func() {}) }, "if: operand of type u32, want bool"},
		{"loop bound", func(k parts) { k.b.For(0, k.i, 1, func(kernel.Value) {}) }, "for: operand of type i32, want u32"},
		{"store to read", func(k parts) { k.x.Store(0, k.f) }, `store: argument "x" is declared read`},
		{"load of write", func(k parts) { k.y.Load(kernel.F32, 0) }, `load: argument "y" is declared write`},
		{"atomic", func(k parts) { k.y.AtomicAdd(0, 1) }, `atomic_add: argument "y" is declared write`},
		{"load bool", func(k parts) { k.x.Load(kernel.Bool, 0) }, `load: argument "x" as bool`},
		{"load x3", func(k parts) { k.x.Load(kernel.F32.Vec(3), 0) }, `load: argument "x" as f32x3`},
		{"index", func(k parts) { k.x.Load(kernel.F32, k.i) }, "load: operand of type i32, want u32"},
		{"vec of 3", func(k parts) { k.b.Vec(k.f, 1, 2) }, "vec of 3 elements"}, {"vec of vectors", func(k parts) { k.b.Vec(k.v, k.v) }, "vec of f32x4"},
		{"vec of nothing", func(k parts) { k.b.Vec() }, "vec of 0 elements"},
		{"element", func(k parts) { k.b.Elem(k.v, 4) }, "element 4 of f32x4"},
		{"element of scalar", func(k parts) { k.b.Elem(k.f, 0) }, "element of f32"},
		{"convert", func(k parts) { k.b.Convert(kernel.F32, k.v) }, "convert f32x4 to f32"},
		{"bitcast", func(k parts) { k.b.Bitcast(kernel.U32, k.p) }, "bitcast bool to u32"},
		{"shared store", func(k parts) { k.s.Store(0, k.u) }, "shared_store: operand of type u32, want f32"},
		{"shared element", func(k parts) { k.s.LoadElem(0, 0) }, "shared_load_elem of an array of f32"},
		{"copy of floats", func(k parts) { k.x.Copy(kernel.F32, k.s, 0, 0) }, "copy: f32 into an array of f32"},
		{"copy of a part", func(k parts) { k.x.Copy(kernel.U32, k.b.Shared(kernel.U32.Vec(2), 4), 0, 0) }, "copy: u32 into an array of u32x2"},
		{"copy of write", func(k parts) { k.y.Copy(kernel.U32, k.b.Shared(kernel.U32, 4), 0, 0) }, `copy: argument "y" is declared write`},
		{"copies left", func(k parts) { k.b.CopyWait(8) }, "copy_wait for 8"},
		{"shared atomic", func(k parts) { k.s.AtomicAdd(0, 1) }, "shared_atomic_add of an array of f32"},
		{"shared length", func(k parts) { k.b.Shared(kernel.F32, k.u) }, "length of a shared array: u32 that is not known at specialization time"},
		{"empty shared", func(k parts) { k.b.Shared(kernel.F32, 0) }, "length of a shared array: 0"},
		{"table of floats", func(k parts) { k.b.Table(kernel.F32, 1, []uint32{1}, nil) }, "table of 1 f32, of 1 words"},
		{"empty table", func(k parts) { k.b.Table(kernel.U32, 4, nil, nil) }, "table of 4 u32, of 0 words"},
		{"shared bool", func(k parts) { k.b.Shared(kernel.Bool, 1) }, "shared array of bool"},
		{"workgroup", func(k parts) { k.b.Workgroup(k.u) }, "workgroup size: u32 that is not known"},
		{"two workgroups", func(k parts) { k.b.Workgroup(32) }, "workgroup size set to two numbers"},
		{"size of a part of a grid", func(k parts) { k.b.WorkgroupsFrom(k.b.U32(1), func() { k.b.NumWorkgroups(0) }) }, "size of a grid of which only some"},
		{"ahead in a part of a grid", func(k parts) { k.b.WorkgroupsFrom(k.b.U32(1), func() { k.b.WorkgroupAhead(1) }) }, "workgroup ahead in a grid of which only some"},
		{"dimension", func(k parts) { k.b.WorkgroupID(3) }, "dimension 3"},
		{"argument twice", func(k parts) { k.b.Arg("x", kernel.Read) }, `argument "x": the name is empty or taken`},
		{"access", func(k parts) { k.b.Arg("w", 0) }, `argument "w": bad access(0)`},
		{"escape", func(k parts) {
			var inner kernel.Value
			k.b.If(k.p, func() { inner = k.b.Add(k.u, 1) })
			k.b.Add(inner, 1)
		}, "add used outside of the region that made it"},
		{"counter escapes", func(k parts) {
			var inner kernel.Value
			k.b.For(0, 4, 1, func(i kernel.Value) { inner = i })
			k.b.Add(inner, 1)
		}, "param used outside of the region"},
		{"var escapes", func(k parts) {
			var inner *kernel.Var
			k.b.If(k.p, func() { inner = k.b.Var(kernel.U32, 0) })
			inner.Set(1)
		}, "var used outside of the region"},
		{"var type", func(k parts) { k.b.Var(kernel.U32, k.f) }, "var: operand of type f32, want u32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := kernel.Build("k", func(b *kernel.Builder) {
				k := parts{b: b, x: b.Arg("x", kernel.Read), y: b.Arg("y", kernel.Write)}
				b.Workgroup(64)
				k.u = b.LocalID()
				k.i, k.f = b.Convert(kernel.I32, k.u), b.Convert(kernel.F32, k.u)
				k.v, k.p = b.Splat(k.f, 4), b.Lt(k.u, 3)
				k.s = b.Shared(kernel.F32, 4)
				c.make(k)
			})
			if err == nil {
				t.Fatalf("no error, want %q", c.want)
			}
			if got := err.Error(); !strings.HasPrefix(got, "kernel k: kernel/errors_test.go:") || !strings.Contains(got, c.want) {
				t.Errorf("error %q, want %q with the place of the call", got, c.want)
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("error of several lines: %q", err)
			}
		})
	}
}

func TestBuildNeeds(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(b *kernel.Builder)
		want string
	}{
		{"workgroup", func(b *kernel.Builder) { b.Arg("x", kernel.Read) }, "kernel k: no workgroup size"},
		{"arguments", func(b *kernel.Builder) { b.Workgroup(32) }, "kernel k: no arguments"},
	} {
		if _, err := kernel.Build("k", c.make); err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
}

func TestFuncDescribesTheCallSite(t *testing.T) {
	f, err := kernel.Build("k", func(b *kernel.Builder) {
		x := b.Arg("x", kernel.ReadWrite)
		n := b.SpecU32("n", 8)
		b.Workgroup(b.Mul(n, 32))
		b.Shared(kernel.F32.Vec(4), n)
		b.Shared(kernel.U32, b.Max(n, 100))
		x.Store(0, b.DotI8(b.SubgroupLane(), 3))
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(f.Features, " "); got != "bufferDeviceAddress shaderIntegerDotProduct vulkanMemoryModel" {
		t.Errorf("features %q", got)
	}
	if got := strings.Join(f.SubgroupOps, " "); got != "basic" {
		t.Errorf("subgroup operations %q", got)
	}
	spec, err := f.SpecValues(map[string]uint32{"n": 16})
	if err != nil {
		t.Fatal(err)
	}
	if size, err := f.WorkgroupSize(spec); err != nil || size != 512 {
		t.Errorf("workgroup size %d, %v", size, err)
	}
	if bytes, err := f.SharedBytes(spec); err != nil || bytes != 16*16+4*100 {
		t.Errorf("shared memory %d, %v", bytes, err)
	}
	if _, err := f.SpecValues(map[string]uint32{"m": 16}); err == nil || !strings.Contains(err.Error(), `"m"`) {
		t.Errorf("unknown constant: %v", err)
	}
}
