// Package keep keeps what engines have of prompts in a folder, over restarts. A file is there whole or not at all, and
// has a keyed sum: what is damaged, or was written by others, is dropped with a line. Beyond a number of bytes those go
// that were not used for longest.
package keep

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/private"
)

// Store is such a folder.
type Store struct {
	c    *private.Cache
	most int64
	said func(line string)

	mu   sync.Mutex
	full atomic.Bool // nothing is written any more
}

// Open opens a folder, and makes it if it is not there. said gets lines for people.
func Open(dir string, most int64, said func(line string)) (*Store, error) {
	c, err := private.OpenFolder(dir, "prompts")
	if err != nil {
		return nil, err
	}
	s := &Store{c: c, most: most, said: said}
	c.Bound(most)
	return s, nil
}

// Of is what the folder has of one plan, whose digest this is: an engine.Keeper.
func (s *Store) Of(digest string) *Plan { return &Plan{s, digest + "-"} }

// Plan is a part of a folder.
type Plan struct {
	s      *Store
	prefix string
}

// Has implements engine.Keeper.
func (p *Plan) Has(name string) bool { return p.s.Has(p.prefix + name) }

// Read implements engine.Keeper.
func (p *Plan) Read(name string, bytes int64) []byte { return p.s.Read(p.prefix+name, bytes) }

// Write implements engine.Keeper.
func (p *Plan) Write(name string, data []byte) { p.s.Write(p.prefix+name, data) }

// Use implements engine.Keeper.
func (p *Plan) Use(names []string) {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = p.prefix + name
	}
	p.s.Use(all)
}

// Has says whether there is a file.
func (s *Store) Has(name string) bool {
	info, err := os.Lstat(s.c.Path(name))
	return err == nil && info.Mode().IsRegular()
}

// Read returns the data of a file; nil if it is not there, or damaged, or of another length: then it is dropped.
func (s *Store) Read(name string, bytes int64) []byte {
	data := s.c.Read(name)
	if int64(len(data)) == bytes && data != nil {
		return data
	}
	if s.Has(name) {
		err := os.Remove(s.c.Path(name))
		s.said(fmt.Sprintf("%s is damaged and dropped%s", s.c.Path(name), because(err)))
	}
	return nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// Write writes a file. Behind the first failure, such as a full disk, nothing more is written.
func (s *Store) Write(name string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.full.Load() || int64(len(data)) > s.most {
		return
	}
	if err := s.c.Write(name, data); err != nil {
		s.full.Store(true)
		s.said(fmt.Sprintf("prompts are not kept from now on: %v", err))
		return
	}
	s.c.Bound(s.most)
}

// Use notes that files are wanted, the first most.
func (s *Store) Use(names []string) {
	now := time.Now()
	for i, name := range names {
		at := now.Add(-time.Duration(i) * time.Millisecond)
		_ = os.Chtimes(s.c.Path(name), at, at) // one that is gone is not wanted any more
	}
}
