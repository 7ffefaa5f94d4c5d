package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// handleHealth says whether requests are taken. With deep=1 each loaded model also generates a
// token, if it has nothing else to do.
func handleHealth(c *call) error {
	if c.s.draining.Load() {
		return errDraining
	}
	if err := c.s.ready(); err != nil {
		return err
	}
	if c.r.URL.Query().Get("deep") != "1" {
		return c.reply(status{"ok"})
	}
	ctx, cancel := context.WithTimeout(c.r.Context(), 10*time.Second)
	defer cancel()
	var failed error
	c.s.pool.each(func(served *Served, m *Model) {
		if st := m.Engine.Stats(); running(st)+st.Waiting > 0 || failed != nil {
			return
		}
		if e, ok := m.Engine.(Embedder); ok {
			if _, err := e.Embed(ctx, [][]int32{{0}}); err != nil {
				failed = &Error{Kind: internal, Message: "health: " + served.Names[0] + ": " + err.Error()}
			}
			return
		}
		for event, err := range m.Engine.Generate(ctx, engine.Request{Prompt: []int32{0}, Max: 1, TopLogprobs: -1, NoCache: true, Sampling: m.Defaults}) {
			if err == nil && event.Done != nil {
				err = event.Done.Err
			}
			if err != nil {
				failed = &Error{Kind: internal, Message: "health: " + served.Names[0] + ": " + err.Error()}
			}
		}
	})
	if failed != nil {
		return failed
	}
	return c.reply(status{"ok"})
}

type status struct {
	Status string `json:"status"`
}

// ready is an error where a server of one model does not have it yet; one of several, or of a folder, has none until it
// is asked.
func (s *Server) ready() error {
	all := s.pool.all()
	if s.o.Folder || len(all) != 1 {
		return nil
	}
	switch state, why := s.pool.state(all[0]); state {
	case "loaded":
		return nil
	case "broken":
		return &Error{Kind: unavailable, Code: "model_broken", Message: fmt.Sprintf("the model %s is broken: %s", all[0].Names[0], why)}
	}
	return errLoading(all[0].Names[0], s.pool.stage(all[0]))
}

func handleLive(c *call) error { return c.reply(status{"alive"}) }

func handleVersion(c *call) error {
	return c.reply(struct {
		Version string `json:"version"`
	}{c.s.o.Version})
}

// handleDrain begins the end of the server; only keys of administrators may, or this computer
// where there are no keys.
func handleDrain(c *call) error {
	if c.user == nil && !c.s.o.Loopback || c.user != nil && !c.user.Admin {
		return &Error{Kind: forbidden, Message: "this needs the key of an administrator"}
	}
	c.s.draining.Store(true)
	c.s.once.Do(func() { close(c.s.drain) })
	writeJSON(c.w, http.StatusAccepted, status{"draining"})
	return nil
}
