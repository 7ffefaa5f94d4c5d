package hostile

import (
	"bytes"
	"debug/elf"
	"os"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/internal/synth"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// exit42 is machine code of x86-64 that ends the process: exit_group(42).
var exit42 = []byte{0xbf, 42, 0, 0, 0, 0xb8, 231, 0, 0, 0, 0x0f, 0x05}

// poisoned is an object whose function is exit42.
func poisoned(t *testing.T, object []byte) []byte {
	t.Helper()
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		t.Fatal(err)
	}
	bad := bytes.Clone(object)
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Size > 0 {
			copy(bad[s.Offset:], exit42)
		}
	}
	return bad
}

// rare makes the plan of a model that has kernels which zincc does not hold: heads have an unusual width.
func rare(t *testing.T) *plans.Plan {
	t.Helper()
	shape := synth.Small()[0]
	shape.HeadDim, shape.Heads, shape.KVHeads, shape.Quant = 48, 4, 4, "Q4_K_M"
	m, err := synth.New(shape)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rare.gguf")
	if err := m.WriteHeader(path); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.OpenHeader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	to, err := target.Lookup("cpu:x86-64-v3")
	if err != nil {
		t.Fatal(err)
	}
	r, err := codegen.Compile(t.Context(), codegen.Source{Model: f}, codegen.Options{Target: to, Import: frontend.Options{Ctx: 256, KV: ir.F16, MaxRows: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return r.Plan
}

// TestPoisonedObjects plants machine code in the cache of objects: as a file by the right name, and, which only the
// user could, with a sum of the user's key. The first is never taken, and check takes neither.
func TestPoisonedObjects(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	good := rare(t)
	folder := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "zincc", "objects")
	kept, err := filepath.Glob(filepath.Join(folder, "*.o"))
	if err != nil || len(kept) == 0 {
		t.Fatalf("no object was kept: %v", err)
	}
	if !reproduced(t, good) {
		t.Fatal("the plan itself is refused")
	}
	cache, err := private.Open("objects")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string][]byte{}
	for _, path := range kept {
		name := filepath.Base(path)
		objects[name] = cache.Read(name)
		if err := os.WriteFile(path, poisoned(t, objects[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	same := func(p *plans.Plan) bool {
		for i, m := range p.Modules {
			if !bytes.Equal(m.Bytes, good.Modules[i].Bytes) {
				return false
			}
		}
		return true
	}
	if !same(rare(t)) {
		t.Error("a planted file is compiled into a plan")
	}
	for name, object := range objects {
		if err := cache.Write(name, poisoned(t, object)); err != nil {
			t.Fatal(err)
		}
	}
	bad := rare(t)
	if same(bad) {
		t.Fatal("the attack does not reach the plan")
	}
	if reproduced(t, bad) {
		t.Error("check compares a plan with the cache that it came from")
	}
	if !reproduced(t, good) {
		t.Error("check takes what it compares with from the cache")
	}
}
