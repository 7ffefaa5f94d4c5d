package doctor

import (
	"os"
	"path/filepath"
	"runtime"

	"github.com/zincc-dev/zincc/internal/disk"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/internal/compiler"
	"github.com/zincc-dev/zincc/runtime/library"
)

// Here is this computer, as this user sees it.
func Here() *Machine {
	m := &Machine{Root: os.DirFS("/"), System: device.Here(), CPUs: runtime.NumCPU()}
	_, m.Compiler = compiler.Find()
	cache, err := os.UserCacheDir()
	if err == nil {
		cache = filepath.Join(cache, "zincc")
	}
	m.Folders = append(m.Folders, folder("plans that are kept", cache, "set XDG_CACHE_HOME, or HOME: without it every start compiles", err))
	models := ""
	l, err := library.Open("")
	if err == nil {
		models = l.Dir
	}
	m.Folders = append(m.Folders, folder("models that are pulled", models, "set ZINCRUN_MODELS, or give --models", err))
	return m
}

// folder looks at a folder, which need not be there yet.
func folder(name, path, set string, err error) Folder {
	f := Folder{Name: name, Path: path, Set: set, Free: -1, Err: err}
	if err != nil {
		f.Path = ""
		return f
	}
	f.Err = disk.Writable(path)
	if free, err := disk.Free(disk.Existing(path)); err == nil {
		f.Free = free
	}
	return f
}
