package api

import (
	"context"
	"fmt"
)

// rendered is a prompt as the model gets it: what routers ask for that know which server holds which tokens. The form
// is vLLM's.
type rendered struct {
	RequestID string  `json:"request_id"`
	Tokens    []int32 `json:"token_ids"`
	Features  *string `json:"features"` // of images; always null
}

// handleChatRender answers POST /v1/chat/completions/render: the tokens of a conversation that /v1/chat/completions
// would read.
func handleChatRender(c *call) error {
	var q chatRequest
	if err := c.body(&q); err != nil {
		return err
	}
	tq, err := q.talk()
	if err != nil {
		return err
	}
	if err := c.admit(); err != nil {
		return err
	}
	ids, err := c.prompt(tq)
	if err != nil {
		return err
	}
	return c.reply(rendered{RequestID: c.id, Tokens: ids})
}

// handleCompletionRender answers POST /v1/completions/render: the tokens of each prompt.
func handleCompletionRender(c *call) error {
	var q completionRequest
	if err := c.body(&q); err != nil {
		return err
	}
	if len(q.Prompt) == 0 {
		return badParam("prompt", "prompt is missing")
	}
	if err := c.admit(); err != nil {
		return err
	}
	m, err := c.model(q.Model)
	if err != nil {
		return err
	}
	list := make([]rendered, len(q.Prompt))
	err = c.text(func(ctx context.Context) error {
		for i, p := range q.Prompt {
			ids, err := p.tokens(ctx, m, fmt.Sprintf("prompt[%d]", i), true)
			if err != nil {
				return err
			}
			list[i] = rendered{RequestID: c.id, Tokens: ids}
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.forget()
	return c.reply(list)
}
