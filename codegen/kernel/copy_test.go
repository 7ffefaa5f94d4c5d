package kernel_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// copies has two rounds on their way: y[lane + 64 round] is the sum of the words 4*(lane^1) to 4*(lane^1)+3 of the
// round's 64 vectors of x. without leaves out a part.
func copies(b *kernel.Builder, without string) {
	const rounds, slots = 5, 2
	x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
	b.Workgroup(64)
	pairs := b.Shared(kernel.U32.Vec(2), slots*128)
	lane := b.LocalID()
	send := func(round, slot kernel.Value) {
		to := b.Add(b.Mul(slot, 128), b.Mul(lane, 2))
		x.Copy(kernel.U32.Vec(4), pairs, to, b.Add(b.Mul(round, 64), lane))
	}
	for i := range slots {
		send(b.U32(uint32(i)), b.U32(uint32(i)))
		b.CopyGroup()
	}
	b.ForRolled(0, rounds, 1, func(round kernel.Value) {
		switch without {
		case "wait":
		case "groups":
			b.CopyWait(slots)
		default:
			b.CopyWait(slots - 1)
		}
		if without != "barrier" {
			b.SubgroupBarrier()
		}
		slot := b.And(round, slots-1)
		at := b.Add(b.Mul(slot, 128), b.Mul(b.Xor(lane, 1), 2))
		v, w := pairs.Load(at), pairs.Load(b.Add(at, 1))
		y.Store(b.Add(b.Mul(round, 64), lane), b.Add(b.Elem(v, 0), b.Elem(v, 1), b.Elem(w, 0), b.Elem(w, 1)))
		b.SubgroupBarrier()
		after := b.Add(round, slots)
		b.If(b.Lt(after, rounds), func() { send(after, slot) })
		b.CopyGroup()
	})
}

func TestCopies(t *testing.T) {
	const words = 5 * 64
	x := make([]byte, 16*words)
	for i := range len(x) / 4 {
		binary.LittleEndian.PutUint32(x[4*i:], uint32(i*i))
	}
	for without, want := range map[string]string{"": "", "wait": "differs", "groups": "differs", "barrier": "race on word"} {
		f, err := kernel.Build("copies", func(b *kernel.Builder) { copies(b, without) })
		if err != nil {
			t.Fatal(err)
		}
		y := make([]byte, 4*words)
		got := ""
		if err := f.Run(nil, 32, [3]int{1, 1, 1}, [][]byte{x, y}); err != nil {
			got = err.Error()
		}
		for i := range words {
			sum := uint32(0)
			for e := range uint32(4) {
				n := 4*(uint32(i)^1) + e
				sum += n * n
			}
			if is := binary.LittleEndian.Uint32(y[4*i:]); is != sum && got == "" {
				got = "differs"
			}
		}
		if got != want && (want == "" || !strings.Contains(got, want)) {
			t.Errorf("without %q: %q, want %q", without, got, want)
		}
	}
}

// TestCopiesAhead: workgroup 1 copies what workgroup 0 may be writing. That is a race, unless it copies ahead: then it
// has noise.
func TestCopiesAhead(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		f, err := kernel.Build("ahead", func(b *kernel.Builder) {
			x, y := b.Arg("x", kernel.ReadWrite), b.Arg("y", kernel.Write)
			b.Workgroup(32)
			words, lane := b.Shared(kernel.U32, 32), b.LocalID()
			b.IfElse(b.Eq(b.WorkgroupID(0), 0), func() { x.Store(lane, b.U32(7)) }, func() {
				if ahead {
					x = x.Ahead()
				}
				x.Copy(kernel.U32, words, lane, lane)
				b.CopyGroup()
				b.CopyWait(0)
				y.Store(lane, words.Load(lane))
			})
		})
		if err != nil {
			t.Fatal(err)
		}
		x, y := make([]byte, 4*32), make([]byte, 4*32)
		switch err := f.Run(nil, 32, [3]int{2, 1, 1}, [][]byte{x, y}); {
		case !ahead && (err == nil || !strings.Contains(err.Error(), "race on word")):
			t.Errorf("copies that race: %v", err)
		case ahead && err != nil:
			t.Errorf("copies ahead: %v", err)
		case ahead && (binary.LittleEndian.Uint32(y) == 0 || binary.LittleEndian.Uint32(y) == 7):
			t.Errorf("copies ahead have %x, which is no noise", y[:4])
		}
	}
}
