package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/library"
	"github.com/zincc-dev/zincc/runtime/pull"
)

// lookAgain is how often folders are searched for what has come, changed or gone.
const lookAgain = 2 * time.Second

// shelf is what the arguments of serve name: files, which stay, and folders, whose models come and go.
type shelf struct {
	s       *serveFlags
	fixed   []*api.Served
	folders []folder
	server  *api.Server // nil until there is one

	offering sync.Mutex // so that no older look comes later

	mu    sync.Mutex
	known map[string]*shelved // by path
}

// folder is one of those that are searched.
type folder struct {
	dir  string // into which models are fetched
	list func() []library.Model
}

// shelved is a model of a folder as it was seen last.
type shelved struct {
	stamp  string
	served *api.Served
	model  library.Model
	dir    string // of its folder
}

// shelf finds what to serve. Without arguments that is the library.
func (s *serveFlags) shelf(ctx context.Context, args []string) (*shelf, error) {
	sh := &shelf{s: s, known: map[string]*shelved{}}
	if len(args) == 0 {
		l, err := library.Open("")
		if err != nil {
			return nil, err
		}
		sh.folders = append(sh.folders, folder{l.Dir, l.List})
	}
	isDir := func(arg string) bool {
		info, err := os.Stat(arg)
		return err == nil && info.IsDir()
	}
	switch one := len(args) == 1 && !isDir(args[0]); {
	case !one && len(s.names) > 0:
		return nil, cli.Usagef("--name is for one model")
	case !one && s.plan.model != "":
		return nil, cli.Usagef("--model is for one plan")
	}
	for _, arg := range args {
		if isDir(arg) {
			if _, err := os.ReadDir(arg); err != nil {
				return nil, err
			}
			sh.folders = append(sh.folders, folder{arg, func() []library.Model { return library.Folder(arg) }})
			continue
		}
		m, err := models.Find(ctx, arg)
		if err != nil {
			return nil, err
		}
		served, err := s.served(m)
		if err != nil {
			return nil, err
		}
		for _, other := range sh.fixed {
			if slices.Contains(other.Names, served.Names[0]) {
				return nil, cli.Usagef("%s and %s are both called %s", other.Path, m.Path, served.Names[0])
			}
		}
		sh.fixed = append(sh.fixed, served)
	}
	return sh, nil
}

// look returns what is served now. What came, went or is broken is logged once. A model that has not changed is the
// same Served.
func (sh *shelf) look() []*api.Served {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	all := slices.Clone(sh.fixed)
	taken := map[string]string{} // path by name
	for _, m := range all {
		for _, name := range m.Names {
			taken[name] = m.Path
		}
	}
	seen := map[string]*shelved{}
	for _, in := range sh.folders {
		for _, m := range in.list() {
			if m.Problem == library.Unfinished || seen[m.Path] != nil || taken[m.Name] == m.Path {
				continue
			}
			e, known := sh.known[m.Path]
			if stamp := stampOf(m); !known || e.stamp != stamp {
				e = &shelved{stamp, sh.inspect(m, known), m, in.dir}
				if strings.HasPrefix(m.Name, "hf.co/") && taken[m.Stem] == "" { // what the file is called is shorter
					e.served.Names = append(e.served.Names, m.Stem)
				}
			}
			seen[m.Path] = e
			if other := taken[e.served.Names[0]]; other != "" {
				if !known {
					sh.s.log.Warn("left out", "model", m.Path, "why", fmt.Sprintf("%s has its name", other))
				}
				continue
			}
			for _, name := range e.served.Names {
				taken[name] = m.Path
			}
			all = append(all, e.served)
		}
	}
	for path := range sh.known {
		if seen[path] == nil {
			sh.s.log.Info("gone", "model", path)
		}
	}
	sh.known = seen
	return all
}

// stampOf changes when a file of the model does.
func stampOf(m library.Model) string {
	return fmt.Sprint(m.Name, m.Bytes, m.Modified.UnixNano(), m.Problem)
}

// inspect looks at a model of a folder. One that is broken is served as such.
func (sh *shelf) inspect(m library.Model, changed bool) *api.Served {
	var err error
	var served *api.Served
	if m.Problem != "" {
		err = fmt.Errorf("%s", m.Problem)
	} else {
		served, err = sh.s.served(m)
	}
	if err != nil {
		why := printable.Line(err.Error())
		sh.s.log.Warn("left out", "model", m.Path, "why", why)
		return &api.Served{Names: []string{m.Name}, Path: m.Path, Made: m.Modified, Broken: why}
	}
	sh.s.log.Info("found", "model", m.Path, "name", served.Names[0], "changed", changed)
	return served
}

// watch offers the server what the folders have, again and again, until ctx ends.
func (sh *shelf) watch(ctx context.Context) {
	tick := time.NewTicker(lookAgain)
	defer tick.Stop()
	for len(sh.folders) > 0 {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			sh.offer()
		}
	}
}

// offer has the server serve what the folders have now.
func (sh *shelf) offer() {
	sh.offering.Lock()
	defer sh.offering.Unlock()
	sh.server.Offer(sh.look())
}

// library is where clients may have models fetched and deleted: nil without a folder.
func (sh *shelf) library() api.Library {
	if len(sh.folders) == 0 {
		return nil
	}
	return sh
}

// Pull fetches a model into the first folder, and serves it.
func (sh *shelf) Pull(ctx context.Context, name string, progress func(api.Pulling)) error {
	ref, err := library.ParseRef(name)
	if err != nil {
		return err
	}
	c, err := pull.New(sh.folders[0].dir)
	if err != nil {
		return err
	}
	c.Said = func(line string) { sh.s.log.Info("pull", "model", name, "line", printable.Line(line)) }
	c.Progress = func(p pull.Progress) { progress(api.Pulling(p)) }
	if _, err := c.Pull(ctx, ref); err != nil {
		return err
	}
	sh.offer()
	return nil
}

// Delete removes the files of a model of a folder, and serves it no more.
func (sh *shelf) Delete(_ context.Context, name string) error {
	sh.mu.Lock()
	var found *shelved
	for _, e := range sh.known {
		if slices.Contains(e.served.Names, name) {
			found = e
		}
	}
	sh.mu.Unlock()
	if found == nil {
		return fmt.Errorf("%s: it is no model of a folder", name)
	}
	l := library.Library{Dir: found.dir}
	if err := l.Remove(found.model); err != nil {
		return err
	}
	sh.offer()
	return nil
}

// served looks at a plan or a model, and says how to open it.
func (s *serveFlags) served(found library.Model) (*api.Served, error) {
	path := found.Path
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	names := s.names
	if len(names) == 0 {
		stem := filepath.Base(path)
		if s, _, _, split := library.Part(stem); split {
			stem = s
		}
		stem = strings.TrimSuffix(strings.TrimSuffix(stem, ".bin"), ".gguf")
		names = []string{stem}
		if found.Name != "" {
			names[0] = found.Name
		}
	}
	m := &api.Served{
		Names: names, Path: path, Made: info.ModTime(), Bytes: info.Size(),
		Open: func(ctx context.Context) (*api.Model, error) { return s.open(ctx, path, names[0]) },
	}
	if gguf.Is(path) {
		f, err := gguf.Open(path)
		if err != nil {
			return nil, err
		}
		return m, f.Close() // what its plan will take is known when it is there
	}
	plan, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	m.Ctx, m.Bytes = plan.Header.Ctx, plan.Require.Memory
	return m, nil
}
