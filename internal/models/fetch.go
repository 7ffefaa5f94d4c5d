package models

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/library"
	"github.com/zincc-dev/zincc/runtime/pull"
)

// Fetch pulls a model into the models folder dir, and shows how far it is.
func Fetch(ctx context.Context, dir string, ref library.Ref) (path string, err error) {
	c, err := pull.New(dir)
	if err != nil {
		return "", err
	}
	bar := &pullBar{Progress: cli.NewProgress("pulling", 0)}
	defer bar.Done()
	c.Said = func(line string) {
		fmt.Fprintf(cli.Stderr, "%s: %s\n", strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe"), printable.Line(line))
	}
	c.Progress = bar.show
	return c.Pull(ctx, ref)
}

// pullBar says how much there is, how fast it comes, and how long the rest takes.
type pullBar struct {
	*cli.Progress
	begun bool
	rate  float64 // bytes a second, over some seconds
	at    time.Time
	done  int64
}

func (b *pullBar) show(p pull.Progress) {
	now := time.Now()
	if !b.begun {
		b.begun, b.at, b.done = true, now, p.Done
	}
	if took := now.Sub(b.at).Seconds(); took >= 0.5 {
		rate := float64(p.Done-b.done) / took
		if b.rate == 0 {
			b.rate = rate
		}
		b.rate += (rate - b.rate) * min(1, took/5)
		b.at, b.done = now, p.Done
	}
	if p.Total > 0 {
		b.Say(progressLine(p, b.rate))
	}
}

func progressLine(p pull.Progress, rate float64) string {
	parts := []string{fmt.Sprintf("%3d %%", 100*p.Done/p.Total), fmt.Sprintf("%s of %s", table.Bytes(p.Done), table.Bytes(p.Total))}
	if p.Step == "pulling" && rate > 0 {
		rest := time.Duration(float64(p.Total-p.Done) / rate * float64(time.Second))
		parts = append(parts, table.Bytes(rate).String()+"/s", rest.Round(time.Second).String()+" left")
	}
	return p.Step + " " + strings.Join(parts, "  ") + "  " + printable.Line(p.File)
}
