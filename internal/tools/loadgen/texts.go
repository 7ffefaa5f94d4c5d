package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"sort"
	"strings"
	"unicode/utf8"
)

// texts draws texts, and counts tokens as the server's tokenizer does.
type texts struct {
	client *client
	draw   *rand.Rand
	words  float64 // a token
}

// newTexts asks the server's tokenizer how many tokens words have.
func newTexts(ctx context.Context, c *client, seed uint64) (*texts, error) {
	const n = 1000
	t := &texts{client: c, draw: rand.New(rand.NewPCG(seed, 0))}
	ids, err := c.tokenize(ctx, words(t.draw, n))
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("POST /tokenize: a text has no tokens")
	}
	t.words = n / float64(len(ids))
	return t, nil
}

// about draws a text of about so many tokens.
func (t *texts) about(tokens int) string {
	return words(t.draw, max(1, int(float64(tokens)*t.words)))
}

// exactly draws a text of so many tokens.
func (t *texts) exactly(ctx context.Context, tokens int) (string, error) {
	for range 20 {
		text, n, err := t.beginning(ctx, t.about(tokens+tokens/8+8), tokens)
		if n == tokens || err != nil {
			return text, err
		}
	}
	return "", errors.New("POST /tokenize: counts do not grow with a text")
}

// beginning returns what a text begins with, up to so many tokens, and how many these are. White space at both ends is
// left out, as templates do.
func (t *texts) beginning(ctx context.Context, text string, tokens int) (string, int, error) {
	text = strings.TrimSpace(text)
	var ends []int // of what it may begin with
	for i := range text {
		ends = append(ends, i)
	}
	if ends = append(ends, len(text)); !utf8.ValidString(text) {
		return "", 0, errors.New("a text is not UTF-8")
	}
	var failed error
	count := func(k int) int {
		if failed != nil {
			return 0
		}
		n, err := t.count(ctx, strings.TrimSpace(text[:ends[k]]))
		failed = err
		return n
	}
	// The last of them with few enough, as if counts only grew.
	k := sort.Search(len(ends), func(k int) bool { return k > 0 && count(k) > tokens }) - 1
	return strings.TrimSpace(text[:ends[k]]), count(k), failed
}

// count returns how many tokens a text has.
func (t *texts) count(ctx context.Context, text string) (int, error) {
	if text == "" {
		return 0, nil
	}
	ids, err := t.client.tokenize(ctx, text)
	return len(ids), err
}

// frame returns how many tokens the template has around the texts of the last messages, so many of them, and behind
// what the conversation had in common with an earlier one.
func (t *texts) frame(ctx context.Context, before, said []message, last int) (int, error) {
	a, err := t.client.rendered(ctx, before, nil)
	if err != nil {
		return 0, err
	}
	b, err := t.client.rendered(ctx, said, nil)
	if err != nil {
		return 0, err
	}
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	frame := len(b) - same
	for _, m := range said[len(said)-last:] {
		n, err := t.count(ctx, m.Content)
		if err != nil {
			return 0, err
		}
		frame -= n
	}
	return frame, nil
}
