package kernel_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/spirv"
)

// interpreted runs the kernel on this computer's processor and compares with what the device
// has made of the same words. What is no close float must be the same.
func interpreted(t *testing.T, f *kernel.Func, spec map[uint32]uint32, groups uint32, before, after [][]uint32) {
	t.Helper()
	var args [][]byte
	for _, w := range before {
		args = append(args, append([]byte(nil), spirv.Bytes(w)...))
	}
	if err := f.Run(spec, 8, [3]int{int(groups), 1, 1}, args); err != nil {
		t.Fatal(err)
	}
	for i := range args {
		words, err := spirv.Words(args[i])
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("interpreted: buffer %d", i), words, after[i], 1e-5)
	}
}

// TestRunRefuses finds what a device would not tell.
func TestRunRefuses(t *testing.T) {
	for want, body := range map[string]func(b *kernel.Builder, y *kernel.Buffer){
		`lane 4: byte 16 of argument "y", which has 16`: func(b *kernel.Builder, y *kernel.Buffer) { y.Store(b.LocalID(), b.U32(1)) },
		"lane 0: index 0, whose terms but for numbers are -1": func(b *kernel.Builder, y *kernel.Buffer) {
			y.Store(b.Add(b.Sub(b.LocalID(), 1), 1), b.U32(1))
		},
		"lane 0 does not come to it": func(b *kernel.Builder, y *kernel.Buffer) {
			b.If(b.Gt(b.LocalID(), 0), func() { b.Barrier() })
		},
		"lane 2: element 2 of an array of 2": func(b *kernel.Builder, y *kernel.Buffer) {
			y.Store(0, b.Shared(kernel.U32, 2).Load(b.LocalID()))
		},
	} {
		f, err := kernel.Build("test", func(b *kernel.Builder) {
			b.Workgroup(8)
			body(b, b.Arg("y", kernel.Write))
		})
		if err != nil {
			t.Fatal(err)
		}
		err = f.Run(nil, 8, [3]int{1, 1, 1}, [][]byte{make([]byte, 16)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestRunSubgroups: sums over subgroups of any size, of lanes of which some have left.
func TestRunSubgroups(t *testing.T) {
	f, err := kernel.Build("test", func(b *kernel.Builder) {
		b.Workgroup(128)
		y := b.Arg("y", kernel.Write)
		b.ReturnIf(b.Eq(b.Mod(b.LocalID(), 3), 0))
		sum := b.SubgroupAdd(b.Convert(kernel.F32, b.SubgroupLane()))
		y.Store(b.LocalID(), sum)
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, wave := range []int{4, 32, 64, 128} {
		y := make([]byte, 4*128)
		if err := f.Run(nil, wave, [3]int{1, 1, 1}, [][]byte{y}); err != nil {
			t.Fatal(err)
		}
		words, err := spirv.Words(y)
		if err != nil {
			t.Fatal(err)
		}
		for l, got := range words {
			want := 0
			for other := l / wave * wave; other < (l/wave+1)*wave; other++ {
				if other%3 != 0 && l%3 != 0 {
					want += other % wave
				}
			}
			if got != math.Float32bits(float32(want)) {
				t.Fatalf("subgroups of %d: lane %d has %g, want %d", wave, l, math.Float32frombits(got), want)
			}
		}
	}
}

// TestRunOfSameValues has values that are the same for all lanes where lane 0 is not, and where no lane is left.
func TestRunOfSameValues(t *testing.T) {
	f, err := kernel.Build("same", func(b *kernel.Builder) {
		b.Workgroup(8)
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		sum := b.Var(kernel.U32, 0)
		b.If(b.Gt(b.LocalID(), 2), func() {
			b.For(b.WorkgroupID(0), 3, 1, func(i kernel.Value) {
				once := b.Or(b.Ne(b.LocalID(), 4), b.Eq(i, b.WorkgroupID(0)))
				b.If(b.And(b.Ne(i, 1), once), func() { sum.Set(b.Add(sum.Get(), x.Load(kernel.U32, i))) })
			})
		})
		y.Store(b.Add(b.LocalID(), b.Mul(b.WorkgroupID(0), 8)), sum.Get())
		b.ReturnIf(b.Lt(b.LocalID(), 8))
		y.Store(b.LocalID(), x.Load(kernel.U32, 1<<20)) // behind the end
	})
	if err != nil {
		t.Fatal(err)
	}
	x, y := make([]byte, 12), make([]byte, 4*16)
	for i, v := range []uint32{1, 10, 100} {
		binary.LittleEndian.PutUint32(x[4*i:], v)
	}
	if err := f.Run(nil, 4, [3]int{2, 1, 1}, [][]byte{x, y}); err != nil {
		t.Fatal(err)
	}
	for i, want := range []uint32{0, 0, 0, 101, 1, 101, 101, 101, 0, 0, 0, 100, 0, 100, 100, 100} {
		if got := binary.LittleEndian.Uint32(y[4*i:]); got != want {
			t.Errorf("lane %d of workgroup %d has %d, want %d", i%8, i/8, got, want)
		}
	}
}
