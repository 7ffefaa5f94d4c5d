package keep

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/internal/private"
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

// tick is how far behind the clock times of files may be: kernels give them the time of their last tick.
const tick = 20 * time.Millisecond

// TestBound: those that were not used for longest go, and what a prompt begins with goes last.
func TestBound(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	s, _ := open(t, t.TempDir(), 4*(1000+32))
	data := make([]byte, 1000)
	names := []string{"1", "2", "3", "4"}
	for _, name := range names {
		s.Write(name, data)
	}
	s.Use(names, 0)
	time.Sleep(tick)
	for i, gone := range []string{"4", "3", "2"} {
		s.Write("more"+gone, data)
		if s.Has(gone) || !s.Has("1") {
			t.Errorf("behind %d more: %s is there: %v, the first: %v", i+1, gone, s.Has(gone), s.Has("1"))
		}
		time.Sleep(tick)
	}
	s.Use([]string{"1"}, time.Hour) // it was passed
	s.Use([]string{"more2"}, 0)
	if s.Write("last", data); s.Has("1") || !s.Has("more2") || !s.Has("more4") {
		t.Error("what was wanted an hour ago stays")
	}
	s.Write("1", data)
	s.Write("huge", make([]byte, 5000))
	if s.Has("huge") || !s.Has("1") {
		t.Error("what is larger than the bound is written")
	}
}

// size is how many bytes the files of a folder have.
func size(t *testing.T, dir string) (sum int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum += info.Size()
	}
	return sum
}

// TestLooks: of 160 files that are written, few make the store list its folder, which is within its bound all the
// same, and not much below.
func TestLooks(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const file = 100 // bytes
	const most = 40 * file
	dir, looks := t.TempDir(), 0
	s, _ := open(t, dir, most)
	for i := range 160 {
		before := s.room
		s.Write(strconv.Itoa(i), make([]byte, file-private.Added))
		if s.room != before-file {
			looks++
		}
		if i%7 > 0 {
			continue
		}
		if have, least := size(t, dir), min(int64(i+1)*file, most-most/8); have > most || have < least {
			t.Fatalf("behind %d files there are %d bytes, want %d to %d", i+1, have, least, most)
		}
	}
	if want := 160 / 5; looks == 0 || looks > want {
		t.Errorf("%d looks, want at most %d", looks, want)
	}
}

// TestShared: a store that does not know what another has written takes the folder over its bound by an eighth and a
// file at most.
func TestShared(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	const file = 250 // bytes
	const most = 20 * file
	dir := t.TempDir()
	first, _ := open(t, dir, most)
	second, _ := open(t, dir, most)
	bound, above := int64(most), false
	for i := range 60 {
		s := first
		if i/20 == 1 {
			s, bound = second, most+most/8+file
		}
		s.Write(strconv.Itoa(i), make([]byte, file-private.Added))
		have := size(t, dir)
		if above = above || have > most; have > bound {
			t.Errorf("behind %d files there are %d bytes, want at most %d", i+1, have, bound)
		}
	}
	if !above {
		t.Error("the second store knew what the first one has written")
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

// TestMemory holds a memory and a folder beside it against what was written: a bound, what was used last, plans apart.
func TestMemory(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	m := NewMemory(3000)
	s, lines := open(t, t.TempDir(), 1<<20)
	p, other := Of(m, nil, "p"), Of(m, nil, "q")
	data := func(c byte) []byte { return bytes.Repeat([]byte{c}, 1000) }
	check := func(what string, k *Plan, want string, pieces int) {
		t.Helper()
		have := ""
		for _, name := range []string{"a", "b", "c", "d"} {
			d := k.Read(name, 1000)
			if k.Has(name) != (d != nil) || d != nil && !bytes.Equal(d, data(name[0])) {
				t.Errorf("%s: %s is there: %v, read as %.10q", what, name, k.Has(name), d)
			}
			if d != nil {
				have += name
			}
		}
		if n, size := k.Held(); have != want || n != pieces || size != int64(1000*pieces) {
			t.Errorf("%s: there are %s, %d of %d bytes, want %s", what, have, n, size, want)
		}
	}
	for _, name := range []string{"a", "b", "c"} {
		buffer := data(name[0])
		p.Write(name, buffer)
		clear(buffer) // its writer's own again
	}
	check("written", p, "abc", 3)
	check("another plan", other, "", 0)
	if p.Read("a", 999) != nil || p.Read("d", 1000) != nil {
		t.Error("what is of another length, or not there, is read")
	}
	p.Use([]string{"a", "c", "nothing"}, 0)
	p.Write("d", data('d'))
	check("b was not used for longest", p, "acd", 3)
	p.Write("d", data('d'))
	check("written again", p, "acd", 3)
	p.Use([]string{"d", "a"}, time.Hour)
	if p.Write("b", data('b')); p.Has("a") || !p.Has("d") {
		t.Error("what was wanted least goes last")
	}
	p.Use([]string{"d"}, time.Minute)
	p.Write("a", data('a'))
	check("what was wanted an hour ago, and then a minute", p, "abc", 3)
	p.Write("c", data('c'))
	p.Write("a", data('a'))
	p.Write("d", data('d'))
	check("as before", p, "acd", 3)
	p.Write("e", make([]byte, 3001))
	check("what is larger than all", p, "acd", 3)
	other.Write("a", data('a'))
	other.Write("b", data('b'))
	check("of another plan", other, "ab", 2)
	check("of both", p, "d", 1)

	both := Of(m, s, "r")
	both.Write("a", data('a'))
	for range 3 {
		p.Write("a", data('a'))
		p.Write("b", data('b'))
		p.Write("c", data('c'))
	}
	if n, _ := both.Held(); n != 0 || !both.Has("a") {
		t.Fatalf("%d pieces are in memory, in the folder: %v", n, both.Has("a"))
	}
	check("of the folder, and then in memory", both, "a", 1)
	if len(*lines) > 0 {
		t.Error(*lines)
	}
}

// TestUse holds the order of a memory against times that are sorted.
func TestUse(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		m := NewMemory(1000)
		all := []string{"a", "b", "c", "d", "e", "f"}
		used, now := map[string]int{}, 0
		for _, name := range all {
			now += 100
			m.Write(name, nil)
			used[name] = 1_000_000 + now
		}
		for range 20 {
			now += 100
			names := rapid.Permutation(all).Draw(r, "names")[:rapid.IntRange(0, len(all)).Draw(r, "wanted")]
			ago, at := time.Duration(0), 1_000_000+now
			if rapid.Bool().Draw(r, "long ago") {
				ago, at = time.Hour, now
			}
			m.Use(append(names, "nothing"), ago)
			for i, name := range names {
				used[name] = at - i
			}
			var have []string
			for e := m.order.Front(); e != nil; e = e.Next() {
				have = append(have, e.Value.(*remembered).name)
			}
			want := slices.SortedFunc(slices.Values(all), func(a, b string) int { return used[b] - used[a] })
			if !slices.Equal(have, want) {
				r.Fatalf("%v were wanted %v ago: the order is %v, want %v", names, ago, have, want)
			}
		}
	})
}
