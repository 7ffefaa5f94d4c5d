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

// bulk has two rounds of 64 vectors on their way: y[lane + 64 round] is word lane%4 of vector lane^32 of the round's.
// without leaves out a part.
func bulk(without string) (*kernel.Func, error) {
	return kernel.Build("bulk", func(b *kernel.Builder) {
		const rounds, slots, size = 5, 2, 64
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(size)
		vectors := b.Shared(kernel.U32.Vec(4), slots*size)
		arrivals := b.Arrivals(slots)
		lane := b.LocalID()
		send := func(round kernel.Value) {
			slot, turn := b.And(round, slots-1), b.And(b.Div(round, slots), 1)
			b.If(b.And(b.Eq(lane, 0), b.Lt(round, rounds)), func() {
				if without != "free" {
					arrivals.Free(slot, turn)
				}
				to, from := b.Mul(slot, size), b.Mul(round, size)
				arrivals.Copy(slot, vectors, kernel.Piece{Buffer: x, From: from, To: to, N: size / 4},
					kernel.Piece{Buffer: x, From: b.Add(from, size/4), To: b.Add(to, size/4), N: size - size/4})
			})
		}
		for i := range slots {
			if i == 0 || without != "copy" {
				send(b.U32(uint32(i)))
			}
		}
		b.ForRolled(0, rounds, 1, func(round kernel.Value) {
			slot := b.And(round, slots-1)
			turn := b.And(b.Div(round, slots), 1)
			if without == "turn" {
				turn = b.U32(0)
			}
			if without != "wait" {
				arrivals.Wait(slot, turn)
			}
			load := func() kernel.Value {
				return vectors.LoadElem(b.Add(b.Mul(slot, size), b.Xor(lane, 32)), b.And(lane, 3))
			}
			v := load()
			if without != "done" {
				arrivals.Done(slot)
			}
			if without == "order" {
				v = load()
			}
			y.Store(b.Add(b.Mul(round, size), lane), v)
			send(b.Add(round, slots))
		})
	})
}

// TestBulk holds what copies that lanes wait for by slot bring, what of a kernel is found wrong, and who has none.
func TestBulk(t *testing.T) {
	const words = 5 * 64
	x := make([]byte, 16*words)
	for i := range len(x) / 4 {
		binary.LittleEndian.PutUint32(x[4*i:], uint32(i*i))
	}
	for without, want := range map[string]string{"": "", "wait": "has not waited for the copy", "turn": "has not waited for the copy", "copy": "nothing will arrive",
		"done": "not all subgroups will be done", "free": "race on word", "order": "was done with it"} {
		f, err := bulk(without)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]byte, 4*words)
		got := ""
		if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			got = err.Error()
		}
		if got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("without %q: %q, want %q", without, got, want)
		}
		for i := range words {
			n := uint32(4*(i^32) + i%4)
			if is := binary.LittleEndian.Uint32(y[4*i:]); without == "" && is != n*n {
				t.Fatalf("word %d is %d, want %d", i, is, n*n)
			}
		}
	}
	f, err := bulk("")
	if err != nil {
		t.Fatal(err)
	}
	text, err := ptx.Lower(f, ptx.Options{Arch: 90})
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_90", text)
	golden(t, filepath.Join("ptx", "bulk"), f, "ptx", text)
	weights, err := ptx.Lower(f, ptx.Options{Arch: 90, Constant: func(int) bool { return true }})
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_90", weights)
	if all, once := strings.Count(text+weights, "cp.async.bulk."), strings.Count(text+weights, ".L2::cache_hint"); once == 0 || all != 2*once {
		t.Errorf("%d of %d copies leave the L2 cache first, want those of weights:\n%s", once, all, weights)
	}
	if _, err := ptx.Lower(f, ptx.Options{Arch: 80}); err == nil || !strings.Contains(err.Error(), "sm_90 and later") {
		t.Errorf("sm_80: %v", err)
	}
	if _, err := spirv.Lower(f); err == nil || !strings.Contains(err.Error(), "waited for by slot") {
		t.Errorf("SPIR-V: %v", err)
	}
}
