package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/model"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// find returns the models that the arguments name: plans, model files, or directories of these.
func (s *serveFlags) find(args []string) ([]*api.Served, error) {
	if len(args) == 0 {
		return nil, cli.Usagef("name a plan or a model, several, or a directory of them")
	}
	var paths []string
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil {
			return nil, err
		}
		if !info.IsDir() {
			paths = append(paths, arg)
			continue
		}
		found, err := modelsIn(arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, found...)
	}
	if len(s.names) > 0 && len(paths) > 1 {
		return nil, cli.Usagef("--name is for one model, and these are %d", len(paths))
	}
	if s.plan.model != "" && len(paths) > 1 {
		return nil, cli.Usagef("--model is for one plan, and these are %d", len(paths))
	}
	var all []*api.Served
	for _, path := range paths {
		m, err := s.served(path)
		if err != nil {
			return nil, err
		}
		for _, other := range all {
			if slices.Contains(other.Names, m.Names[0]) {
				return nil, cli.Usagef("%s and %s are both called %s", other.Path, path, m.Names[0])
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// shard is how the names of files end that hold a part of a model.
var shard = regexp.MustCompile(`-(\d+)-of-\d+\.gguf$`)

// modelsIn returns the plans and models of a directory; of a model in several files the first.
func modelsIn(dir string) ([]string, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, f := range files {
		name := f.Name()
		part := shard.FindStringSubmatch(name)
		if f.IsDir() || part != nil && strings.Trim(part[1], "0") != "1" {
			continue
		}
		if strings.HasSuffix(name, ".bin") || strings.HasSuffix(name, ".gguf") {
			found = append(found, filepath.Join(dir, name))
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s: the directory has no plans (*.bin) and no models (*.gguf)", dir)
	}
	return found, nil
}

// served looks at a plan or a model, and says how to open it.
func (s *serveFlags) served(path string) (*api.Served, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	names := s.names
	if len(names) == 0 {
		name := shard.ReplaceAllString(filepath.Base(path), "")
		names = []string{strings.TrimSuffix(strings.TrimSuffix(name, ".bin"), ".gguf")}
	}
	m := &api.Served{
		Names: names, Path: path, Made: info.ModTime(), Bytes: info.Size(),
		Open: func(ctx context.Context) (*api.Model, error) { return s.open(ctx, path) },
	}
	if gguf.Is(path) {
		return m, nil // what its plan will take is known when it is there
	}
	plan, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	defer plan.Close()
	m.Ctx, m.Bytes = plan.Header.Ctx, plan.Require.Memory
	return m, nil
}

// open loads a model.
func (s *serveFlags) open(ctx context.Context, path string) (_ *api.Model, err error) {
	options := s.plan.options()
	if options.Several = true; s.slots > 0 {
		options.Compile = append(options.Compile, "--slots="+strconv.Itoa(s.slots))
	}
	options.Said = func(line string) { s.log.Info("open", "model", path, "line", printable.Line(line)) }
	o, err := model.Open(ctx, path, options)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			o.Close()
		}
	}()
	tok, err := o.Tokenizer()
	if err != nil {
		return nil, err
	}
	draws, err := s.answers.sampling.over(sample.Defaults(o.Plan.Vocab.Sampling))
	if err != nil {
		return nil, err
	}
	digest, _ := o.Plan.Digest()
	m := &api.Model{
		Header: o.Plan.Header, Hash: digest.String(), Device: o.Exec.Device(), Tokenizer: tok, Defaults: draws,
		Memory: api.MemoryOf(o.Plan), Close: func() error { o.Close(); return nil },
	}
	if runtime.Embeds(o.Plan) {
		m.NoChat = runtime.ErrVectors.Error()
		v, err := engine.NewVectors(o.Plan, o.Exec)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		m.Engine = v
		return m, nil
	}
	// A model without a template that can be used still continues text.
	if t, err := s.answers.open(o.Plan); err != nil && s.answers.template != "" {
		return nil, err
	} else if err != nil {
		m.NoChat = err.Error()
		s.log.Warn("no chat", "model", path, "why", m.NoChat)
	} else {
		m.Template = t
		if note := t.Note(); note != "" {
			s.log.Warn("chat template", "model", path, "note", note)
		}
	}
	if m.Engine, err = newEngine(o, tok, s.itl); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func newEngine(o *model.Opened, tok *text.Tokenizer, itl time.Duration) (api.Engine, error) {
	e, err := engine.New(o.Plan, o.Exec, tok, engine.Options{ITL: itl})
	if err != nil {
		return nil, err // not a nil engine in an interface
	}
	return e, nil
}
