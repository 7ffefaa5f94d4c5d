package kept

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestKept writes parts and maps them again, and refuses whatever was changed in the file.
func TestKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	key := Key{1, 2, 3}
	parts := []Part{{"a", 100}, {"b", 3<<20 + 1}, {"empty", 0}, {"c", 64}}
	at, size, from := place(parts)
	data := make([]byte, size)
	rng := rand.New(rand.NewPCG(1, 2))
	for i, p := range parts {
		for j := range p.Bytes {
			data[at[i]+j] = byte(rng.Uint32())
		}
	}
	if _, err := Open(t.Context(), dir, key, parts); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("a file that is not there: %v", err)
	}
	name, err := Write(t.Context(), dir, key, parts, data)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(t.Context(), dir, key, parts)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range parts {
		if !bytes.Equal(f.Part(p.Name), data[at[i]:at[i]+p.Bytes]) {
			t.Errorf("part %s differs", p.Name)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	refuse := func(what string, bad []byte, parts []Part, want string) {
		t.Helper()
		if err := os.WriteFile(name, bad, 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := Open(t.Context(), dir, key, parts)
		if err == nil {
			f.Close()
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), name) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	flipped := func(i int64) []byte {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		return bad
	}
	for _, i := range []int64{0, 20, 50} {
		refuse("a changed header", flipped(i), parts, "not the kept weights of this plan")
	}
	for _, i := range []int64{60, 64, from - 1, from, from + 1<<20, from + size - 1} {
		refuse("a changed byte", flipped(i), parts, "damaged")
	}
	refuse("a short file", good[:len(good)-1], parts, "bytes, want")
	refuse("an empty file", nil, parts, "bytes, want")
	refuse("other parts", good, parts[:3], "bytes, want")
	if _, err := Write(t.Context(), filepath.Join(name, "below a file"), key, parts, data); err == nil {
		t.Error("a folder that cannot be made")
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := os.WriteFile(name, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(stopped, dir, key, parts); !errors.Is(err, context.Canceled) {
		t.Errorf("opened after ^C: %v", err)
	}
	if _, err := Write(stopped, dir, key, parts, data); !errors.Is(err, context.Canceled) {
		t.Errorf("written after ^C: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%d files, %v", len(left), err)
	}
}

// TestSweep checks that Write removes temporary files of its own name that are older than a day, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	key := Key{7}
	name := filepath.Base(path(dir, key))
	other := filepath.Base(path(dir, Key{8}))
	old, stays := "."+name+".1", []string{"." + name + ".2", "." + other + ".1", name + ".1"}
	for _, f := range append(stays, old) {
		at := filepath.Join(dir, f)
		if err := os.WriteFile(at, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if f == stays[0] {
			continue // somebody writes it
		}
		if err := os.Chtimes(at, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Write(t.Context(), dir, key, []Part{{"a", 64}}, make([]byte, 64)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, old)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%s is still there: %v", old, err)
	}
	for _, f := range append(stays, name) {
		if _, err := os.Stat(filepath.Join(dir, f)); err != nil {
			t.Error(err)
		}
	}
}
