package conform

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicClient() anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(server), option.WithAPIKey("none"), option.WithMaxRetries(0))
}

func message(text string) anthropic.MessageNewParams {
	return anthropic.MessageNewParams{Model: model, MaxTokens: 200, Temperature: anthropic.Float(0), Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))}}
}

func TestAnthropicMessage(t *testing.T) {
	client := anthropicClient()
	m, err := client.Messages.New(t.Context(), message("What does strings.Cut do?"))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 2 || m.Content[0].Type != "thinking" || m.Content[1].Text != cut || m.StopReason != "end_turn" {
		t.Errorf("%s", m.RawJSON())
	}
	if m.Usage.InputTokens+m.Usage.CacheReadInputTokens == 0 || m.Usage.OutputTokens == 0 {
		t.Errorf("usage %+v", m.Usage)
	}
	count, err := client.Messages.CountTokens(t.Context(), anthropic.MessageCountTokensParams{Model: model, Messages: message("What does strings.Cut do?").Messages})
	if err != nil || count.InputTokens != m.Usage.InputTokens+m.Usage.CacheReadInputTokens {
		t.Errorf("counted %+v, used %+v (%v)", count, m.Usage, err)
	}
	// Reasoning off, a system prompt, and a text to stop at.
	p := message("Which package is json.Marshal in?")
	p.System = []anthropic.TextBlockParam{{Text: "Answer in one word."}}
	off := anthropic.NewThinkingConfigDisabledParam()
	p.Thinking = anthropic.ThinkingConfigParamUnion{OfDisabled: &off}
	p.StopSequences = []string{"/"}
	m, err = client.Messages.New(t.Context(), p)
	if err != nil || len(m.Content) != 1 || m.Content[0].Text != "encoding" || m.StopReason != "stop_sequence" || m.StopSequence != "/" {
		t.Errorf("%v %s", err, m.RawJSON())
	}
	p = message("Write a small HTTP server.")
	p.MaxTokens = 5
	if m, err = client.Messages.New(t.Context(), p); err != nil || m.StopReason != "max_tokens" {
		t.Errorf("%v %s", err, m.RawJSON())
	}
}

func TestAnthropicStream(t *testing.T) {
	client := anthropicClient()
	stream := client.Messages.NewStreaming(t.Context(), message("What does strings.Cut do?"))
	var m anthropic.Message
	for stream.Next() {
		if err := m.Accumulate(stream.Current()); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	if len(m.Content) != 2 || m.Content[0].Type != "thinking" || !strings.Contains(m.Content[0].Thinking, "strings.Cut") || m.Content[1].Text != cut || m.StopReason != "end_turn" || m.Usage.OutputTokens == 0 {
		t.Errorf("%+v", m)
	}
}

func TestAnthropicTools(t *testing.T) {
	client := anthropicClient()
	p := message("What is 17 plus 25?")
	p.Tools = []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "add", Description: anthropic.String("Adds two numbers."), InputSchema: anthropic.ToolInputSchemaParam{
		Properties: map[string]any{"a": map[string]any{"type": "number"}, "b": map[string]any{"type": "number"}}, Required: []string{"a", "b"}}}}}
	for _, streamed := range []bool{false, true} {
		q := p
		var m anthropic.Message
		if streamed {
			stream := client.Messages.NewStreaming(t.Context(), q)
			for stream.Next() {
				if err := m.Accumulate(stream.Current()); err != nil {
					t.Fatal(err)
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
		} else {
			r, err := client.Messages.New(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			m = *r
		}
		if m.StopReason != "tool_use" {
			t.Fatalf("streamed %v: %s %+v", streamed, m.StopReason, m.Content)
		}
		use := m.Content[len(m.Content)-1]
		var in struct{ A, B float64 }
		if err := json.Unmarshal(use.Input, &in); err != nil || use.Name != "add" || in.A != 17 || in.B != 25 {
			t.Errorf("streamed %v: %s(%s)", streamed, use.Name, use.Input)
		}
		q.Messages = append(q.Messages, m.ToParam(), anthropic.NewUserMessage(anthropic.NewToolResultBlock(use.ID, "42", false)))
		answer, err := client.Messages.New(t.Context(), q)
		if err != nil || !strings.Contains(answer.Content[len(answer.Content)-1].Text, "42") {
			t.Errorf("streamed %v: %v %s", streamed, err, answer.RawJSON())
		}
	}
}

func TestAnthropicErrors(t *testing.T) {
	client := anthropicClient()
	for _, bad := range []struct {
		change func(*anthropic.MessageNewParams)
		status int
		kind   string
	}{
		{func(p *anthropic.MessageNewParams) { p.Model = "nothing" }, 404, "not_found_error"},
		{func(p *anthropic.MessageNewParams) { p.TopP = anthropic.Float(7) }, 400, "invalid_request_error"},
		{func(p *anthropic.MessageNewParams) { p.Messages = nil }, 400, "invalid_request_error"},
	} {
		p := message("Hello")
		bad.change(&p)
		_, err := client.Messages.New(t.Context(), p)
		var e *anthropic.Error
		if !errors.As(err, &e) || e.StatusCode != bad.status || !strings.Contains(e.RawJSON(), bad.kind) {
			t.Errorf("%v, want %d %s", err, bad.status, bad.kind)
		}
	}
}
