package private

import (
	"bytes"
	"crypto/sha256"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// user sets up a user's folders.
func user(t *testing.T) (cache, config string) {
	t.Helper()
	cache, config = t.TempDir(), t.TempDir()
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("XDG_CONFIG_HOME", config)
	return cache, config
}

func open(t *testing.T, name string) *Cache {
	t.Helper()
	c, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCache checks that a file is read where it was written, by the same user, as it was written.
func TestCache(t *testing.T) {
	cache, config := user(t)
	c := open(t, "objects/avx2")
	if c.Read("a") != nil {
		t.Error("a file that is not there is read")
	}
	want := []byte("machine code")
	if err := c.Write("a", want); err != nil {
		t.Fatal(err)
	}
	if have := open(t, "objects/avx2").Read("a"); !bytes.Equal(have, want) {
		t.Errorf("%q", have)
	}
	file, err := os.ReadFile(filepath.Join(cache, "zincc", "objects", "avx2", "a"))
	if err != nil {
		t.Fatal(err)
	}
	plant := func(name string, data []byte) {
		t.Helper()
		if err := os.WriteFile(c.Path(name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	plant("b", file)
	if c.Read("b") != nil {
		t.Error("a file under another name is read")
	}
	other := open(t, "cubins")
	if err := os.WriteFile(other.Path("a"), file, 0o600); err != nil {
		t.Fatal(err)
	}
	if other.Read("a") != nil {
		t.Error("a file of another cache is read")
	}
	for i := range file {
		bad := bytes.Clone(file)
		bad[i] ^= 4
		if plant("a", bad); c.Read("a") != nil {
			t.Errorf("byte %d changed: it is read", i)
		}
	}
	for n := range file {
		if plant("a", file[:n]); c.Read("a") != nil {
			t.Errorf("%d bytes of %d are read", n, len(file))
		}
	}
	plant("a", file)
	if err := os.Symlink(c.Path("a"), c.Path("link")); err != nil {
		t.Fatal(err)
	}
	if c.Read("link") != nil || c.Read("..") != nil {
		t.Error("what is no file is read")
	}
	if err := os.Remove(filepath.Join(config, "zincc", "key")); err != nil {
		t.Fatal(err)
	}
	if open(t, "objects/avx2").Read("a") != nil {
		t.Error("a file is read by somebody with another key")
	}
}

// TestFolders checks who may write to the folders, and who may read the key.
func TestFolders(t *testing.T) {
	cache, config := user(t)
	shared := filepath.Join(cache, "zincc")
	if err := os.Mkdir(shared, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Check(shared); err == nil || !strings.Contains(err.Error(), "others may write it") {
		t.Errorf("a folder that others write: %v", err)
	}
	c := open(t, "objects")
	for _, dir := range []string{shared, filepath.Join(shared, "objects"), filepath.Join(config, "zincc")} {
		if err := Check(dir); err != nil {
			t.Error(err)
		}
	}
	key := filepath.Join(config, "zincc", "key")
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 || info.Size() != keySize {
		t.Errorf("the key: %v, %v", info, err)
	}
	if err := c.Write("a", nil); err != nil || c.Read("a") == nil {
		t.Errorf("a file without a byte: %v", err)
	}
	for _, bad := range []func() error{
		func() error { return os.Chmod(key, 0o640) },
		func() error { return os.WriteFile(key, []byte("short"), 0o600) },
		func() error { os.Remove(key); return os.Symlink("/dev/zero", key) },
		func() error { os.Remove(key); return os.Mkdir(key, 0o700) },
	} {
		if err := bad(); err != nil {
			t.Fatal(err)
		}
		if _, err := Open("objects"); err == nil || !strings.Contains(err.Error(), "key: not a file of 32 bytes that only you can read") {
			t.Errorf("a bad key: %v", err)
		}
		os.Chmod(key, 0o600)
	}
	if os.Geteuid() == 0 { // who may give files away
		foreign := t.TempDir()
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{Check(foreign), Make(foreign)} {
			if err == nil || !strings.Contains(err.Error(), "belongs to user 12345") {
				t.Errorf("a folder of another user: %v", err)
			}
		}
	}
}

// TestBound holds that the files that are left are those that were written or read last, as many as are wanted.
func TestBound(t *testing.T) {
	user(t)
	c := open(t, "some")
	then := time.Now().Add(-time.Hour)
	for i, name := range []string{"a", "b", "c", "d"} {
		if err := c.Write(name, make([]byte, 100-sha256.Size)); err != nil {
			t.Fatal(err)
		}
		at := then.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(c.Path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(c.Path("folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	left := func() (all string) {
		for _, name := range []string{"a", "b", "c", "d", "folder"} {
			if _, err := os.Stat(c.Path(name)); err == nil {
				all += name + " "
			}
		}
		return all
	}
	if c.Read("a") == nil {
		t.Fatal("a is gone")
	}
	for _, step := range []struct {
		bytes int64
		want  string
	}{{400, "a b c d folder "}, {399, "a c d folder "}, {250, "a d folder "}, {1, "a folder "}} {
		if c.Bound(step.bytes, 0); left() != step.want {
			t.Errorf("of %d bytes there are left %s, want %s", step.bytes, left(), step.want)
		}
	}
}

// TestBoundFreesMore: where a file has to go, others go with it, as many as fit; where none has to, none goes.
func TestBoundFreesMore(t *testing.T) {
	user(t)
	c := open(t, "some")
	then := time.Now().Add(-time.Hour)
	for i := range 10 {
		name := string(rune('a' + i))
		if err := c.Write(name, make([]byte, 100-Added)); err != nil {
			t.Fatal(err)
		}
		at := then.Add(time.Duration(i) * time.Minute)
		if err := os.Chtimes(c.Path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ bytes, more, left int64 }{
		{1000, 500, 1000}, {999, 198, 900}, {899, 199, 700}, {700, 600, 700}, {699, 198, 600}, {550, 550, 100}, {1, 1, 100},
	} {
		left := c.Bound(step.bytes, step.more)
		entries, err := os.ReadDir(c.dir)
		if have := int64(100 * len(entries)); err != nil || left != step.left || have != left {
			t.Errorf("of %d bytes without %d there are left %d, said to be %d, want %d (%v)", step.bytes, step.more, have, left, step.left, err)
		}
		if c.Read("j") == nil {
			t.Fatal("the file used last is gone")
		}
	}
}

// TestBoundOfJumpingClock: where the clock has gone back, what is written and read since is used last all the same, and
// files of a time to come go first.
func TestBoundOfJumpingClock(t *testing.T) {
	user(t)
	c := open(t, "some")
	write := func(name string, ago time.Duration) {
		t.Helper()
		if err := c.Write(name, make([]byte, 100-sha256.Size)); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-ago)
		if err := os.Chtimes(c.Path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	write("to come", -24*time.Hour)
	write("later", -48*time.Hour)
	write("read", -time.Hour)
	write("old", time.Hour)
	if c.Read("read") == nil {
		t.Fatal("nothing is read")
	}
	write("new", time.Minute)
	for _, want := range []string{"new old read", "new read", "read"} {
		c.Bound(100*int64(len(strings.Fields(want))), 0)
		entries, err := os.ReadDir(c.dir)
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, e := range entries {
			left = append(left, e.Name())
		}
		if have := strings.Join(left, " "); have != want {
			t.Errorf("left are %s, want %s", have, want)
		}
	}
}
