package main

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

// answerTokens is the length of an answer.
const answerTokens = 1000

// differentAnswers is how many answers there are to compare with.
const differentAnswers = 32

type hash = [sha256.Size]byte

// soak is a run of the command.
type soak struct {
	writer  func(ctx context.Context, number int) (hash, error)
	answers int // that differ
	users   int // at a time

	alone           []hash
	compared, wrong int
}

// run writes each answer alone, and then n answers with as many users as there are, in an order drawn at random.
func (s *soak) run(ctx context.Context, n int) error {
	for i := range s.answers {
		h, err := s.writer(ctx, i)
		if err != nil {
			return err
		}
		s.alone = append(s.alone, h)
	}
	type result struct {
		number int
		hash   hash
	}
	numbers, results := make(chan int), make(chan result)
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(numbers)
		r := rand.New(rand.NewPCG(1, 1))
		for range n {
			select {
			case numbers <- r.IntN(s.answers):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	for range s.users {
		g.Go(func() error {
			for i := range numbers {
				h, err := s.writer(ctx, i)
				if err != nil {
					return err
				}
				results <- result{i, h}
			}
			return nil
		})
	}
	over := make(chan error, 1)
	go func() {
		over <- g.Wait()
		close(results)
	}()
	for r := range results {
		s.compared++
		if r.hash != s.alone[r.number] {
			s.wrong++
		}
	}
	return <-over
}

// tokens is how many have been written, those of answers that did not end left out.
func (s *soak) tokens() int { return (len(s.alone) + s.compared) * answerTokens }

// writer returns what writes an answer by its number: a prompt of random tokens of 1 to 200, continued by the most
// likely tokens or, of odd numbers, by tokens that are drawn.
func writer(e *engine.Engine, vocab int) func(context.Context, int) (hash, error) {
	return func(ctx context.Context, number int) (hash, error) {
		r := rand.New(rand.NewPCG(2, uint64(number)))
		prompt := make([]int32, 1+r.IntN(200))
		for i := range prompt {
			prompt[i] = int32(r.IntN(vocab))
		}
		q := engine.Request{Prompt: prompt, Max: answerTokens, IgnoreEOG: true, NoCache: true, TopLogprobs: -1}
		if number%2 == 1 {
			q.Sampling = sample.Params{Temp: 1, TopK: 40, TopP: 0.95, Seed: uint64(number)}
		}
		sum, n := sha256.New(), 0
		for event, err := range e.Generate(ctx, q) {
			if err != nil {
				return hash{}, err
			}
			for _, t := range event.Tokens {
				n++
				binary.Write(sum, binary.LittleEndian, t.ID)
			}
		}
		if n != answerTokens {
			return hash{}, fmt.Errorf("answer %d has %d tokens instead of %d: the plan's context has to be 1,200 or more", number, n, answerTokens)
		}
		return hash(sum.Sum(nil)), nil
	}
}
