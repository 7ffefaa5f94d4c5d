package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/model"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// open loads a model; name is what it is called.
func (s *serveFlags) open(ctx context.Context, path, name string) (_ *api.Model, err error) {
	options := s.plan.options()
	options.Watch = progress.From(ctx)
	if options.Several = true; s.slots > 0 {
		options.Compile = append(options.Compile, "--slots="+strconv.Itoa(s.slots))
	}
	options.Memory = s.poolRoom
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
	digest, known := o.Plan.Digest()
	m := &api.Model{
		Header: o.Plan.Header, Hash: digest.String(), Device: o.Exec.Device(), Tokenizer: tok, Defaults: draws,
		Memory: api.MemoryOf(o.Plan), Close: func() error { o.Close(); return nil },
	}
	if runtime.Embeds(o.Plan) {
		m.NoChat, m.Rank = runtime.NoTokens(o.Plan).Error(), o.Plan.Vocab.RankTemplate
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
	eo := engine.Options{ITL: s.itl, ReuseAnswers: s.reuse.answers, NoDrafts: s.noDrafts}
	if known {
		eo.Keeper = s.kept.of(m.Hash, o.Exec)
		if why := engine.Keeps(o.Plan); why != nil && s.kept.store != nil {
			s.log.Warn("cache-dir", "model", path, "why", why.Error())
		}
	}
	if events := s.events.publisher; events != nil {
		feed := events.Feed(name, m.Hash)
		eo.Watch = feed
		m.Close = func() error { feed.Close(); o.Close(); return nil }
	}
	if m.Engine, err = newEngine(o, tok, eo); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, nil
}

func newEngine(o *model.Opened, tok *text.Tokenizer, options engine.Options) (api.Engine, error) {
	e, err := engine.New(o.Plan, o.Exec, tok, options)
	if err != nil {
		return nil, err // not a nil engine in an interface
	}
	return e, nil
}
