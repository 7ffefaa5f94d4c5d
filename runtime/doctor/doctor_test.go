package doctor

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/internal/processor"
	"github.com/zincc-dev/zincc/runtime/cuda"
	"github.com/zincc-dev/zincc/runtime/device"
)

var update = flag.Bool("update", false, "write what is found into testdata")

// guarded is a tree of files of which some may not be opened: those without permissions.
type guarded struct{ fstest.MapFS }

func (g guarded) Open(name string) (fs.File, error) {
	if f := g.MapFS[name]; f != nil && f.Mode == denied {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return g.MapFS.Open(name)
}

const denied = fs.ModeCharDevice

// machine is a computer of testdata. Its files are below root/; one that holds "-> x" is a link, one that holds
// "denied" may not be opened.
func machine(t *testing.T, a *txtar.Archive) (m *Machine, want string) {
	t.Helper()
	tree := fstest.MapFS{}
	m = &Machine{Root: guarded{tree}, System: &device.System{CUDAErr: cuda.ErrNoDriver}, CPUs: 16}
	for _, f := range a.Files {
		text := strings.TrimSpace(string(f.Data))
		name, isFile := strings.CutPrefix(f.Name, "root/")
		target, isLink := strings.CutPrefix(text, "-> ")
		var err error
		switch {
		case isFile && isLink:
			tree[name] = &fstest.MapFile{Data: []byte(target), Mode: fs.ModeSymlink}
		case isFile && text == "denied":
			tree[name] = &fstest.MapFile{Mode: denied}
		case isFile:
			tree[name] = &fstest.MapFile{Data: f.Data, Mode: 0o444}
		case f.Name == "vulkan":
			err = json.Unmarshal(f.Data, &m.System.Vulkan)
		case f.Name == "cuda":
			m.System.CUDAErr = nil
			err = json.Unmarshal(f.Data, &m.System.CUDA)
		case f.Name == "cuda error":
			m.System.CUDAErr = errors.New(text)
		case f.Name == "vulkan error":
			m.System.VulkanErr = errors.New(text)
		case f.Name == "folder":
			m.Folders = append(m.Folders, Folder{Name: "plans that are kept", Path: "/home/gopher/.cache/zincc", Set: "set XDG_CACHE_HOME"})
			at := &m.Folders[len(m.Folders)-1]
			if _, err = fmt.Sscan(text, &at.Free); err != nil {
				at.Err, at.Free, err = &fs.PathError{Op: "write", Path: at.Path, Err: errors.New(text)}, -1, nil
			}
		case f.Name == "compiler":
			m.Compiler = errors.New(text)
		case f.Name == "want":
			want = string(f.Data)
		default:
			t.Fatalf("nothing is called %s", f.Name)
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
	}
	return m, want
}

// TestLook looks at the computers in testdata.
func TestLook(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	seen := map[string]bool{}
	for _, path := range files {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			m, want := machine(t, a)
			var b strings.Builder
			for _, f := range Look(m) {
				seen[f.Check] = true
				fmt.Fprintf(&b, "%s: %s: %s\n", f.State, f.Check, strings.ReplaceAll(f.Found, processor.Name(), "PROCESSOR"))
				if f.Do != "" {
					fmt.Fprintf(&b, "\t%s\n", f.Do)
				}
				if f.State == Problem && f.Do == "" {
					t.Errorf("%s: nothing to do about %s", f.Check, f.Found)
				}
			}
			if b.String() == want {
				return
			}
			if !*update {
				t.Errorf("found\n%swant\n%s", b.String(), want)
				return
			}
			a.Files[len(a.Files)-1].Data = []byte(b.String())
			if err := os.WriteFile(path, txtar.Format(a), 0o666); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, c := range checks {
		if !seen[c.name] {
			t.Errorf("no computer of testdata has something for %s", c.name)
		}
	}
}

// TestHere: this computer can be looked at, whatever it is.
func TestHere(t *testing.T) {
	for _, f := range Look(Here()) {
		if f.Check == "" || f.Found == "" || f.State == "" {
			t.Errorf("%+v", f)
		}
	}
}
