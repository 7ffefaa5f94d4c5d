// Package keep keeps what engines have of prompts in memory, and in a folder, over restarts. A file is there whole or
// not at all, and has a keyed sum: what is damaged, or was written by others, is dropped with a line. Beyond a number
// of bytes those go that were not used for longest.
package keep

import (
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/private"
)

// Store is such a folder. Several processes may write one: each beside the first may take it over its bound, by an
// eighth of the bound and a file, until one that writes looks again.
type Store struct {
	c    *private.Cache
	most int64
	said func(line string)

	mu   sync.Mutex
	room int64       // how many bytes it writes before it looks again at what is in the folder
	full atomic.Bool // nothing is written any more
}

// Open opens a folder, and makes it if it is not there. said gets lines for people, from several goroutines at once.
func Open(dir string, most int64, said func(line string)) (*Store, error) {
	c, err := private.OpenFolder(dir, "prompts")
	if err != nil {
		return nil, err
	}
	s := &Store{c: c, most: most, said: said}
	s.look()
	return s, nil
}

// look holds the folder to its bound. It lists all files, and so must not happen for each that is written: where it has
// to free anything, it frees about an eighth of the bound. No more than that is written before the next look, even if
// more is free: other processes may have written, too.
func (s *Store) look() {
	more := s.most / 8
	s.room = min(s.most-s.c.Bound(s.most, more), more)
}

// Of is what memory and a folder, one of which may be nil, have of one plan, whose digest this is: an engine.Keeper.
// What is read from the folder is in memory then, too.
func Of(m *Memory, s *Store, digest string) *Plan { return &Plan{m, s, digest} }

// Plan is a part of them.
type Plan struct {
	m      *Memory
	s      *Store
	digest string
}

func (p *Plan) name(piece string) string { return p.digest + "-" + piece }

// Has implements engine.Keeper.
func (p *Plan) Has(name string) bool {
	name = p.name(name)
	return p.m != nil && p.m.Has(name) || p.s != nil && p.s.Has(name)
}

// Read implements engine.Keeper.
func (p *Plan) Read(name string, bytes int64) (data []byte) {
	name = p.name(name)
	if p.m != nil {
		data = p.m.Read(name, bytes)
	}
	if data == nil && p.s != nil {
		if data = p.s.Read(name, bytes); data != nil && p.m != nil {
			p.m.Write(name, data)
		}
	}
	return data
}

// Write implements engine.Keeper.
func (p *Plan) Write(name string, data []byte) {
	name = p.name(name)
	if p.m != nil {
		p.m.Write(name, data)
	}
	if p.s != nil {
		p.s.Write(name, data)
	}
}

// Use implements engine.Keeper.
func (p *Plan) Use(names []string, ago time.Duration) {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = p.name(name)
	}
	if p.m != nil {
		p.m.Use(all, ago)
	}
	if p.s != nil {
		p.s.Use(all, ago)
	}
}

// Held implements engine.Holding: how much is in memory.
func (p *Plan) Held() (pieces int, bytes int64) {
	if p.m == nil {
		return 0, 0
	}
	h := p.m.held(p.digest)
	return h.pieces, h.bytes
}

// Lasts implements engine.Holding.
func (p *Plan) Lasts() bool { return p.s != nil }

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
	size := int64(len(data)) + private.Added
	if s.full.Load() || size > s.most {
		return
	}
	if err := s.c.Write(name, data); err != nil {
		s.full.Store(true)
		s.said(fmt.Sprintf("prompts are not kept from now on: %v", err))
		return
	}
	if s.room -= size; s.room < 0 {
		s.look()
	}
}

// Use notes that files were wanted so long ago, the first most.
func (s *Store) Use(names []string, ago time.Duration) {
	now := time.Now().Add(-ago)
	for i, name := range names {
		at := now.Add(-time.Duration(i) * time.Millisecond)
		_ = os.Chtimes(s.c.Path(name), at, at) // one that is gone is not wanted any more
	}
}
