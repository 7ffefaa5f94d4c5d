package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zincc-dev/zincc/internal/lineedit/screentest"
	"github.com/zincc-dev/zincc/internal/progress"
)

func TestProgressLine(t *testing.T) {
	start := time.Now()
	for _, c := range []struct {
		at    progress.Report
		text  string
		took  time.Duration
		width int
		want  string
	}{
		{progress.Report{}, "", 1500 * time.Millisecond, 80, "loading  1s"},
		{progress.Report{Done: 1, Total: 4}, "", 2 * time.Second, 80, "loading   25 %  2s"},
		{progress.Report{Done: 1, Total: 4}, "", 10 * time.Second, 80, "loading   25 %  30s left"},
		{progress.Report{Done: 9, Total: 4}, "", 10 * time.Second, 80, "loading  100 %  0s left"},
		{progress.Report{Part: "passes", Done: 1, Total: 2}, "", 10 * time.Second, 80, "loading   50 %  passes  10s"},
		{progress.Report{Part: "passes", Done: 1, Total: 2}, "", 10 * time.Second, 21, "loading   50 %  pass"},
		{progress.Report{}, "pulling 日本語\x1b[2J", time.Minute, 80, "pulling 日本語\ufffd[2J"},
		{progress.Report{}, "pulling 日本語", time.Minute, 12, "pulling 日"},
	} {
		p := &Progress{what: "loading", start: start, at: c.at, text: c.text}
		if got := p.line(start.Add(c.took), c.width); got != c.want {
			t.Errorf("%+v: %q, want %q", c, got, c.want)
		}
	}
}

// TestBelow: what others write takes the place of the line below, which does not come while another line has no end.
func TestBelow(t *testing.T) {
	screen := screentest.New(20, 6)
	b := &belowLine{to: screen}
	shows := func(want string) {
		t.Helper()
		if got := strings.Join(screen.Rows(), "|"); got != want {
			t.Errorf("the screen shows %q, want %q", got, want)
		}
	}
	b.show("loading  10 %")
	shows("loading  10 %")
	b.show("loading 9 %")
	shows("loading 9 %")
	fmt.Fprint(writerFunc(func(p []byte) (int, error) { return b.write(screen, p) }), "a note\r\n")
	shows("a note")
	b.show("loading  20 %")
	shows("a note|loading  20 %")
	b.write(screen, []byte("half \x1b[1mof"))
	b.show("loading  30 %")
	b.write(screen, []byte("\x1b[0m"))
	b.show("loading  40 %")
	shows("a note|half of")
	b.write(screen, []byte(" it\r\n\x1b[0m"))
	b.show("loading  50 %")
	shows("a note|half of it|loading  50 %")
	b.clear()
	b.clear()
	shows("a note|half of it")
}

// TestProgressInLines: a program that asked for lines gets them at once, and neither a pipe nor a dumb terminal gets
// anything.
func TestProgressInLines(t *testing.T) {
	old := Stderr
	defer func() { Stderr = old }()
	for _, c := range []struct {
		env, term string
		terminal  bool
		want      bool
	}{{progress.Lines, "", false, true}, {"", "", false, false}, {"", "dumb", true, false}} {
		t.Setenv(progress.Env, c.env)
		t.Setenv("TERM", c.term)
		var b bytes.Buffer
		Stderr = &Output{to: &b, text: &b, terminal: c.terminal}
		synctest.Test(t, func(*testing.T) {
			p := NewProgress("loading", 4)
			p.Add(3)
			time.Sleep(reported + 200*time.Millisecond)
			p.Done()
			p.Done()
		})
		line, _, _ := strings.Cut(b.String(), "\n")
		if r, ok := progress.Parse(line); ok != c.want || ok && r != (progress.Report{Done: 3, Total: 4}) {
			t.Errorf("%+v: %q", c, b.String())
		}
	}
}
