package objects

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

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

// archive opens the objects of an architecture in this tree.
func archive(t *testing.T, arch string) *Archive {
	t.Helper()
	a, err := Open(os.DirFS(arch))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestHeld checks that this program holds objects for its own architecture alone.
func TestHeld(t *testing.T) {
	for _, m := range llvm.Machines {
		found := false
		for key := range archive(t, m.Arch).files {
			code, err := Held(m, key)
			if err != nil {
				t.Fatal(err)
			}
			found = code != nil
			break
		}
		if own := m.Arch == runtime.GOARCH; own != found {
			t.Errorf("a program for %s has objects of %s: %v", runtime.GOARCH, m.Name, found)
		}
		if code, err := Held(m, strings.Repeat("0", 64)); code != nil || err != nil {
			t.Errorf("an object that is not held: %d bytes, %v", len(code), err)
		}
	}
}

// TestArchives reads every object of all architectures, and bounds what a kernel that changes adds to the tree's
// history: the file that it is in, of each architecture.
func TestArchives(t *testing.T) {
	most := map[string]int64{} // by a family, in any architecture
	for _, arch := range []string{"amd64", "arm64"} {
		a := archive(t, arch)
		if len(a.files) == 0 {
			t.Errorf("no objects of %s", arch)
		}
		for key := range a.files {
			if code, err := a.Find(key); err != nil {
				t.Fatal(err)
			} else if _, err := object.Read(code); err != nil {
				t.Errorf("%s %s: %v", arch, key, err)
			}
		}
		largest := map[string]int64{}
		list, err := os.ReadDir(arch)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			info, err := f.Info()
			if err != nil {
				t.Fatal(err)
			}
			family, _, _ := strings.Cut(f.Name(), "-")
			largest[family] = max(largest[family], info.Size())
		}
		for family, n := range largest {
			most[family] += n
		}
	}
	for family, n := range most {
		if n > 500_000 {
			t.Errorf("a change of one kernel %s adds up to %d bytes", family, n)
		}
	}
}

// TestFiles checks that objects are found under their keys, that what several machines have is there once, and that a
// kernel which changes, comes or goes changes few files.
func TestFiles(t *testing.T) {
	kernel := func(i int) string { return fmt.Sprintf("rows %03d", i) }
	made := func(i int, machine, version string) Object {
		code := bytes.Repeat([]byte(kernel(i)+version), 1000)
		if i%3 == 0 { // each machine has its own
			code = append(code, machine...)
		}
		return Object{kernel(i), machine, Key(&llvm.Machine{Name: machine}, kernel(i)+version), code}
	}
	var list []Object
	for i := range 200 {
		list = append(list, made(i, "m", ""), made(i, "n", ""))
	}
	list = append(list, Object{"expert_sum", "m", strings.Repeat("1", 64), []byte("other")})
	files := func(list []Object) map[string][]byte {
		f, err := Files(list)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	before := files(list)
	if len(before) < 10 || len(before) > 60 {
		t.Errorf("%d files", len(before))
	}
	differ := func(after map[string][]byte) int {
		n := 0
		for name, data := range after {
			if !bytes.Equal(data, before[name]) {
				n++
			}
		}
		return n
	}
	turned := slices.Clone(list)
	slices.Reverse(turned)
	if n := differ(files(turned)); n > 0 {
		t.Errorf("the same objects make %d other files", n)
	}
	changed := slices.Clone(list)
	changed[80], changed[81] = made(40, "m", "b"), made(40, "n", "b")
	if n := differ(files(changed)); n != 1 {
		t.Errorf("a kernel that changes changes %d files", n)
	}
	for at := 0; at < 200; at += 23 {
		if n := differ(files(slices.Delete(slices.Clone(list), 2*at, 2*at+2))); n > 2 {
			t.Errorf("kernel %d goes, and %d files change", at, n)
		}
	}
	folder := fstest.MapFS{}
	for name, data := range before {
		folder[name] = &fstest.MapFile{Data: data}
	}
	a, err := Open(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if have, err := a.Find(o.Key); err != nil || !bytes.Equal(have, o.Code) {
			t.Fatalf("%s for %s: %d bytes, %v", o.Kernel, o.Machine, len(have), err)
		}
	}
	if n := len(a.files[list[2].Key].sizes); n >= 2*len(a.files)/len(before) {
		t.Errorf("%d objects of a file: those that two machines share are there twice", n)
	}
	if have, err := a.Find(strings.Repeat("2", 64)); have != nil || err != nil {
		t.Errorf("what is not there: %q, %v", have, err)
	}
	if _, err := Files([]Object{{"one", "m", "no key", nil}}); err == nil {
		t.Error("a bad key is written")
	}
}

// FuzzOpen: whatever a file holds, it is refused or has objects of the length that it says.
func FuzzOpen(f *testing.F) {
	files, err := Files([]Object{{"one", "m", strings.Repeat("1", 64), []byte("code")}, {"one", "n", strings.Repeat("2", 64), []byte("more")}})
	if err != nil {
		f.Fatal(err)
	}
	for _, data := range files {
		f.Add(data)
		f.Add(data[:len(data)/2])
	}
	f.Add([]byte{255, 255, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := Open(fstest.MapFS{"one.objects": {Data: data}})
		if err != nil {
			return
		}
		for key, of := range a.files {
			if code, err := a.Find(key); err == nil && len(code) != of.sizes[of.at[key]] {
				t.Errorf("%d bytes, want %d", len(code), of.sizes[of.at[key]])
			}
		}
	})
}
