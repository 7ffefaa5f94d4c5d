package zincc_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/runtime"
)

// TestInterrupted gives up prompts, profiles and checkpoints at many times. What was submitted
// must not lose its memory, and what comes next must not be disturbed.
func TestInterrupted(t *testing.T) {
	model, rows := "gopher", 200
	if testing.Short() {
		model, rows = "gopher-moe", 90 // which TestOneText has opened, and an entry that it runs
	}
	for _, d := range devices {
		t.Run(d.target, func(t *testing.T) {
			plan, x, tok := load(t, model, d.target, d.device, ir.F16)
			ids := encode(tok, prompt)
			long := slices.Repeat(ids, rows/len(ids))
			s := runtime.NewSession(plan, x)
			continued := func() []int32 {
				s.Reset()
				next, err := s.Prefill(t.Context(), ids, 0)
				if err != nil {
					t.Fatal(err)
				}
				rest, err := s.Decode(t.Context(), next, 7)
				if err != nil {
					t.Fatal(err)
				}
				return append(rest, next)
			}
			want := continued()
			works := []func(ctx context.Context) error{
				func(ctx context.Context) error { s.Reset(); _, err := s.Prefill(ctx, long, 0); return err },
				func(ctx context.Context) error { s.Reset(); _, err := s.Prefill(ctx, long, 1); return err },
			}
			if _, ok := x.(runtime.Profiler); ok {
				works = append(works, func(ctx context.Context) error {
					_, err := runtime.Profile(ctx, plan, x, "prefill/48", 0, 0, 1000)
					return err
				}, func(ctx context.Context) error {
					_, err := runtime.Profile(ctx, plan, x, "decode/1", 0, 0, 100000)
					return err
				})
			}
			for i, work := range works {
				for _, after := range []time.Duration{2 * time.Millisecond, 40 * time.Millisecond} {
					ctx, stop := context.WithTimeout(t.Context(), after)
					if err := work(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("work %d, given up after %s: %v", i, after, err)
					}
					stop()
					if have := continued(); !slices.Equal(have, want) {
						t.Fatalf("behind work %d, given up after %s: %v, want %v", i, after, have, want)
					}
				}
			}
		})
	}
}
