package pull

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/library"
)

const (
	workers = 4
	// reserve is what a disk keeps free.
	reserve = 64 << 20
	magic   = "GGUF"
)

// errWhole: the server sends no ranges.
var errWhole = errors.New("the server sends no ranges")

// file fetches one file, unless it is there.
func (c *Client) file(ctx context.Context, it item, w *watch) error {
	path := filepath.Join(c.Dir, it.place)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	unlock, err := c.lock(ctx, it)
	if err != nil {
		return err
	}
	defer unlock()
	w.set("pulling", it.name)
	if c.complete(path, it, w) {
		w.done.Add(it.size)
		return nil
	}
	s := loadState(path, it, c.chunk)
	if s == nil {
		s = newState(it, c.chunk)
	}
	if err := c.room(path, s); err != nil {
		return err
	}
	err = c.fetch(ctx, path, it, s, w)
	if errors.Is(err, errWhole) {
		w.done.Add(-s.there())
		s = newState(it, it.size)
		err = c.fetch(ctx, path, it, s, w)
	}
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%s: the disk is full; %s of %s stay, and the same command goes on from there", c.Dir, table.Bytes(s.there()), table.Bytes(it.size))
	case err != nil && it.ref.Kind == library.HuggingFace:
		return c.hubError(it.ref, err)
	case err != nil:
		return err
	}
	return c.finish(path, it, w)
}

// lock waits until nobody else fetches the file.
func (c *Client) lock(ctx context.Context, it item) (unlock func(), err error) {
	dir := filepath.Join(c.Dir, ".locks")
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	l := flock.New(filepath.Join(dir, strings.ReplaceAll(filepath.ToSlash(it.place), "/", "--")))
	ok, err := l.TryLock()
	if err == nil && !ok {
		c.Said(it.name + ": another program fetches it; waiting for that")
		_, err = l.TryLockContext(ctx, 100*time.Millisecond)
	}
	if err != nil {
		return nil, err
	}
	return func() { _ = l.Unlock() }, nil // the file stays: another may wait for it
}

// complete says whether the file is there as it should be. One of which nothing is noted is read.
func (c *Client) complete(path string, it item, w *watch) bool {
	info, err := os.Stat(path)
	if err != nil || info.Size() != it.size {
		return false
	}
	if r, ok := library.ReadRecord(path); ok && r.Bytes == it.size {
		if it.sum.Kind == "sha256" {
			return r.SHA256 == it.sum.Hex
		}
		return r.ETag != "" && r.ETag == it.version()
	}
	if it.sum == (sum{}) {
		return false
	}
	w.set("checking", it.name)
	hex, err := it.sum.check(path, it.size, func(int) {})
	if err != nil {
		return false
	}
	return it.record(hex).Write(path) == nil
}

// version tells apart the contents that a place has had.
func (it *item) version() string {
	if it.sum.Kind == "git" {
		return it.sum.Hex
	}
	return it.etag
}

func (it *item) record(sha256 string) library.Record {
	return library.Record{From: it.ref.String(), Bytes: it.size, SHA256: sha256, ETag: it.version()}
}

// room fails if what is missing of the file does not fit the disk.
func (c *Client) room(path string, s *state) error {
	free, err := c.free(filepath.Dir(path))
	if err != nil {
		return fmt.Errorf("%s: free space: %w", c.Dir, err)
	}
	if need := s.Size - s.there(); free-reserve < need {
		return fmt.Errorf("%s: %s are needed, and the disk has %s free", c.Dir, table.Bytes(need+reserve), table.Bytes(free))
	}
	return nil
}

// fetch fills the file, several pieces at a time.
func (c *Client) fetch(ctx context.Context, path string, it item, s *state, w *watch) (err error) {
	f, err := os.OpenFile(library.PartPath(path), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Truncate(s.Size), s.save(path)); err != nil {
		f.Close()
		return err
	}
	w.done.Add(s.there())
	saved, stop := make(chan struct{}), make(chan struct{})
	go func() { // what a killed process leaves is at most a second old
		defer close(saved)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				_ = s.save(path) // tried again at the end
			case <-stop:
				return
			}
		}
	}()
	defer func() {
		close(stop)
		<-saved
		syncErr := errors.Join(f.Sync(), f.Close())
		if saveErr := s.save(path); err == nil {
			err = errors.Join(syncErr, saveErr)
		}
	}()
	next := make(chan int)
	g, group := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(next)
		for i := range s.Done {
			if from, to := s.piece(i); s.have(i) == to-from {
				continue
			}
			select {
			case next <- i:
			case <-group.Done():
				return nil
			}
		}
		return nil
	})
	for range workers {
		g.Go(func() error {
			for i := range next {
				err := c.again(group, func() (bool, error) {
					before := s.have(i)
					err := c.piece(group, f, it, s, i, w)
					return s.have(i) > before, err
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// piece asks for what is missing of a piece, and writes what arrives.
func (c *Client) piece(ctx context.Context, f *os.File, it item, s *state, i int, w *watch) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	silent := time.AfterFunc(c.stall, func() { cancel(fmt.Errorf("the server is silent for %s", c.stall)) })
	defer silent.Stop()
	from, to := s.piece(i)
	from += s.have(i)
	header := http.Header{}
	if whole := len(s.Done) == 1 && from == 0; !whole {
		header.Set("Range", fmt.Sprintf("bytes=%d-%d", from, to-1))
	}
	a, err := c.get(ctx, it.url, header)
	if err != nil {
		return because(ctx, err)
	}
	defer a.Body.Close()
	if err := a.status(http.StatusOK, http.StatusPartialContent); err != nil {
		return err
	}
	if err := it.same(a); err != nil {
		return err
	}
	switch {
	case a.StatusCode == http.StatusPartialContent:
		first, last, size, err := contentRange(a.Header.Get("Content-Range"))
		if err != nil || first != from || last >= to || size != s.Size {
			return refuse("%s: asked for bytes %d-%d of %d, the server sends %q", it.name, from, to-1, s.Size, a.Header.Get("Content-Range"))
		}
	case len(s.Done) > 1 || from > 0:
		if len(s.Done) > 1 {
			return refusal{errWhole}
		}
		if _, err := io.CopyN(io.Discard, progressing{a.Body, silent, c.stall}, from); err != nil { // what is there already
			return because(ctx, err)
		}
	case a.ContentLength >= 0 && a.ContentLength != s.Size:
		return refuse("%s: the server sends %d bytes, and said %d", it.name, a.ContentLength, s.Size)
	}
	body := progressing{a.Body, silent, c.stall}
	buf := make([]byte, 256<<10)
	for from < to {
		n, err := io.ReadFull(body, buf[:min(int64(len(buf)), to-from)])
		if n > 0 {
			if from == 0 && n >= len(magic) && string(buf[:len(magic)]) != magic {
				return refuse("%s: the server sends no GGUF file", it.name)
			}
			if _, err := c.writeAt(f, buf[:n], from); err != nil {
				return refusal{err}
			}
			from += int64(n)
			s.add(i, int64(n))
			w.done.Add(int64(n))
		}
		if err != nil {
			return because(ctx, err)
		}
	}
	return nil
}

// same fails if the server has another file now than the one that is being fetched.
func (it *item) same(a *answer) error {
	changed := it.etag != "" && validator(a.Header) != it.etag
	if etag := strings.Trim(a.linked.Get("X-Linked-Etag"), `"`); it.sum.Kind == "sha256" && sha256Hex.MatchString(etag) {
		changed = changed || etag != it.sum.Hex
	}
	if size := a.linked.Get("X-Linked-Size"); size != "" {
		changed = changed || size != strconv.FormatInt(it.size, 10)
	}
	if changed {
		return refuse("%s: the file has changed on the server: pull it again", it.name)
	}
	return nil
}

// finish checks the sum of a file that has all its bytes, and gives it its name.
func (c *Client) finish(path string, it item, w *watch) error {
	part := library.PartPath(path)
	w.set("checking", it.name)
	hex, err := it.sum.check(part, it.size, func(int) {})
	if err != nil {
		return errors.Join(fmt.Errorf("%s: wrong bytes, thrown away: %w", it.name, err), os.Remove(part), os.Remove(library.StatePath(path)))
	}
	if err := os.Rename(part, path); err != nil {
		return err
	}
	return errors.Join(it.record(hex).Write(path), os.Remove(library.StatePath(path)))
}

// progressing gives the server another while with each byte that it sends.
type progressing struct {
	io.Reader
	silent *time.Timer
	stall  time.Duration
}

func (p progressing) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n > 0 {
		p.silent.Reset(p.stall)
	}
	return n, err
}

// because is the cause for which ctx ended, if it did, else err.
func because(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return plain(err)
}

// contentRange reads "bytes FIRST-LAST/SIZE".
func contentRange(s string) (first, last, size int64, err error) {
	bad := refuse("the server sends a range that cannot be read: %q", s)
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	a, b, ok3 := strings.Cut(span, "-")
	if !ok || !ok2 || !ok3 {
		return 0, 0, 0, bad
	}
	for _, n := range []struct {
		to   *int64
		text string
	}{{&first, a}, {&last, b}, {&size, total}} {
		if *n.to, err = strconv.ParseInt(n.text, 10, 64); err != nil || *n.to < 0 {
			return 0, 0, 0, bad
		}
	}
	if first > last || last >= size {
		return 0, 0, 0, bad
	}
	return first, last, size, nil
}
