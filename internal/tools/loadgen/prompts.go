package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"

	"github.com/spf13/pflag"
)

// seedFlag defines --seed. Each run draws its own unless one is given: a server has the prompts of earlier runs in its
// cache.
func seedFlag(f *pflag.FlagSet, seed *uint64, what string) {
	f.Uint64Var(seed, "seed", uint64(rand.Uint32()), what+"; the report has it")
	f.Lookup("seed").DefValue = "drawn"
}

// prompts makes prompts of an exact number of tokens: ids drawn from those that the server's
// tokenizer makes of a text, so that none is a special token. Prompts begin differently, so a server
// has none of them in its cache.
type prompts struct {
	ids  []int32
	seed uint64
}

// newPrompts asks the server for ids.
func newPrompts(ctx context.Context, c *client, seed uint64) (*prompts, error) {
	ids, err := c.tokenize(ctx, words(rand.New(rand.NewPCG(seed, 0)), 1000))
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("POST /tokenize: a text has no tokens")
	}
	return &prompts{ids, seed}, nil
}

// tokenize returns the ids of a text, without those that the server would put before it.
func (c *client) tokenize(ctx context.Context, text string) ([]int32, error) {
	in := struct {
		Model   string `json:"model,omitempty"`
		Content string `json:"content"`
	}{c.model, text}
	var out struct {
		Tokens []int32 `json:"tokens"`
	}
	err := c.call(ctx, "POST", "/tokenize", in, &out)
	return out.Tokens, err
}

// rendered returns the ids of a conversation as the chat template of the server's model writes it.
func (c *client) rendered(ctx context.Context, said []message, template map[string]bool) ([]int32, error) {
	in := struct {
		Model    string          `json:"model,omitempty"`
		Messages []message       `json:"messages"`
		Template map[string]bool `json:"chat_template_kwargs,omitempty"`
	}{c.model, said, template}
	var out struct {
		Prompt string `json:"prompt"`
	}
	if err := c.call(ctx, "POST", "/apply-template", in, &out); err != nil {
		return nil, err
	}
	return c.tokenize(ctx, out.Prompt)
}

// words returns n words of syllables.
func words(r *rand.Rand, n int) string {
	const consonants, vowels = "bcdfghjklmnprstvwz", "aeiou"
	var b strings.Builder
	for range n {
		for range 1 + r.IntN(3) {
			b.WriteByte(consonants[r.IntN(len(consonants))])
			b.WriteByte(vowels[r.IntN(len(vowels))])
		}
		b.WriteByte(' ')
	}
	return b.String()
}

// of returns the prompt number i of n tokens.
func (p *prompts) of(i, n int) []int32 {
	r := rand.New(rand.NewPCG(p.seed, 1+uint64(i)))
	ids := make([]int32, n)
	for j := range ids {
		ids[j] = p.ids[r.IntN(len(p.ids))]
	}
	return ids
}
