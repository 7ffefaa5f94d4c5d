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
	infos := map[string]fs.FileInfo{}
	var files, unfinished, lones []string
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
		file, part := strings.CutSuffix(rel, ".part")
		ext := strings.ToLower(path.Ext(file))
		lone := slices.Contains(also, ext) && !part
		if hidden || ext != ".gguf" && !lone {
			return nil
		}
		info, err := os.Stat(p) // files of snapshots are links
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if lone {
			lones = append(lones, file)
		} else if part {
			unfinished = append(unfinished, file)
		} else {
			files = append(files, file)
		}
		if infos[file] == nil { // a new one may be on its way beside a file
			infos[file] = info
		}
		return nil
	})
	there := map[string]bool{}
	var all []Model
	add := func(g Group, problem string) {
		m := Model{Name: name(g.Stem, g.Quant), Path: filepath.Join(root, filepath.FromSlash(g.Files[0])), Problem: problem}
		m.Stem = path.Base(g.Stem)
		for _, f := range g.Files {
			info := infos[f]
			m.Bytes += info.Size()
			if m.Modified = later(m.Modified, info.ModTime()); len(g.Files) > 1 {
				m.Files = append(m.Files, filepath.Join(root, filepath.FromSlash(f)))
			}
		}
		there[g.Stem] = true
		all = append(all, m)
	}
	underWay := Groups(unfinished)
	pending := map[string]bool{} // stems
	for _, g := range underWay {
		pending[g.Stem] = true
	}
	for _, g := range Groups(files) {
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
	for _, f := range lones {
		add(Group{Stem: strings.TrimSuffix(f, path.Ext(f)), Files: []string{f}}, "")
	}
	return all
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
