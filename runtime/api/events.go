package api

import (
	"time"
)

// modelEvent is what GET /models/sse tells: a model has another state, or there are other models.
type modelEvent struct {
	Model string          `json:"model"`
	Event string          `json:"event"`
	Data  *modelEventData `json:"data,omitempty"`
}

type modelEventData struct {
	Status string `json:"status"`
	Exit   int    `json:"exit_code,omitempty"` // of a model that did not load
}

// handleModelEvents tells of the states of models as they change, as llama-server does when it serves several.
func handleModelEvents(c *call) error {
	s := c.s
	out := newStream(c.w)
	was, _ := s.pool.states()
	if err := out.comment(); err != nil {
		return gone(err)
	}
	idle := time.NewTicker(s.o.KeepAlive)
	defer idle.Stop()
	for {
		now, changed := s.pool.states()
		for _, e := range eventsOf(was, now) {
			if err := out.data("", e); err != nil {
				return gone(err)
			}
		}
		was = now
		select {
		case <-c.r.Context().Done():
			return c.r.Context().Err()
		case <-s.pool.life.Done():
			return nil
		case <-s.drain:
			return nil
		case <-changed:
		case <-idle.C:
			if err := out.comment(); err != nil {
				return gone(err)
			}
		}
	}
}

// A stateOf is the state of a model, by the name it has in replies.
type stateOf struct{ model, state string }

// states returns the states of all models, and what is closed when these may have changed.
func (p *pool) states() (all []stateOf, changed <-chan struct{}) {
	p.mu.Lock()
	changed = p.changed
	p.mu.Unlock()
	for _, served := range p.all() {
		state, _ := p.state(served)
		all = append(all, stateOf{served.Names[0], state})
	}
	return all, changed
}

// eventsOf returns what has changed.
func eventsOf(was, now []stateOf) (events []modelEvent) {
	before := map[string]string{}
	for _, s := range was {
		before[s.model] = s.state
	}
	for _, s := range now {
		old, known := before[s.model]
		delete(before, s.model)
		if known && old != s.state {
			e := modelEvent{s.model, "status_change", &modelEventData{Status: statusOf(s.state).Value}}
			if s.state == broken {
				e.Data.Exit = 1
			}
			events = append(events, e)
		}
	}
	if len(was) != len(now) || len(before) > 0 {
		events = append(events, modelEvent{Model: "*", Event: "models_reload"})
	}
	return events
}
