package api

import (
	"fmt"
	"net/http"
)

// stored returns the response that a path names, which this server made for the same key and keeps.
func (c *call) stored() (*kept, error) {
	id := c.r.PathValue("id")
	k := c.s.store.get(c.key(id))
	if k == nil || k.reply == nil {
		return nil, &Error{Kind: notFound, Code: "response_not_found", Message: fmt.Sprintf("there is no response %q: the server keeps those of late, in memory, unless store is false", id)}
	}
	return k, nil
}

func handleGetResponse(c *call) error {
	if c.r.URL.Query().Get("stream") == "true" {
		return unsupported("stream", "stream: a response that is kept is not streamed again")
	}
	k, err := c.stored()
	if err != nil {
		return err
	}
	return c.reply(k.reply)
}

func handleDeleteResponse(c *call) error {
	k, err := c.stored()
	if err != nil {
		return err
	}
	c.s.store.remove(k)
	return c.reply(struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Deleted bool   `json:"deleted"`
	}{c.r.PathValue("id"), "response", true})
}

// handleResponseNone is for what OpenAI's service does with responses, and this server does not.
func handleResponseNone(c *call) error {
	return &Error{Kind: kind{http.StatusNotImplemented, "invalid_request_error", "invalid_request_error"}, Code: "unsupported", Message: c.r.Method + " " + c.r.URL.Path +
		" is not supported: answers come with their request, and conversations are neither listed nor compacted"}
}
