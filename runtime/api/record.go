package api

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// A record is the line of the log that a request gets.
type record struct {
	start  time.Time
	id     string
	path   string
	model  string
	key    string
	status int
	err    error
	usage  engine.Usage
	finish string
	first  time.Time       // of the first token
	gaps   []time.Duration // between tokens
	left   []string        // what of the request was left out
	prompt string          // with --log-text only
	answer string
}

func (r *record) write(log *slog.Logger) {
	attrs := []slog.Attr{slog.String("id", r.id), slog.String("path", r.path), slog.Int("status", r.status), slog.Int64("ms", time.Since(r.start).Milliseconds())}
	add := func(a ...slog.Attr) { attrs = append(attrs, a...) }
	if r.key != "" {
		add(slog.String("key", r.key))
	}
	if r.model != "" {
		add(slog.String("model", r.model))
	}
	if r.finish != "" {
		add(slog.Int("in", r.usage.Prompt), slog.Int("cached", r.usage.Cached), slog.Int("out", r.usage.Completion),
			slog.Float64("queue_ms", ms(r.usage.Queue)), slog.String("finish", r.finish))
	}
	if !r.first.IsZero() {
		add(slog.Float64("ttft_ms", ms(r.first.Sub(r.start))))
	}
	if len(r.gaps) > 0 {
		slices.Sort(r.gaps)
		add(slog.Float64("itl_p50_ms", ms(r.gaps[len(r.gaps)/2])), slog.Float64("itl_max_ms", ms(r.gaps[len(r.gaps)-1])))
	}
	if len(r.left) > 0 {
		add(slog.Any("left_out", r.left))
	}
	if r.prompt != "" || r.answer != "" {
		add(slog.String("prompt", r.prompt), slog.String("answer", r.answer))
	}
	level := slog.LevelInfo
	if r.err != nil {
		// The log names a client's error without its text.
		e := errorOf(r.err)
		what := e.Kind.openai
		if e.Code != "" {
			what = e.Code
		}
		if r.status >= 500 {
			level, what = slog.LevelError, r.err.Error()
		}
		add(slog.String("error", what))
		if e.Param != "" {
			add(slog.String("param", e.Param))
		}
	}
	log.LogAttrs(context.Background(), level, "request", attrs...)
}

// ms is a duration in milliseconds, to the microsecond.
func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
