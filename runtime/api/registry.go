package api

import (
	"fmt"
	"slices"
	"strings"
)

// all returns what is served now.
func (p *pool) all() []*Served {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.served)
}

// find returns the model of that name. An empty name is that of the only model that is not broken.
func (p *pool) find(name string) (*Served, error) {
	var names []string
	var only *Served
	for _, s := range p.all() {
		if slices.Contains(s.Names, name) {
			if s.Broken != "" {
				return nil, &Error{Kind: unavailable, Param: "model", Code: "model_broken", Message: fmt.Sprintf("model %q is broken: %s", name, s.Broken)}
			}
			return s, nil
		}
		if s.Broken == "" {
			names, only = append(names, s.Names[0]), s
		}
	}
	if name == "" && len(names) == 1 {
		return only, nil
	}
	message := fmt.Sprintf("there is no model %q; there are %s", name, strings.Join(names, ", "))
	if len(names) == 0 {
		message = "there is no model yet"
	}
	return nil, &Error{Kind: notFound, Param: "model", Code: "model_not_found", Message: message}
}

// broken is the state of a model whose file is, or that failed to load.
const broken = "broken"

// state says of a model whether it is loaded, loading, unloaded or broken, and of a broken one why.
func (p *pool) state(s *Served) (state, why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.models[s]
	switch {
	case s.Broken != "":
		return broken, s.Broken
	case l == nil && p.failed[s] != nil:
		return broken, p.failed[s].Error()
	case l == nil:
		return "unloaded", ""
	case l.model == nil:
		return "loading", ""
	}
	return "loaded", ""
}

// Offer replaces what is served. Models that are in it as they were stay loaded; the others are unloaded when nobody
// uses them.
func (s *Server) Offer(served []*Served) {
	p := s.pool
	p.mu.Lock()
	p.served = slices.Clone(served)
	var gone []*loaded
	for m, l := range p.models {
		if !slices.Contains(served, m) {
			l.withdrawn = true
			gone = append(gone, l)
		}
	}
	for m := range p.failed {
		if !slices.Contains(served, m) {
			delete(p.failed, m)
		}
	}
	p.mu.Unlock()
	p.wake()
	for _, l := range gone {
		p.leave(l)
	}
}

// drop unloads a model that does not work any more, when nobody uses it.
func (p *pool) drop(l *loaded) {
	p.mu.Lock()
	l.withdrawn = true
	p.mu.Unlock()
	p.leave(l)
}

// leave unloads a model that is no longer served, if nobody uses it.
func (p *pool) leave(l *loaded) {
	p.mu.Lock()
	now := l.withdrawn && l.users == 0 && l.model != nil && !l.closing && !p.closed
	if now {
		l.closing = true
	}
	p.mu.Unlock()
	if now {
		go p.unload(l)
	}
}
