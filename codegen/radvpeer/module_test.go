package main

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	kernelspirv "github.com/zincc-dev/zincc/codegen/kernel/spirv"
	"github.com/zincc-dev/zincc/ir"
)

// toy is a module.
func toy(t *testing.T) module {
	t.Helper()
	f, err := kernel.Build("toy", func(b *kernel.Builder) {
		x, y := b.Arg("x", kernel.Read), b.Arg("y", kernel.Write)
		b.Workgroup(32)
		y.Store(b.LocalID(), x.Load(kernel.U32, b.LocalID()))
	})
	if err != nil {
		t.Fatal(err)
	}
	words, err := kernelspirv.Lower(f)
	if err != nil {
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
