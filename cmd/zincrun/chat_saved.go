package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// saved is the file of a conversation: a request of OpenAI's chat completions, which any server of that API takes.
type saved struct {
	Model    string         `json:"model"`
	Messages []savedMessage `json:"messages"`
	sample.Params
}

type savedMessage struct {
	Role       string      `json:"role"`
	Content    string      `json:"content"`
	Reasoning  string      `json:"reasoning_content,omitempty"`
	Name       string      `json:"name,omitempty"`
	ToolCallID string      `json:"tool_call_id,omitempty"`
	Calls      []savedCall `json:"tool_calls,omitempty"`
}

type savedCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func savedOf(model string, messages []chat.Message, p sample.Params) *saved {
	s := &saved{Model: model, Messages: []savedMessage{}, Params: p}
	for _, m := range messages {
		to := savedMessage{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Name: m.Name, ToolCallID: m.ToolCallID}
		for _, c := range m.Calls {
			call := savedCall{ID: c.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = c.Name, c.Arguments
			to.Calls = append(to.Calls, call)
		}
		s.Messages = append(s.Messages, to)
	}
	return s
}

func (s *saved) messages() []chat.Message {
	var all []chat.Message
	for _, m := range s.Messages {
		to := chat.Message{Role: m.Role, Content: m.Content, Reasoning: m.Reasoning, Name: m.Name, ToolCallID: m.ToolCallID}
		for _, c := range m.Calls {
			to.Calls = append(to.Calls, chat.Call{ID: c.ID, Name: c.Function.Name, Arguments: c.Function.Arguments})
		}
		all = append(all, to)
	}
	return all
}

// first is what the user said first.
func (s *saved) first() string {
	for _, m := range s.Messages {
		if m.Role == "user" {
			return m.Content
		}
	}
	return ""
}

func (s *saved) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(s)
}

// maxSaved bounds the file of a conversation.
const maxSaved = 64 << 20

func readSaved(path string) (*saved, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxSaved+1))
	if err != nil {
		return nil, err
	}
	s := &saved{Params: sample.Neutral()}
	if len(data) > maxSaved || json.Unmarshal(data, s) != nil || s.Messages == nil {
		return nil, fmt.Errorf("%s: not a conversation written by /save", path)
	}
	for i, m := range s.Messages {
		if m.Role == "" {
			return nil, fmt.Errorf("%s: messages[%d] has no role", path, i)
		}
	}
	if err := s.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// errNotSaved is why a file was not overwritten.
var errNotSaved = errors.New("exists and is no conversation; it was not overwritten")
