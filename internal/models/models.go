// Package models finds what an argument of a command names: a model file, or a model of the library, which it fetches
// first if it is not here.
package models

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/runtime/library"
)

// Path returns the path of the model that an argument names: a file, or a model of the library. hf.co/ORG/REPO,
// NAME:TAG and URLs are fetched if they are not here.
func Path(ctx context.Context, arg string) (string, error) {
	m, err := Find(ctx, arg)
	return m.Path, err
}

// Find is Path with all that is known of the model; of a file that is its path.
func Find(ctx context.Context, arg string) (library.Model, error) {
	info, statErr := os.Stat(arg)
	if statErr == nil && info.IsDir() {
		return library.Model{}, fmt.Errorf("%s: this is a folder; name a file in it (zincrun serve takes folders)", arg)
	}
	if isPath(arg) && errors.Is(statErr, fs.ErrNotExist) {
		statErr = fmt.Errorf("%s: no such file%s", arg, beside(arg))
	}
	if statErr == nil || isPath(arg) {
		return library.Model{Path: arg}, statErr
	}
	l, err := library.Open("")
	if err != nil {
		return library.Model{}, err
	}
	m, err := l.Find(arg)
	if err == nil && m.Problem == "" {
		return m, nil
	}
	var none *library.NotFoundError
	if err != nil && !errors.As(err, &none) {
		return m, err
	}
	ref, refErr := library.ParseRef(arg)
	if refErr == nil && (ref.Kind != library.Registry || strings.Contains(arg, ":")) {
		path, err := Fetch(ctx, l.Dir, ref)
		return library.Model{Name: ref.String(), Path: path}, err
	}
	if err == nil {
		return m, fmt.Errorf("%s: %s", m.Name, m.Problem)
	}
	var names []string
	for _, m := range l.List() {
		last := m.Name[strings.LastIndexByte(m.Name, '/')+1:]
		repo, _, _ := strings.Cut(last, ":")
		names = append(names, m.Name, last, repo, m.Stem)
	}
	hint := "zincrun list has those that are here, zincrun pull fetches others"
	if near := cli.Nearest(arg, names); near != "" {
		hint = "did you mean " + near + "?"
	}
	return m, fmt.Errorf("%s: no such file, and no model of this name; %s", arg, hint)
}

// beside names a file in the folder of one that is not there, if somebody may have meant it.
func beside(path string) string {
	files, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return ""
	}
	var names []string
	for _, f := range files {
		names = append(names, f.Name())
	}
	near := cli.Nearest(filepath.Base(path), names)
	if near == "" {
		return ""
	}
	return "; did you mean " + filepath.Join(filepath.Dir(path), near) + "?"
}

// isPath says whether people mean a file, be it there or not.
func isPath(arg string) bool {
	if strings.HasPrefix(arg, "https://") || strings.HasPrefix(arg, "http://") || strings.HasPrefix(strings.ToLower(arg), "hf.co/") {
		return false
	}
	ext := strings.ToLower(filepath.Ext(arg))
	return filepath.IsAbs(arg) || strings.HasPrefix(arg, ".") || ext == ".gguf" || ext == ".bin"
}
