package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
)

// life is what one process of a server did in rounds, from its start to its end.
type life struct {
	rounds      int
	busy        time.Duration // in rounds
	first, last *rested       // behind its first round, which fills pools and caches, and its last
	end         string        // how it ended
}

// inRounds asks for each known answer once a round, and ends the server between rounds as often as is to be, by turns
// as one asks it to and at once. What follows the same seed is asked in the same order.
func (s *soak) inRounds(ctx context.Context, progress *cli.Progress) error {
	now := life{end: "still runs"}
	for i := range s.rounds {
		start := time.Now()
		s.round(ctx, i, progress)
		now.busy += time.Since(start)
		held, err := s.settle(ctx)
		if err != nil {
			return fmt.Errorf("behind round %d: %w", i+1, err)
		}
		if now.rounds++; now.first == nil {
			now.first = held
		}
		now.last = held
		due := i+1 < s.rounds && (i+1)*(s.restarts+1)/s.rounds > i*(s.restarts+1)/s.rounds
		if due {
			if now.end, err = s.another(ctx, len(s.lives)%2 == 1); err != nil {
				return err
			}
		}
		if due || i+1 == s.rounds {
			s.lives = append(s.lives, now)
			s.compare(fmt.Sprintf("server %d: ", len(s.lives)), now.first, now.last)
			now = life{end: "still runs"}
		}
	}
	return nil
}

// round asks for all known answers in an order of its own, each as a stream or as one reply.
func (s *soak) round(ctx context.Context, i int, progress *cli.Progress) {
	asks := []func(context.Context, knownAnswer) error{s.stream, s.whenDone} // acts begin with the two
	r := rand.New(rand.NewPCG(s.seed, uint64(i)))
	order := r.Perm(len(s.known))
	hows := make([]int, len(order))
	for j := range hows {
		hows[j] = r.IntN(len(asks))
	}
	load{users: s.users, requests: len(order)}.closed(ctx, func(j int) {
		err := asks[hows[j]](ctx, s.known[order[j]])
		s.mu.Lock()
		defer s.mu.Unlock()
		progress.Add(1)
		s.count(ctx, hows[j], err)
	})
}

// another ends the server and starts the next one.
func (s *soak) another(ctx context.Context, atOnce bool) (end string, err error) {
	if atOnce {
		s.server.Kill()
		return "SIGKILL", s.startNext(ctx)
	}
	s.stop()
	return "SIGTERM", s.startNext(ctx)
}

// livesTable says what each server did, and held behind its first round and behind its last.
func (s *soak) livesTable() *table.Table {
	t := &table.Table{Title: "servers", Columns: []string{"server", "rounds", "requests/s", "memory first", "last", "goroutines first", "last", "files first", "last", "ended by"}}
	for i, l := range s.lives {
		memory := func(r *rested) table.Bytes { return table.Bytes(r.metrics["process_resident_memory_bytes"]) }
		count := func(r *rested, metric string) int { return int(r.metrics[metric]) }
		t.Add(i+1, l.rounds, float64(l.rounds*len(s.known))/l.busy.Seconds(), memory(l.first), memory(l.last), count(l.first, "go_goroutines"),
			count(l.last, "go_goroutines"), count(l.first, "process_open_fds"), count(l.last, "process_open_fds"), l.end)
	}
	return t
}
