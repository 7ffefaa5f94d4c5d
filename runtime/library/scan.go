package library

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxFiles = 100_000 // that a folder is searched for
	maxDepth = 8
)

// scan returns the models below root, which may be a link. Hidden folders are not searched. name gets a model's stem as
// a path below root, with slashes, and its quantization. Files that end in one of also are models of their own.
func scan(root string, name func(rel, quant string) string, also ...string) []Model {
	found := find(root, also)
	there := map[string]bool{}
	var all []Model
	add := func(g Group, problem string) {
		m := Model{Name: name(g.Stem, g.Quant), Path: filepath.Join(root, filepath.FromSlash(g.Files[0])), Problem: problem}
		m.Stem = path.Base(g.Stem)
		for _, f := range g.Files {
			info := found.infos[f]
			m.Bytes += info.Size()
			if m.Modified = later(m.Modified, info.ModTime()); len(g.Files) > 1 {
				m.Files = append(m.Files, filepath.Join(root, filepath.FromSlash(f)))
			}
		}
		there[g.Stem] = true
		all = append(all, m)
	}
	underWay := Groups(found.unfinished)
	pending := map[string]bool{} // stems
	for _, g := range underWay {
		pending[g.Stem] = true
	}
	for _, g := range Groups(found.whole) {
		switch {
		case g.Missing == "":
			add(g, "")
		case pending[g.Stem]:
			add(g, Unfinished)
		default:
			add(g, path.Base(g.Missing)+" is missing")
		}
	}
	for _, g := range underWay {
		if !there[g.Stem] {
			add(g, Unfinished)
		}
	}
	for _, f := range found.lones {
		add(Group{Stem: strings.TrimSuffix(f, path.Ext(f)), Files: []string{f}}, "")
	}
	return all
}

// files are those of models below a folder, as paths with slashes, without the ending of those that are being fetched.
type files struct {
	infos      map[string]fs.FileInfo
	whole      []string // in the form GGUF
	unfinished []string // the same, being fetched
	lones      []string // models of their own
}

// find searches a folder for files in the form GGUF, and for those that end in one of also.
func find(root string, also []string) *files {
	all := &files{infos: map[string]fs.FileInfo{}}
	seen := 0
	_ = filepath.WalkDir(root+string(filepath.Separator), func(p string, d fs.DirEntry, err error) error {
		if seen++; seen > maxFiles {
			return fs.SkipAll
		}
		rel, relErr := filepath.Rel(root, p)
		if err != nil || relErr != nil || rel == "." {
			return nil
		}
		rel = filepath.ToSlash(rel)
		hidden := strings.HasPrefix(d.Name(), ".")
		if d.IsDir() {
			if hidden || strings.Count(rel, "/") >= maxDepth {
				return fs.SkipDir
			}
			return nil
		}
		if !hidden {
			all.add(p, rel, also)
		}
		return nil
	})
	return all
}

// add adds the file at p, if it is one of a model.
func (f *files) add(p, rel string, also []string) {
	file, part := strings.CutSuffix(rel, ".part")
	ext := strings.ToLower(path.Ext(file))
	lone := slices.Contains(also, ext) && !part
	if ext != ".gguf" && !lone {
		return
	}
	info, err := os.Stat(p) // files of snapshots are links
	if err != nil || !info.Mode().IsRegular() {
		return
	}
	switch {
	case lone:
		f.lones = append(f.lones, file)
	case part:
		f.unfinished = append(f.unfinished, file)
	default:
		f.whole = append(f.whole, file)
	}
	if f.infos[file] == nil { // a new one may be on its way beside a file
		f.infos[file] = info
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
