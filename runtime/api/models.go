package api

import (
	"strings"
	"time"
)

// modelJSON is a row of GET /v1/models.
type modelJSON struct {
	ID      string         `json:"id"`
	Object  string         `json:"object"`
	Created int64          `json:"created"`
	OwnedBy string         `json:"owned_by"`
	Parent  *string        `json:"parent"`
	MaxLen  int            `json:"max_model_len"`
	State   string         `json:"state"`
	Status  modelStatus    `json:"status"`
	Error   string         `json:"error,omitempty"` // of a broken model: why
	Meta    map[string]any `json:"meta,omitempty"`
}

// modelStatus is the state as llama-server has it, when it serves several models: a broken one is unloaded, and has
// failed.
type modelStatus struct {
	Value  string `json:"value"`
	Failed bool   `json:"failed,omitempty"`
}

func statusOf(state string) modelStatus {
	if state == broken {
		return modelStatus{"unloaded", true}
	}
	return modelStatus{Value: state}
}

func (s *Server) models() []modelJSON {
	loaded := map[*Served]*Model{}
	s.pool.each(func(served *Served, m *Model) { loaded[served] = m })
	all := []modelJSON{}
	for _, served := range s.pool.all() {
		state, why := s.pool.state(served)
		for i, name := range served.Names {
			row := modelJSON{ID: name, Object: "model", Created: served.Made.Unix(), OwnedBy: "zincc", MaxLen: served.Ctx, State: state, Status: statusOf(state), Error: why}
			if i > 0 {
				row.Parent = &served.Names[0]
			}
			if m := loaded[served]; m != nil {
				h := m.Header
				row.MaxLen = h.Ctx
				row.Meta = map[string]any{
					"arch": h.Model.Arch, "name": h.Model.Name, "n_vocab": h.Model.Vocab, "n_params": h.Model.Parameters,
					"n_ctx": h.Ctx, "slots": h.Slots, "kv": h.KV, "target": h.Target, "device": m.Device, "fingerprint": m.fingerprint(),
				}
			}
			all = append(all, row)
		}
	}
	return all
}

// anthropicModel is a row of the list in Anthropic's form.
type anthropicModel struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Display string `json:"display_name"`
	Created string `json:"created_at"`
}

func anthropicModelOf(m modelJSON) anthropicModel {
	return anthropicModel{"model", m.ID, m.ID, time.Unix(m.Created, 0).UTC().Format(time.RFC3339)}
}

// anthropic says whether the client speaks Anthropic's API, where a path is of several.
func (c *call) anthropic() bool { return c.r.Header.Get("anthropic-version") != "" }

func handleModels(c *call) error {
	if c.anthropic() {
		list := struct {
			Data  []anthropicModel `json:"data"`
			First *string          `json:"first_id"`
			Last  *string          `json:"last_id"`
			More  bool             `json:"has_more"`
		}{Data: []anthropicModel{}}
		for _, m := range c.s.models() {
			list.Data = append(list.Data, anthropicModelOf(m))
		}
		if n := len(list.Data); n > 0 {
			list.First, list.Last = &list.Data[0].ID, &list.Data[n-1].ID
		}
		return c.reply(list)
	}
	return c.reply(struct {
		Object string      `json:"object"`
		Data   []modelJSON `json:"data"`
	}{"list", c.s.models()})
}

func handleModel(c *call) error {
	id := strings.TrimSuffix(c.r.PathValue("id"), "/")
	for _, m := range c.s.models() {
		if m.ID == id && c.anthropic() {
			return c.reply(anthropicModelOf(m))
		}
		if m.ID == id {
			return c.reply(m)
		}
	}
	_, err := c.s.pool.find(id)
	return err
}
