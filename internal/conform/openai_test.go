package conform

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"net/http"
)

const model = "gopher-chat"

func openaiClient(t *testing.T) (openai.Client, *checker) {
	c := &checker{t: t}
	return openai.NewClient(option.WithBaseURL(server+"/v1"), option.WithAPIKey("none"), option.WithMaxRetries(0), option.WithHTTPClient(&http.Client{Transport: c})), c
}

func ask(text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}, Temperature: openai.Float(0), MaxTokens: openai.Int(200)}
}

const cut = "Cut slices s around the first instance of sep, returning the text before and after sep."

func TestOpenAIChat(t *testing.T) {
	client, c := openaiClient(t)
	p := ask("What does strings.Cut do?")
	p.Logprobs, p.TopLogprobs, p.N = openai.Bool(true), openai.Int(3), openai.Int(2)
	r, err := client.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	for _, ch := range r.Choices {
		if ch.Message.Content != cut || ch.FinishReason != "stop" {
			t.Errorf("%q, %s", ch.Message.Content, ch.FinishReason)
		}
		if int64(len(ch.Logprobs.Content)) != r.Usage.CompletionTokens/2 || len(ch.Logprobs.Content[0].TopLogprobs) != 3 {
			t.Errorf("%d log probabilities of %d tokens", len(ch.Logprobs.Content), r.Usage.CompletionTokens)
		}
		if top := ch.Logprobs.Content[0]; top.Token != top.TopLogprobs[0].Token || top.Logprob > 0 {
			t.Errorf("greedy took %q, the most likely is %q", top.Token, top.TopLogprobs[0].Token)
		}
	}
	if len(r.Choices) != 2 || c.seen["CreateChatCompletionResponse"] != 1 {
		t.Errorf("%d choices, %v", len(r.Choices), c.seen)
	}
}

func TestOpenAIStream(t *testing.T) {
	client, c := openaiClient(t)
	p := ask("What does strings.Cut do?")
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	p.Logprobs = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	reasoning := ""
	for stream.Next() {
		chunk := stream.Current()
		if !acc.AddChunk(chunk) {
			t.Fatalf("the accumulator refuses %s", chunk.RawJSON())
		}
		if len(chunk.Choices) > 0 {
			var d struct {
				Reasoning string `json:"reasoning_content"`
			}
			json.Unmarshal([]byte(chunk.Choices[0].Delta.RawJSON()), &d)
			reasoning += d.Reasoning
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	stream.Close()
	if got := acc.Choices[0].Message.Content; got != cut {
		t.Errorf("content %q", got)
	}
	if !strings.Contains(reasoning, "strings.Cut") || acc.Usage.CompletionTokens == 0 || acc.Usage.PromptTokens == 0 {
		t.Errorf("reasoning %q, usage %+v", reasoning, acc.Usage)
	}
	if c.seen["CreateChatCompletionStreamResponse"] < 5 {
		t.Errorf("events: %v", c.seen)
	}
}

var addTool = openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
	Name: "add", Description: openai.String("Adds two numbers."),
	Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"a": map[string]any{"type": "number"}, "b": map[string]any{"type": "number"}}, "required": []string{"a", "b"}},
})

func TestOpenAITools(t *testing.T) {
	client, _ := openaiClient(t)
	p := ask("What is 17 plus 25?")
	p.Tools = []openai.ChatCompletionToolUnionParam{addTool}
	r, err := client.Chat.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	m := r.Choices[0].Message
	if len(m.ToolCalls) != 1 || m.ToolCalls[0].Function.Name != "add" || r.Choices[0].FinishReason != "tool_calls" {
		t.Fatalf("%s", m.RawJSON())
	}
	var args struct{ A, B float64 }
	if err := json.Unmarshal([]byte(m.ToolCalls[0].Function.Arguments), &args); err != nil || args.A != 17 || args.B != 25 {
		t.Errorf("arguments %s", m.ToolCalls[0].Function.Arguments)
	}
	p.Messages = append(p.Messages, m.ToParam(), openai.ToolMessage("42", m.ToolCalls[0].ID))
	if r, err = client.Chat.Completions.New(t.Context(), p); err != nil || !strings.Contains(r.Choices[0].Message.Content, "42") {
		t.Errorf("%v %s", err, r.RawJSON())
	}

	p = ask("What is 17 plus 25?")
	p.Tools = []openai.ChatCompletionToolUnionParam{addTool}
	stream := client.Chat.Completions.NewStreaming(t.Context(), p)
	var acc openai.ChatCompletionAccumulator
	finished := false
	for stream.Next() {
		acc.AddChunk(stream.Current())
		if call, ok := acc.JustFinishedToolCall(); ok {
			finished = call.Name == "add"
		}
	}
	stream.Close()
	if !finished || stream.Err() != nil {
		t.Errorf("the accumulator saw no call: %v %+v", stream.Err(), acc.Choices)
	}
}

func TestOpenAICompletions(t *testing.T) {
	client, c := openaiClient(t)
	p := openai.CompletionNewParams{Model: model, Prompt: openai.CompletionNewParamsPromptUnion{OfString: openai.String("package sort\n\nimport ")},
		Temperature: openai.Float(0), MaxTokens: openai.Int(12), Logprobs: openai.Int(2), Echo: openai.Bool(true)}
	r, err := client.Completions.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	whole := r.Choices[0].Text
	if !strings.HasPrefix(whole, "package sort") || len(whole) < 25 {
		t.Errorf("text %q", whole)
	}
	stream := client.Completions.NewStreaming(t.Context(), p)
	text := ""
	for stream.Next() {
		text += stream.Current().Choices[0].Text
	}
	stream.Close()
	if text != whole || stream.Err() != nil {
		t.Errorf("streamed %q, at once %q (%v)", text, whole, stream.Err())
	}
	if c.seen["CreateCompletionResponse"] < 3 {
		t.Errorf("validated %v", c.seen)
	}
}

func TestOpenAIResponses(t *testing.T) {
	client, c := openaiClient(t)
	p := responses.ResponseNewParams{Model: model, Temperature: openai.Float(0), MaxOutputTokens: openai.Int(200),
		Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("What does strings.Cut do?")}}
	r, err := client.Responses.New(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if r.OutputText() != cut || r.Status != "completed" || r.Output[0].Type != "reasoning" {
		t.Errorf("%s", r.RawJSON())
	}
	stream := client.Responses.NewStreaming(t.Context(), p)
	text, kinds := "", map[string]int{}
	for i := int64(0); stream.Next(); i++ {
		e := stream.Current()
		kinds[e.Type]++
		if e.SequenceNumber != i {
			t.Errorf("event %d has number %d", i, e.SequenceNumber)
		}
		if e.Type == "response.output_text.delta" {
			text += e.AsResponseOutputTextDelta().Delta
		}
		if e.Type == "response.completed" && e.Response.OutputText() != cut {
			t.Errorf("at the end %q", e.Response.OutputText())
		}
	}
	stream.Close()
	if text != cut || stream.Err() != nil {
		t.Errorf("%q, %v", text, stream.Err())
	}
	for _, kind := range []string{"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added", "response.reasoning_text.delta",
		"response.reasoning_text.done", "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"} {
		if kinds[kind] == 0 {
			t.Errorf("no %s in %v", kind, kinds)
		}
	}

	// A call, its result and the answer, with all that was said sent again.
	tool := responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{Name: "add", Description: openai.String("Adds two numbers."), Parameters: addTool.OfFunction.Function.Parameters, Strict: openai.Bool(false)}}
	p.Tools = []responses.ToolUnionParam{tool}
	p.Input.OfString = openai.String("What is 17 plus 25?")
	if r, err = client.Responses.New(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	call := r.Output[len(r.Output)-1].AsFunctionCall()
	if call.Name != "add" {
		t.Fatalf("%s", r.RawJSON())
	}
	p.Input = responses.ResponseNewParamsInputUnion{OfInputItemList: responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage("What is 17 plus 25?", "user"),
		responses.ResponseInputItemParamOfFunctionCall(call.Arguments, call.CallID, call.Name),
		{OfFunctionCallOutput: &responses.ResponseInputItemFunctionCallOutputParam{CallID: openai.String(call.CallID),
			Output: responses.ResponseInputItemFunctionCallOutputOutputUnionParam{OfString: openai.String("42")}}},
	}}
	if r, err = client.Responses.New(t.Context(), p); err != nil || !strings.Contains(r.OutputText(), "42") {
		t.Errorf("%v %s", err, r.RawJSON())
	}
	p.Input = responses.ResponseNewParamsInputUnion{OfString: openai.String("What is 17 plus 25?")}
	p.MaxOutputTokens = openai.Int(3)
	if r, err = client.Responses.New(t.Context(), p); err != nil || r.Status != "incomplete" || r.IncompleteDetails.Reason != "max_output_tokens" {
		t.Errorf("%v %s", err, r.RawJSON())
	}
	stream = client.Responses.NewStreaming(t.Context(), p)
	last := ""
	for stream.Next() {
		last = stream.Current().Type
	}
	stream.Close()
	if last != "response.incomplete" {
		t.Errorf("the last event is %s", last)
	}
	if c.seen["ResponseStreamEvent"] < 10 || c.seen["Response"] < 4 {
		t.Errorf("validated %v", c.seen)
	}
}

func TestOpenAIErrors(t *testing.T) {
	client, c := openaiClient(t)
	for _, bad := range []struct {
		change      func(*openai.ChatCompletionNewParams)
		status      int
		code, param string
	}{
		{func(p *openai.ChatCompletionNewParams) { p.Model = "nothing" }, 404, "model_not_found", "model"},
		{func(p *openai.ChatCompletionNewParams) { p.Temperature = openai.Float(-1) }, 400, "", "temperature"},
		{func(p *openai.ChatCompletionNewParams) { p.Messages = nil }, 400, "", "messages"},
		{func(p *openai.ChatCompletionNewParams) {
			p.Messages[0] = openai.UserMessage(strings.Repeat("word ", 5000))
		}, 400, "context_length_exceeded", ""},
	} {
		p := ask("Hello")
		bad.change(&p)
		_, err := client.Chat.Completions.New(t.Context(), p)
		var e *openai.Error
		if !errors.As(err, &e) || e.StatusCode != bad.status || e.Code != bad.code || e.Param != bad.param || e.Type != "invalid_request_error" {
			t.Errorf("%v, want %d %s %s", err, bad.status, bad.code, bad.param)
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), p)
		if stream.Next() || !errors.As(stream.Err(), &e) || e.StatusCode != bad.status {
			t.Errorf("streamed: %v", stream.Err())
		}
	}
	if c.seen["error"] != 8 {
		t.Errorf("validated %v", c.seen)
	}
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 2 || models.Data[0].ID != model || models.Data[1].ID != vectorModel {
		t.Errorf("%v %v", models, err)
	}
	if m, err := client.Models.Get(t.Context(), model); err != nil || m.OwnedBy != "zincc" {
		t.Errorf("%v %v", m, err)
	}
}

// A client that cancels, or has no patience, leaves a server that answers the next one.
func TestOpenAICancel(t *testing.T) {
	client, _ := openaiClient(t)
	p := ask("Write a small HTTP server.")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := client.Chat.Completions.New(ctx, p); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("timeout: %v", err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	stream := client.Chat.Completions.NewStreaming(ctx, p)
	if !stream.Next() {
		t.Errorf("no event: %v", stream.Err())
	}
	cancel()
	for stream.Next() {
	}
	if !errors.Is(stream.Err(), context.Canceled) {
		t.Errorf("cancel: %v", stream.Err())
	}
	r, err := client.Chat.Completions.New(t.Context(), ask("What does strings.Cut do?"))
	if err != nil || r.Choices[0].Message.Content != cut {
		t.Errorf("afterwards: %v", err)
	}
}
