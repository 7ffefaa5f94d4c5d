package objects

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernel/llvm"
	"github.com/zincc-dev/zincc/plans/object"
)

// words is a kernel in LLVM's words.
func words(t *testing.T, m *llvm.Machine, k uint32) string {
	t.Helper()
	f, err := kernel.Build("k", func(b *kernel.Builder) {
		x := b.Arg("x", kernel.ReadWrite)
		b.Workgroup(llvm.Lanes)
		x.Store(b.LocalID(), b.Add(x.Load(kernel.U32, b.LocalID()), b.U32(k)))
	})
	if err != nil {
		t.Fatal(err)
	}
	text, err := llvm.Lower(f, nil, m)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOf checks that an object is made once, found again without LLVM, and made again where it is damaged.
func TestOf(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	path := os.Getenv("PATH")
	m := llvm.Machines[0]
	text := words(t, m, 7)
	of := func(m *llvm.Machine, text string) ([]byte, error) {
		return Of(t.Context(), Wanted{"k", m, func(*llvm.Machine) (string, error) { return text, nil }})
	}
	made, err := of(m, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := object.Read(made); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if found, err := of(m, text); err != nil || !bytes.Equal(found, made) {
		t.Errorf("without LLVM: %v", err)
	}
	for _, other := range []struct {
		m    *llvm.Machine
		text string
	}{{m, words(t, m, 8)}, {llvm.Machines[1], text}} {
		_, err = of(other.m, other.text)
		if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), `kernel "k" is not among those that this program holds`) || !strings.Contains(err.Error(), "llvm-19") {
			t.Errorf("another kernel without LLVM: %v", err)
		}
	}
	kept, err := filepath.Glob(filepath.Join(cache, "zincc", "objects", "*.o"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("%q, %v", kept, err)
	}
	if err := os.WriteFile(kept[0], made[:len(made)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", path)
	if again, err := of(m, text); err != nil || !bytes.Equal(again, made) {
		t.Errorf("behind a damaged file: %v", err)
	}
}

// TestHeld checks that this program holds objects for its own architecture alone.
func TestHeld(t *testing.T) {
	a, err := embedded()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range llvm.Machines {
		if own := m.Arch == runtime.GOARCH; own != (a.entries[m.Name] != nil) {
			t.Errorf("a program for %s has objects of %s: %v", runtime.GOARCH, m.Name, !own)
		}
		if code, err := Held(m, strings.Repeat("0", 64)); code != nil || err != nil {
			t.Errorf("an object that is not held: %d bytes, %v", len(code), err)
		}
	}
}

// TestArchives reads every object of all architectures.
func TestArchives(t *testing.T) {
	for _, arch := range []string{"amd64", "arm64"} {
		data, err := os.ReadFile("objects_" + arch + ".zip")
		if err != nil {
			t.Fatal(err)
		}
		a, err := Open(data)
		if err != nil {
			t.Fatalf("%s: %v", arch, err)
		}
		for _, m := range llvm.Machines {
			if m.Arch == arch && a.entries[m.Name] == nil {
				t.Errorf("no objects of %s", m.Name)
			}
		}
		for name, entry := range a.entries {
			list, err := entry()
			if err != nil || len(list) == 0 {
				t.Errorf("%s %s: %d objects, %v", arch, name, len(list), err)
			}
			for key, code := range list {
				if _, err := object.Read(code); err != nil {
					t.Errorf("%s %s %s: %v", arch, name, key, err)
				}
			}
		}
	}
}

// TestWrite checks that objects are found under their keys, and that what several machines have is there once.
func TestWrite(t *testing.T) {
	key := func(digit string) string { return strings.Repeat(digit, 64) }
	m, n := &llvm.Machine{Name: "m"}, &llvm.Machine{Name: "n"}
	list := []Object{{"two", "m", key("2"), []byte("second")}, {"one", "m", key("1"), []byte("first")}, {"one", "n", key("3"), []byte("other")},
		{"three", "m", key("4"), []byte("both")}, {"three", "n", key("5"), []byte("both")}, {"four", "n", key("6"), []byte("other")}}
	var one, two bytes.Buffer
	if err := Write(&one, list); err != nil {
		t.Fatal(err)
	}
	other := slices.Clone(list)
	slices.Reverse(other)
	if err := Write(&two, other); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same objects make other bytes")
	}
	a, err := Open(one.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		of := map[string]*llvm.Machine{"m": m, "n": n}[o.Machine]
		if have, err := a.Find(of, o.Key); err != nil || string(have) != string(o.Code) {
			t.Errorf("%s for %s: %q, %v", o.Kernel, o.Machine, have, err)
		}
	}
	if both, err := a.entries[shared](); err != nil || len(both) != 2 {
		t.Errorf("%d keys of what both machines have, %v", len(both), err)
	}
	if have, err := a.Find(n, key("1")); have != nil || err != nil {
		t.Errorf("what the other machine has: %q, %v", have, err)
	}
	if a, err := Open(nil); err != nil {
		t.Error(err)
	} else if have, err := a.Find(m, key("1")); have != nil || err != nil {
		t.Errorf("an archive without a byte: %q, %v", have, err)
	}
	if _, err := Open(one.Bytes()[:one.Len()-1]); err == nil {
		t.Error("half an archive is read")
	}
	if err := Write(&one, []Object{{"one", "m", "no key", nil}}); err == nil {
		t.Error("a bad key is written")
	}
}
