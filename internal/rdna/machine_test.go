package rdna

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// step is an instruction of the test's program, which exchanges numbers between two waves.
type step struct {
	text  string
	words []uint32
}

// exchange has each lane put its number into shared memory and store that of the same lane of the other wave.
var exchange = []step{
	{"v_lshlrev_b32_e32 v1, 2, v0", []uint32{0x30020082}},
	{"ds_store_b32 v1, v0", []uint32{0xd8340000, 1}},
	{"s_wait_dscnt 0x0", []uint32{0xbfc60000}},
	{"s_barrier_signal -1", []uint32{0xbe804ec1}},
	{"s_barrier_wait 0xffff", []uint32{0xbf94ffff}},
	{"v_xor_b32_e32 v2, 0x80, v1", []uint32{0x3a0402ff, 0x80}},
	{"ds_load_b32 v3, v2", []uint32{0xd8d80000, 0x03000002}},
	{"s_wait_dscnt 0x0", []uint32{0xbfc60000}},
	{"global_store_b32 v1, v3, s[2:3]", []uint32{0xee068002, 0x01800000, 1}},
	{"s_endpgm", []uint32{0xbfb00000}},
}

// runExchange runs it, without some of its steps, on a buffer of so many bytes.
func runExchange(t *testing.T, bytes, groups int, without ...int) ([]byte, error) {
	t.Helper()
	var code []uint32
	for i, s := range exchange {
		if !slices.Contains(without, i) {
			code = append(code, s.words...)
		}
	}
	b := &Buffer{Name: "y", Data: make([]byte, bytes), Writable: true}
	_, err := Run(&Launch{Gen: GFX12, Grid: [3]int{groups, 1, 1}, Workgroup: 64, Args: []*Buffer{b},
		Kernel: &Kernel{Code: code, Wave: 32, LDS: 256, Inline: 3, InlineAt: 2, PushAt: -1, GridAt: -1, SetAt: -1}})
	return b.Data, err
}

func TestExchange(t *testing.T) {
	left, err := runExchange(t, 256, 1)
	if err != nil {
		t.Fatal(err)
	}
	for lane := range 64 {
		if got, want := binary.LittleEndian.Uint32(left[4*lane:]), uint32(lane^32); got != want {
			t.Errorf("lane %d: %d, want %d", lane, got, want)
		}
	}
}

// TestFaults has each hazard that the program has without one of its steps, or with other buffers.
func TestFaults(t *testing.T) {
	for _, c := range []struct {
		kind          Hazard
		bytes, groups int
		without       []int
		text          string
	}{
		{Unwaited, 256, 1, []int{7}, "global_store_b32 v1, v3, s[2:3]"},
		{SharedRace, 256, 1, []int{2}, "ds_load_b32 v3, v2"},     // the stores may end behind the barrier
		{SharedRace, 256, 1, []int{3, 4}, "ds_store_b32 v1, v0"}, // no barrier: the first wave has read what the second writes
		{BadBarrier, 256, 1, []int{3}, "s_barrier_wait 0xffff"},
		{OutOfRegion, 252, 1, nil, "global_store_b32 v1, v3, s[2:3]"},
		{GlobalRace, 256, 2, nil, "global_store_b32 v1, v3, s[2:3]"}, // two workgroups store the same
	} {
		_, err := runExchange(t, c.bytes, c.groups, c.without...)
		var f *Fault
		if !errors.As(err, &f) || f.Kind != c.kind || f.Text != c.text {
			t.Errorf("without %v, %d bytes, %d workgroups: %v, want %s", c.without, c.bytes, c.groups, err, c.kind)
		}
	}
}

func TestEndless(t *testing.T) {
	k := &Kernel{Code: []uint32{0xbfa0ffff}, Wave: 32, InlineAt: -1, PushAt: -1, GridAt: -1, SetAt: -1} // s_branch to itself
	_, err := Run(&Launch{Gen: GFX12, Grid: [3]int{1, 1, 1}, Workgroup: 32, Kernel: k, Limit: 1000})
	var f *Fault
	if !errors.As(err, &f) || f.Kind != Endless {
		t.Errorf("%v", err)
	}
}

func TestTexts(t *testing.T) {
	for _, s := range exchange {
		p, err := Decode(GFX12, 32, append(slices.Clone(s.words), 0xbfb00000))
		if err != nil || p.insts[0].String() != s.text {
			t.Errorf("%08x: %v, %v, want %s", s.words, p.insts[0], err, s.text)
		}
	}
}

// TestNoInstruction: words that are none are named with their place.
func TestNoInstruction(t *testing.T) {
	for _, code := range [][]uint32{nil, {0xffffffff}, {0xbf800000}, {0x3a0402ff}, {0xbf9f0000}} {
		if _, err := Decode(GFX12, 32, code); err == nil && len(code) != 1 || err != nil && !strings.HasPrefix(err.Error(), "at 0x") {
			t.Errorf("%08x: %v", code, err)
		}
	}
}

// FuzzRun: whatever the code, a launch ends, with an error or without.
func FuzzRun(f *testing.F) {
	var whole []byte
	for _, s := range exchange {
		for _, w := range s.words {
			whole = binary.LittleEndian.AppendUint32(whole, w)
		}
	}
	for _, gen := range []byte{0, 1} {
		f.Add(gen, whole)
	}
	f.Fuzz(func(t *testing.T, gen byte, data []byte) {
		code := make([]uint32, len(data)/4)
		for i := range code {
			code[i] = binary.LittleEndian.Uint32(data[4*i:])
		}
		for _, wave := range []int{32, 64} {
			p, err := Decode(Gen(gen%2), wave, code)
			if err != nil {
				continue
			}
			p.Insts(func(in *Inst) { _ = in.String() })
			_, _ = Run(&Launch{Gen: p.Gen, Program: p, Grid: [3]int{1, 1, 1}, Workgroup: 64, Limit: 1000, Args: []*Buffer{{Data: make([]byte, 64), Writable: true}},
				Kernel: &Kernel{Code: code, Wave: wave, LDS: 256, Scratch: 1024, Inline: 3, InlineAt: 2, PushAt: -1, GridAt: -1, SetAt: -1}})
		}
	})
}

func ExampleFault() {
	f := &Fault{Kind: Unwaited, PC: 0x24, Text: "v_mov_b32_e32 v1, v2", Wave: 3, What: "reads v2, which a load under way fills"}
	fmt.Println(f)
	// Output: register used before its wait at 0x24, v_mov_b32_e32 v1, v2, workgroup [0 0 0], wave 3: reads v2, which a load under way fills
}

// TestNegativeBase: an address in shared memory is a sum of 32 bits, so that a register may be below zero.
func TestNegativeBase(t *testing.T) {
	code := []uint32{
		0x4a0000ff, 0xfffffe00, // v_add_nc_u32_e32 v0, 0xfffffe00, v0
		0xd8340200, 0x00000000, // ds_store_b32 v0, v0 offset:512
		0xbfb00000,
	}
	if p, err := Decode(GFX12, 32, code); err != nil || p.insts[2].String() != "ds_store_b32 v0, v0 offset:512" {
		t.Fatal(p, err)
	}
	k := &Kernel{Code: code, Wave: 32, LDS: 4, InlineAt: -1, PushAt: -1, GridAt: -1, SetAt: -1}
	if _, err := Run(&Launch{Gen: GFX12, Grid: [3]int{1, 1, 1}, Workgroup: 1, Kernel: k}); err != nil {
		t.Error(err)
	}
}
