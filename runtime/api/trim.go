package api

import (
	"context"
	"errors"
	"slices"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// turn makes the request that answers the conversation; of one that does not fit and may be trimmed, without its first
// turns.
func (q *talkRequest) turn(ctx context.Context, m *Model, conv *chat.Conversation, o talk.Options) (*talk.Turn, error) {
	for {
		t, err := m.turn(ctx, *conv, o)
		var e *Error
		long := errors.As(err, &e) && e.Code == tooLong(0, 0).Code
		if err == nil {
			long = len(t.Request.Prompt) > m.Header.Ctx-answerRoom(m, q.max)
		}
		if !long || !q.trim {
			return t, err
		}
		share := 0.5 // of the text that goes, where the number of tokens is not known
		if err == nil {
			share = 1 - float64(m.Header.Ctx-answerRoom(m, q.max))/float64(len(t.Request.Prompt))
		}
		rest := withoutFirst(conv.Messages, share)
		if len(rest) == len(conv.Messages) {
			return t, err
		}
		conv.Messages = rest
	}
}

// answerRoom is how many positions a trimmed conversation leaves: what the answer may have, but a quarter of all at
// most.
func answerRoom(m *Model, most *int) int {
	room := m.Header.Ctx / 4
	if most != nil && *most >= 0 {
		room = min(room, max(1, *most))
	}
	return room
}

// withoutFirst returns messages without the first turns, which have that share of the text or more: a turn goes from
// one message of the user to the next. What is said by the system stays, and so does the last turn.
func withoutFirst(all []chat.Message, share float64) []chat.Message {
	size := func(m chat.Message) int {
		n := len(m.Content) + len(m.Reasoning) + 8
		for _, c := range m.Calls {
			n += len(c.Name) + len(c.Arguments)
		}
		return n
	}
	system := func(m chat.Message) bool { return m.Role == "system" || m.Role == "developer" }
	total, last := 0, 0
	for i, m := range all {
		if total += size(m); m.Role == "user" {
			last = i
		}
	}
	gone, end := 0, 0
	for i, m := range all[:last] {
		if !system(m) {
			gone += size(m)
		}
		if end = i + 1; all[end].Role == "user" && float64(gone) >= share*float64(total) {
			break
		}
	}
	var rest []chat.Message
	for _, m := range all[:end] {
		if system(m) {
			rest = append(rest, m)
		}
	}
	return slices.Concat(rest, all[end:])
}
