// Package planstore keeps the plans that zincrun has zincc make of model files on its own, in the
// user's cache folder: one for each model, device, driver, size and compiler.
package planstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/disk"
	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/internal/compiler"
)

// Store is a folder of plans; without one, plans are made for one use.
type Store struct {
	Dir  string
	None error // why there is no folder
}

// Open returns the store of this user: zincc/plans in the cache folder.
func Open() (*Store, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to keep plans in: %w", err)
	}
	return &Store{Dir: filepath.Join(dir, "zincc", "plans")}, nil
}

// Wish is what a plan is made for.
type Wish struct {
	Model  string // path of a GGUF file
	Device string // auto, cuda, cuda:I, vulkan, vulkan:I, cpu or host
	// Flags are further flags of `zincc compile`, such as --ctx=8k.
	Flags []string
	Watch progress.Watcher // of compiling
}

// Plan returns the plan for w, which is trusted, and its path. A plan that is kept is taken if it is whole and was
// recorded as made here. Else zincc makes one. said gets the lines that zincc writes on standard error, and why a plan
// is made.
func (s *Store) Plan(ctx context.Context, w Wish, said func(line string)) (*plans.Plan, string, error) {
	zincc, err := compiler.Find()
	if err != nil {
		return nil, "", fmt.Errorf("%s: a model file must be compiled first, and %w", w.Model, err)
	}
	choice, _, err := device.Select(w.Device)
	if err != nil {
		return nil, "", err
	}
	target := choice.Name()
	if w.Device == "auto" {
		target = "native" // zincc says why it is nothing faster
	}
	f, err := gguf.OpenHeader(w.Model)
	if err != nil {
		return nil, "", err
	}
	fingerprint := f.Fingerprint()
	f.Close()
	compilerSum, err := compiler.Sum(zincc)
	if err != nil {
		return nil, "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%x|%s|%q|%x", fingerprint, choice.Identity(), w.Flags, compilerSum))
	name := fmt.Sprintf("%.64s-%x.bin", strings.TrimSuffix(filepath.Base(w.Model), filepath.Ext(w.Model)), key[:6])
	path := filepath.Join(s.Dir, name)
	if s.Dir != "" {
		switch p, err := kept(path, hex.EncodeToString(fingerprint[:])); {
		case err == nil:
			choice.Warm()
			return p, path, nil
		case !errors.Is(err, fs.ErrNotExist):
			said(fmt.Sprintf("%s: the kept plan is made again: %v", path, err))
		}
	}
	return s.compile(ctx, said, zincc, name, &w, append([]string{"--target=" + target}, w.Flags...))
}

// kept reads a plan that was kept. The error says why it cannot be used.
func kept(path, fingerprint string) (*plans.Plan, error) {
	p, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	if err = trust.Check(p); err == nil && p.Header.Model.Fingerprint != fingerprint {
		err = errors.New("it is of another model")
	}
	if err != nil {
		p.Close()
		return nil, err
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // used: Prune goes by that
	return p, nil
}

// compile has zincc make the plan of that name.
func (s *Store) compile(ctx context.Context, said func(line string), zincc, name string, w *Wish, flags []string) (*plans.Plan, string, error) {
	start, model := time.Now(), w.Model
	dir := s.Dir
	keep := s.None
	if dir != "" {
		if keep = private.Make(dir); keep == nil {
			keep = disk.Writable(dir)
		}
	}
	if keep != nil {
		var err error
		if dir, err = os.MkdirTemp("", "zincc"); err != nil {
			return nil, "", fmt.Errorf("no folder for the plan of %s: set XDG_CACHE_HOME or TMPDIR to one that can be written: %v, and %w", model, keep, err)
		}
		defer os.RemoveAll(dir) // the plan is in memory by then
	}
	path := filepath.Join(dir, name)
	absolute, err := filepath.Abs(model)
	if err != nil {
		return nil, "", err
	}
	task := w.Watch.Begin("compiling")
	defer task.Done()
	out, err := compiler.Run(ctx, said, task, zincc, append([]string{"compile", "--json", "--force", "--output=" + path}, append(flags, "--", absolute)...)...)
	if err != nil {
		return nil, "", err
	}
	var report struct{ SHA256 plans.Digest }
	if err := json.Unmarshal(out, &report); err != nil {
		return nil, "", fmt.Errorf("%s compile: not a report: %w", zincc, err)
	}
	trust.Accept(report.SHA256) // also where zincc could not record it
	p, err := plans.Read(path)
	if err != nil {
		return nil, "", err
	}
	line := fmt.Sprintf("compiled %s in %s, ", filepath.Base(model), time.Since(start).Round(100*time.Millisecond))
	if keep != nil {
		line += fmt.Sprintf("for now: it is not kept: %v", keep)
	} else {
		line += "kept as " + filepath.Base(path)
	}
	task.Done()
	said(line)
	return p, path, nil
}
