package objects

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

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

// TestHeld checks every object that this program holds.
func TestHeld(t *testing.T) {
	for _, m := range llvm.Machines {
		if !m.Held {
			continue
		}
		all, err := machines()
		if err != nil {
			t.Fatal(err)
		}
		list, err := all[m.Name]()
		if err != nil || len(list) == 0 {
			t.Fatalf("%s: %d objects, %v", m.Name, len(list), err)
		}
		for key := range list {
			code, err := Held(m, key)
			if err == nil {
				_, err = object.Read(code)
			}
			if err != nil {
				t.Errorf("%s %s: %v", m.Name, key, err)
			}
		}
		if code, err := Held(m, strings.Repeat("0", 64)); code != nil || err != nil {
			t.Errorf("an object that is not held: %d bytes, %v", len(code), err)
		}
	}
}

func TestWrite(t *testing.T) {
	key := func(digit string) string { return strings.Repeat(digit, 64) }
	list := []Object{{"two", "m", key("2"), []byte("second")}, {"one", "m", key("1"), []byte("first")}, {"one", "n", key("3"), nil}}
	var one, two bytes.Buffer
	if err := Write(&one, list); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(list)
	if err := Write(&two, list); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same objects make other bytes")
	}
	r, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
	if err == nil {
		r.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor())
	}
	if err != nil || len(r.File) != 2 || r.File[0].Name != "m" {
		t.Fatalf("%v", err)
	}
	got, err := unpack(r.File[0])
	if err != nil || len(got) != 2 || string(got[key("1")]) != "first" || string(got[key("2")]) != "second" {
		t.Errorf("%q, %v", got, err)
	}
	if err := Write(&one, []Object{{"one", "m", "no key", nil}}); err == nil {
		t.Error("a bad key is written")
	}
}
