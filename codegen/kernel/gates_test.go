package kernel_test

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/ptx"
	"github.com/zincc-dev/zincc/codegen/kernel/spirv"
)

// gates has rounds in which lanes pass on words through two buffers: y[lane + 64 round] is x[lane^32 + 64 round].
// without names parts that are left out: of two buffers one, or that lanes read before they say so.
func gates(without string) (*kernel.Func, error) {
	is := func(part string) bool { return strings.Contains(without, part) }
	return kernel.Build("gates", func(b *kernel.Builder) {
		const rounds, size, written, read, all = 5, 64, 0, 1, 2
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(size)
		words := b.Shared(kernel.U32, 2*size)
		g, lane := b.Gates(all), b.LocalID()
		b.ForRolled(0, rounds, 1, func(round kernel.Value) {
			turn, at := b.And(round, 1), b.Mul(round, size)
			buffer := b.Mul(turn, size)
			if is("buffer") {
				buffer = b.U32(0)
			}
			words.Store(b.Add(buffer, lane), x.Load(kernel.U32, b.Add(at, lane)))
			if !is("reach") {
				g.Reach(written)
			}
			switch {
			case is("await"):
			case is("turn"):
				g.Await(written, 0)
			default:
				g.Await(written, turn)
			}
			other := func() kernel.Value { return words.Load(b.Add(buffer, b.Xor(lane, 32))) }
			v := other()
			g.Reach(read)
			if is("order") {
				v = other()
			}
			y.Store(b.Add(at, lane), v)
			if !is("free") {
				g.Await(read, turn)
			}
		})
	})
}

// TestGates holds what lanes see behind a gate, what of a kernel is found wrong, and who has none.
func TestGates(t *testing.T) {
	const words = 5 * 64
	x := make([]byte, 4*words)
	for i := range words {
		binary.LittleEndian.PutUint32(x[4*i:], uint32(i*i))
	}
	for without, want := range map[string]string{"": "", "await": "race on word", "reach": "was reached 0 times", "turn": "not in turn 0",
		"buffer": "", "free": "", "order": "", "buffer free": "race on word", "buffer order": "race on word"} {
		f, err := gates(without)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]byte, 4*words)
		got := ""
		if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("without %q: %q, want %q", without, got, want)
		}
		for i := 0; want == "" && i < words; i++ {
			if got := binary.LittleEndian.Uint32(y[4*i:]); got != uint32((i^32)*(i^32)) {
				t.Fatalf("without %q: word %d is %d", without, i, got)
			}
		}
	}
	f, err := gates("")
	if err != nil {
		t.Fatal(err)
	}
	text, err := ptx.Lower(f, ptx.Options{Arch: 90})
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_90", text)
	golden(t, filepath.Join("ptx", "gates"), f, "ptx", text)
	if _, err := ptx.Lower(f, ptx.Options{Arch: 80}); err == nil || !strings.Contains(err.Error(), "sm_90 and later") {
		t.Errorf("sm_80: %v", err)
	}
	if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "waited for by slot") {
		t.Errorf("SPIR-V: %v", err)
	}
}
