package keep

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func open(t *testing.T, dir string, most int64) (*Store, *[]string) {
	t.Helper()
	var lines []string
	s, err := Open(dir, most, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	return s, &lines
}

// TestDamage changes and cuts off each byte of a file: it is dropped with a line, and never read.
func TestDamage(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "a", "b")
	s, lines := open(t, dir, 1<<20)
	data := []byte("rows of a prompt")
	s.Write("name", data)
	path := filepath.Join(dir, "name")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := open(t, dir, 1<<20) // behind a restart
	if have := again.Read("name", int64(len(data))); !bytes.Equal(have, data) || !again.Has("name") {
		t.Errorf("%q", have)
	}
	bad := [][]byte{nil, append(bytes.Clone(good), 0)}
	for i := range good {
		flipped := bytes.Clone(good)
		flipped[i] ^= 0x40
		bad = append(bad, flipped, good[:i])
	}
	for _, b := range bad {
		*lines = nil
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if have := s.Read("name", int64(len(data))); have != nil || s.Has("name") || len(*lines) != 1 || !strings.Contains((*lines)[0], path) {
			t.Fatalf("%q is read of %q; %q", have, b, *lines)
		}
	}
	*lines = nil
	if s.Read("name", 1) != nil || len(*lines) > 0 {
		t.Error("what is not there is damaged")
	}
	// Under another name, or of another user, it is not what was written.
	if err := os.WriteFile(filepath.Join(dir, "other"), good, 0o600); err != nil {
		t.Fatal(err)
	}
	if s.Read("other", int64(len(data))) != nil {
		t.Error("a file is read under another name")
	}
	s.Write("name", data)
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	if foreign, _ := open(t, dir, 1<<20); foreign.Read("name", int64(len(data))) != nil {
		t.Error("another user's file is read")
	}
}

// TestBound: those that were not used for longest go, and what a prompt begins with goes last.
func TestBound(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, _ := open(t, t.TempDir(), 4*(1000+32))
	data := make([]byte, 1000)
	names := []string{"1", "2", "3", "4"}
	for _, name := range names {
		s.Write(name, data)
		time.Sleep(2 * time.Millisecond)
	}
	s.Use(names)
	time.Sleep(5 * time.Millisecond)
	for i, gone := range []string{"4", "3", "2"} {
		s.Write("more"+gone, data)
		if s.Has(gone) || !s.Has("1") {
			t.Errorf("behind %d more: %s is there: %v, the first: %v", i+1, gone, s.Has(gone), s.Has("1"))
		}
		time.Sleep(5 * time.Millisecond)
	}
	s.Write("huge", make([]byte, 5000))
	if s.Has("huge") || !s.Has("1") {
		t.Error("what is larger than the bound is written")
	}
}

// TestNoRoom: behind a failure nothing more is written, and one line says so.
func TestNoRoom(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "gone")
	s, lines := open(t, dir, 1<<20)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	s.Write("a", []byte("b"))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s.Write("c", []byte("d"))
	if s.Has("a") || s.Has("c") || len(*lines) != 1 || !strings.Contains((*lines)[0], "not kept from now on") {
		t.Errorf("%q", *lines)
	}
}
