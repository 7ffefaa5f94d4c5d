package main

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/spirv"
)

// toy has a loop that ends where memory says, one of four iterations, and one that ends
// where a constant is no more.
func toy(t *testing.T) module {
	f, err := kernel.Build("toy", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		sum := b.Var(kernel.U32, 0)
		b.For(0, x.Load(kernel.U32, 0), 1, func(i kernel.Value) {
			b.For(0, 4, 1, func(j kernel.Value) { sum.Set(b.Add(sum.Get(), x.Load(kernel.U32, b.Add(i, j)))) })
		})
		b.If(b.Ge(sum.Get(), 2), func() { sum.Set(b.Mul(sum.Get(), 5)) })
		b.If(b.Le(b.LocalID(), sum.Get()), func() { y.Store(b.LocalID(), sum.Get()) })
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
		t.Fatal(err)
	}
	// The peer's modules are optimized: what a loop counts with is no variable.
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.spv"), filepath.Join(dir, "out.spv")
	if err := os.WriteFile(in, spirv.Bytes(words), 0o666); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command("spirv-opt", "--ssa-rewrite", in, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("spirv-opt of SPIRV-Tools is needed: %v: %s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if words, err = spirv.Words(data); err != nil {
		t.Fatal(err)
	}
	return words
}

func (m module) bytes() []byte {
	var b []byte
	for _, w := range m {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	return b
}

func TestFindModules(t *testing.T) {
	m := toy(t)
	// In between other things, at odd places, twice, and cut off.
	file := slices.Concat([]byte("ELF\x03\x02\x23\x07?"), m.bytes(), make([]byte, 7), m.bytes(), m.bytes()[:200])
	found := findModules(file)
	if got := found[m.digest()]; len(found) != 1 || !slices.Equal(got, m) {
		t.Errorf("%d modules, the one of %d words has %d", len(found), len(m), len(got))
	}
	// What is added for a device is no other module.
	rounding := slices.Insert(slices.Clone(m), headerWords, 2<<16|opCapability, 4464)
	if rounding.digest() != m.digest() {
		t.Error("a capability makes another module")
	}
	if len(findModules(file[:20])) != 0 {
		t.Error("a module in a magic number")
	}
}

// count returns how many instructions of a kind the module has.
func (m module) count(op uint32) int {
	n := 0
	m.each(func(_ int, have uint32) {
		if have == op {
			n++
		}
	})
	return n
}

func TestLoops(t *testing.T) {
	m := toy(t)
	loops := m.loops()
	if len(loops) != 1 || m.count(opLoopMerge) != 2 {
		t.Fatalf("%d of %d loops end where memory says, want 1 of 2", len(loops), m.count(opLoopMerge))
	}
	for _, c := range []struct {
		name         string
		m            module
		never, holds int
	}{
		{"all loops", m.only(loops, 0), 0, 0},
		{"no loop", m.only(loops, -1), 1, 0},
		{"whole tiles", m.whole(), 1, 1},
	} {
		if never, holds := c.m.count(opINotEqual), c.m.count(opIEqual); never != c.never || holds != c.holds {
			t.Errorf("%s: %d conditions never hold and %d always, want %d and %d", c.name, never, holds, c.never, c.holds)
		}
		if err := spirv.Validate(c.m, spirv.Vulkan12); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if slices.Equal(m, m.whole()) || len(m.loops()) != 1 {
		t.Error("the module itself has changed")
	}
}

// TestProgram parses what is compiled of ours.
func TestProgram(t *testing.T) {
	p, err := ir.Parse(program(formats()))
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Funcs) != len(all) || len(p.Funcs[0].Groups) != 4 {
		t.Errorf("%d entries of %d projections", len(p.Funcs), len(p.Funcs[0].Groups))
	}
	for _, k := range peerKernels {
		for _, columns := range all {
			if k.rows[columns] == 0 {
				t.Errorf("%s %s: no rows for %d columns", k.weights, k.x, columns)
			}
		}
	}
}
