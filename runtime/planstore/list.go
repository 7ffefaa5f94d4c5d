package planstore

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

// Entry is a plan of the store.
type Entry struct {
	Path   string    `json:"path"`
	Model  string    `json:"model"` // the file that it was made of
	Target string    `json:"target"`
	Ctx    int       `json:"ctx"`
	Slots  int       `json:"slots"`
	KV     string    `json:"kv"`
	Bytes  int64     `json:"bytes"`
	Used   time.Time `json:"used"`
	// Gone says that the model is no longer there, or why the plan cannot be read.
	Gone string `json:"gone,omitempty"`
}

// List returns the plans, the last used first.
func (s *Store) List() ([]Entry, error) {
	files, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []Entry
	for _, f := range files {
		info, err := f.Info()
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(f.Name()) != ".bin" {
			continue
		}
		e := Entry{Path: filepath.Join(s.Dir, f.Name()), Bytes: info.Size(), Used: info.ModTime()}
		e.read()
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Or(b.Used.Compare(a.Used), cmp.Compare(a.Path, b.Path)) })
	return all, nil
}

func (e *Entry) read() {
	p, err := plans.Read(e.Path)
	if err != nil {
		e.Gone = err.Error()
		return
	}
	defer p.Close()
	h := &p.Header
	e.Model, e.Target, e.Ctx, e.Slots, e.KV = h.Model.Path, h.Target, h.Ctx, h.Slots, h.KV
	if _, err := os.Stat(e.Model); err != nil {
		e.Gone = "the model is no longer there"
	}
}

// Prune removes the plans that were not used since then, and those whose model is gone. It
// returns what it removed.
func (s *Store) Prune(since time.Time) ([]Entry, error) {
	all, err := s.List()
	if err != nil {
		return nil, err
	}
	var removed []Entry
	for _, e := range all {
		if e.Gone == "" && e.Used.After(since) {
			continue
		}
		if err := os.Remove(e.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return removed, err
		}
		removed = append(removed, e)
	}
	return removed, nil
}
