package objects

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
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
	path := os.Getenv("PATH")
	m := llvm.Machines[0]
	text := words(t, m, 7)
	made, err := Of(t.Context(), "k", m, text)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := object.Read(made); err != nil {
		t.Error(err)
	}
	t.Setenv("PATH", "")
	if found, err := Of(t.Context(), "k", m, text); err != nil || !bytes.Equal(found, made) {
		t.Errorf("without LLVM: %v", err)
	}
	for _, other := range []struct {
		m    *llvm.Machine
		text string
	}{{m, words(t, m, 8)}, {llvm.Machines[1], text}} {
		_, err = Of(t.Context(), "k", other.m, other.text)
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
	if again, err := Of(t.Context(), "k", m, text); err != nil || !bytes.Equal(again, made) {
		t.Errorf("behind a damaged file: %v", err)
	}
}

// TestHeld checks every object that this program holds.
func TestHeld(t *testing.T) {
	files, err := index()
	if err != nil {
		t.Fatal(err)
	}
	for key := range files {
		code, err := find(key)
		if err == nil {
			_, err = object.Read(code)
		}
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
	}
	if len(files) == 0 {
		t.Error("no objects are held")
	}
}

func TestWriteZip(t *testing.T) {
	Collect()
	defer func() { collected = nil }()
	collect("b", []byte("second"))
	collect("a", []byte("first"))
	var one, two bytes.Buffer
	if n, err := WriteZip(&one); err != nil || n != 2 {
		t.Fatal(n, err)
	}
	if _, err := WriteZip(&two); err != nil || !bytes.Equal(one.Bytes(), two.Bytes()) {
		t.Error("the same objects make other bytes")
	}
	r, err := zip.NewReader(bytes.NewReader(one.Bytes()), int64(one.Len()))
	if err != nil || len(r.File) != 2 || r.File[0].Name != "a" {
		t.Fatalf("%v", err)
	}
	f, err := r.File[1].Open()
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "second" {
		t.Errorf("%q, %v", data, err)
	}
}
