package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// Error is what a request fails with, in the terms of OpenAI's API.
type Error struct {
	Kind    kind
	Message string
	Param   string // the field at fault, such as messages[2].content; "" for none
	Code    string // "" for none
	Retry   time.Duration
	claude  string // the message in Anthropic's words, where clients look for these; "": Message
}

func (e *Error) Error() string { return e.Message }

// A kind is a row of the table of errors.
type kind struct {
	status    int
	openai    string // type in OpenAI's form
	anthropic string // type in Anthropic's form
}

var (
	invalid      = kind{http.StatusBadRequest, "invalid_request_error", "invalid_request_error"}
	unauthorized = kind{http.StatusUnauthorized, "authentication_error", "authentication_error"}
	forbidden    = kind{http.StatusForbidden, "permission_error", "permission_error"}
	notFound     = kind{http.StatusNotFound, "invalid_request_error", "not_found_error"}
	badMethod    = kind{http.StatusMethodNotAllowed, "invalid_request_error", "invalid_request_error"}
	tooLarge     = kind{http.StatusRequestEntityTooLarge, "invalid_request_error", "request_too_large"}
	badMedia     = kind{http.StatusUnsupportedMediaType, "invalid_request_error", "invalid_request_error"}
	tooSlow      = kind{http.StatusRequestTimeout, "invalid_request_error", "invalid_request_error"}
	tooMany      = kind{http.StatusTooManyRequests, "rate_limit_error", "rate_limit_error"}
	internal     = kind{http.StatusInternalServerError, "server_error", "api_error"}
	unavailable  = kind{http.StatusServiceUnavailable, "unavailable_error", "overloaded_error"}
	clientGone   = kind{499, "client_closed_request", "api_error"} // in the log only
)

// badParam is an error 400 in the field param.
func badParam(param, format string, args ...any) *Error {
	return &Error{Kind: invalid, Param: param, Message: fmt.Sprintf(format, args...)}
}

// unsupported is an error 400 for what the API knows and this server does not do.
func unsupported(param, format string, args ...any) *Error {
	return &Error{Kind: invalid, Param: param, Code: "unsupported_parameter", Message: fmt.Sprintf(format, args...)}
}

// errorOf returns err as an *Error: what is none of ours is internal.
func errorOf(err error) *Error {
	var (
		e        *Error
		large    *http.MaxBytesError
		field    *engine.RequestError
		sampling *sample.Error
		long     *engine.ContextError
	)
	switch {
	case errors.As(err, &e):
		return e
	case errors.As(err, &large):
		return &Error{Kind: tooLarge, Message: fmt.Sprintf("the body is larger than %d bytes", large.Limit)}
	case errors.As(err, &field):
		return badParam(field.Field, "%s", err)
	case errors.As(err, &sampling):
		return badParam(sampling.Field, "%s", err)
	case errors.As(err, &long):
		return tooLong(long.Prompt, long.Ctx)
	case errors.Is(err, engine.ErrQueueFull):
		return &Error{Kind: tooMany, Code: "queue_full", Retry: time.Second, Message: err.Error()}
	case errors.Is(err, engine.ErrDraining), errors.Is(err, engine.ErrClosed):
		return errDraining
	case errors.Is(err, context.Canceled), errors.Is(err, errAbandoned):
		return &Error{Kind: clientGone, Message: "the client closed the connection"}
	}
	return &Error{Kind: internal, Message: err.Error()}
}

func tooLong(prompt, ctx int) *Error { return longPrompt(strconv.Itoa(prompt), ctx) }

// longPrompt says that a prompt does not fit in words that clients of OpenAI's API, of llama-server and of
// Anthropic's API look for.
func longPrompt(tokens string, ctx int) *Error {
	return &Error{Kind: invalid, Code: "context_length_exceeded", claude: fmt.Sprintf("prompt is too long: %s tokens > %d maximum", tokens, ctx), Message: fmt.Sprintf(
		"This model's maximum context length is %d tokens. However, the prompt has %s tokens, which exceeds the available context size. Please shorten it.", ctx, tokens)}
}

// A dialect writes errors as the clients of an endpoint expect them.
type dialect int

const (
	openai dialect = iota
	anthropic
	ollama
)

// formOf is the dialect of what answers at a path.
func formOf(path string) dialect {
	switch {
	case strings.HasPrefix(path, "/v1/messages"):
		return anthropic
	case strings.HasPrefix(path, "/api/"):
		return ollama
	}
	return openai
}

// public returns what a client is told. For an internal error that is the request's id,
// whose line in the log has the cause.
func (e *Error) public(id string) string {
	if e.Kind == internal {
		return "internal error; the server's log has it under request " + id
	}
	return e.Message
}

// body returns the JSON object of an error.
func (d dialect) body(e *Error, id string) any {
	message := e.public(id)
	if d == anthropic {
		message = cmp.Or(e.claude, message)
		return struct {
			Type      string `json:"type"`
			Error     any    `json:"error"`
			RequestID string `json:"request_id"`
		}{"error", struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		}{e.Kind.anthropic, message}, id}
	}
	if d == ollama {
		return struct {
			Error string `json:"error"`
		}{message}
	}
	return struct {
		Error openaiError `json:"error"`
	}{openaiError{message, e.Kind.openai, orNull(e.Param), orNull(e.Code)}}
}

type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// write sends the error as the whole reply.
func (d dialect) write(w http.ResponseWriter, e *Error, id string) {
	if e.Retry > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((e.Retry+time.Second-1)/time.Second)))
	}
	if e.Kind == unauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, e.Kind.status, d.body(e, id))
}
