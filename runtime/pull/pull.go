// Package pull fetches models into a models folder: from hubs that speak Hugging Face's protocol, from registries that
// speak Ollama's, and from URLs. Nothing that arrives is trusted: sizes are bounded by the disk's free space before
// work begins, names lead nowhere but below the folder, sums are checked, a token goes to no host but its own, and
// every wait has an end. What was fetched of a file stays when a pull ends early, and the next one goes on from there.
package pull

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/internal/disk"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime/library"
)

// The services that are asked where the environment names no others.
const (
	defaultHub      = "https://huggingface.co"
	defaultRegistry = "https://registry.ollama.ai"
)

// Client fetches models into Dir.
type Client struct {
	Dir string
	// Hub is Hugging Face's or that of another service with its protocol, Token one of an account there, or "".
	Hub, Token string
	// Registry is Ollama's or another with its protocol.
	Registry string
	Said     func(line string) // gets what is left out or waited for
	Progress func(p Progress)  // is called some times a second

	http *http.Client
	// What tests change.
	chunk   int64
	pause   time.Duration
	stall   time.Duration
	free    func(dir string) (int64, error)
	writeAt func(f *os.File, p []byte, off int64) (int, error)
}

// Progress is how far a pull is.
type Progress struct {
	Step        string // "pulling" or "checking"
	File        string // the one at work
	Done, Total int64  // bytes of all files
}

// New returns the client of this user for a models folder: HF_ENDPOINT, HF_TOKEN and ZINCRUN_REGISTRY name another hub,
// an account's token, and another registry.
func New(dir string) (*Client, error) {
	c := &Client{Dir: dir, Hub: defaultHub, Token: os.Getenv("HF_TOKEN"), Registry: defaultRegistry}
	for _, v := range []struct {
		name string
		to   *string
	}{{"HF_ENDPOINT", &c.Hub}, {"ZINCRUN_REGISTRY", &c.Registry}} {
		value := strings.TrimSuffix(os.Getenv(v.name), "/")
		if value == "" {
			continue
		}
		if !strings.Contains(value, "://") {
			value = "https://" + value
		}
		u, err := url.Parse(value)
		if err != nil || u.Host == "" || u.User != nil || !library.Safe(u) {
			return nil, fmt.Errorf("%s: want the https URL of a server, have %q", v.name, os.Getenv(v.name))
		}
		*v.to = value
	}
	c.setDefaults()
	return c, nil
}

func (c *Client) setDefaults() {
	c.http = newHTTP()
	c.chunk, c.pause, c.stall = 32<<20, time.Second, 30*time.Second
	c.free, c.writeAt = disk.Free, (*os.File).WriteAt
	c.Said, c.Progress = func(string) {}, func(Progress) {}
}

// item is a file to fetch.
type item struct {
	ref   library.Ref
	url   string
	place string // below the models folder
	size  int64  // -1: not known yet
	sum   sum    // may be empty
	etag  string
	name  string // for people
}

// Pull fetches all files of a model and returns the path of the first. What is there already stays as it is.
func (c *Client) Pull(ctx context.Context, ref library.Ref) (path string, err error) {
	resolve := map[library.Kind]func(context.Context, library.Ref) ([]item, error){
		library.HuggingFace: c.fromHub, library.Registry: c.fromRegistry, library.Web: c.fromURL,
	}[ref.Kind]
	items, err := resolve(ctx, ref)
	if err != nil {
		return "", named(ref, err)
	}
	w := &watch{c: c}
	for _, it := range items {
		w.total.Add(max(it.size, 0))
	}
	done := w.run()
	defer done()
	for _, it := range items {
		if err := c.file(ctx, it, w); err != nil {
			return "", named(ref, err)
		}
	}
	path = filepath.Join(c.Dir, items[0].place)
	f, err := gguf.Open(path)
	if err != nil {
		if items[0].sum == (sum{}) { // nothing says that these are the bytes that were meant
			err = errors.Join(fmt.Errorf("%w: thrown away", err), os.Remove(path))
		}
		return "", named(ref, err)
	}
	return path, f.Close()
}

// named puts what was asked for in front of an error.
func named(ref library.Ref, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return fmt.Errorf("%s: %w", ref, err)
}

// watch counts the bytes of all files of a pull.
type watch struct {
	c           *Client
	done, total atomic.Int64
	step        atomic.Pointer[[2]string] // step and file
}

func (w *watch) set(step, file string) { w.step.Store(&[2]string{step, file}) }

// run reports until the end.
func (w *watch) run() (stop func()) {
	ended, gone := make(chan struct{}), make(chan struct{})
	w.set("pulling", "")
	go func() {
		defer close(gone)
		tick := time.NewTicker(200 * time.Millisecond)
		defer tick.Stop()
		for last := false; !last; {
			select {
			case <-tick.C:
			case <-ended:
				last = true
			}
			s := w.step.Load()
			w.c.Progress(Progress{Step: s[0], File: s[1], Done: w.done.Load(), Total: w.total.Load()})
		}
	}()
	return func() { close(ended); <-gone }
}
