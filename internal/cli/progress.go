package cli

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/rivo/uniseg"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/progress"
)

// Progress shows how far a long task is, in one line below all that a terminal shows: from the first second on, until
// Done. Pipes and files get nothing, and neither do terminals that cannot erase a line. A program that asked for it
// (progress.Env) gets lines instead.
type Progress struct {
	what  string
	start time.Time
	draw  func(p *Progress) // nil: nobody looks
	stop  chan struct{}
	ended sync.WaitGroup
	once  sync.Once

	mu   sync.Mutex
	at   progress.Report
	text string // in place of all that
}

const (
	quiet    = time.Second            // tasks that take less show nothing
	redraw   = 200 * time.Millisecond // a terminal
	reported = 500 * time.Millisecond // to a program
	settled  = 3 * time.Second        // then the rest can be told from what was done
)

// NewProgress starts a task of total units; 0 if they are not known.
func NewProgress(what string, total int64) *Progress {
	p := &Progress{what: what, start: time.Now(), stop: make(chan struct{}), at: progress.Report{Total: total}}
	switch {
	case os.Getenv(progress.Env) == progress.Lines:
		p.watch(0, reported, func(p *Progress) { fmt.Fprintf(Stderr, "%s\n", p.report()) })
	case Stderr.terminal && os.Getenv("TERM") != "dumb":
		p.watch(quiet, redraw, func(p *Progress) { below.show(p.line(time.Now(), below.width())) })
	}
	return p
}

// watch draws from a time on, again and again.
func (p *Progress) watch(from, every time.Duration, draw func(p *Progress)) {
	p.draw = draw
	p.ended.Go(func() {
		begin := time.NewTimer(from)
		defer begin.Stop()
		tick := time.NewTicker(every)
		defer tick.Stop()
		begun := false
		for {
			select {
			case <-p.stop:
				return
			case <-begin.C:
				begun = true
			case <-tick.C:
			}
			if begun {
				draw(p)
			}
		}
	})
}

// Add says that n more units are done.
func (p *Progress) Add(n int64) {
	p.mu.Lock()
	p.at.Done += n
	p.mu.Unlock()
}

// At says how far a part of the task is.
func (p *Progress) At(r progress.Report) {
	p.mu.Lock()
	p.at = r
	p.mu.Unlock()
}

// Say shows a text in place of what the task is and how far.
func (p *Progress) Say(text string) {
	p.mu.Lock()
	p.text = text
	p.mu.Unlock()
}

// Done ends the task and clears its line.
func (p *Progress) Done() {
	p.once.Do(func() { close(p.stop) })
	p.ended.Wait()
	if p.draw != nil {
		below.clear()
	}
}

func (p *Progress) report() progress.Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at
}

// line is what a terminal of that width shows, of which the first words matter most.
func (p *Progress) line(now time.Time, width int) string {
	p.mu.Lock()
	at, text := p.at, p.text
	p.mu.Unlock()
	if text != "" {
		return fitting(printable.Line(text), width-1)
	}
	parts := []string{p.what}
	percent, known := at.Percent()
	if known {
		parts = append(parts, fmt.Sprintf("%3d %%", percent))
	}
	if at.Part != "" {
		parts = append(parts, at.Part)
	}
	if took := now.Sub(p.start); known && at.Part == "" && took >= settled && at.Done > 0 {
		left := time.Duration(float64(took) * float64(max(0, at.Total-at.Done)) / float64(at.Done))
		parts = append(parts, left.Round(time.Second).String()+" left")
	} else {
		parts = append(parts, took.Truncate(time.Second).String())
	}
	return fitting(printable.Line(strings.Join(parts, "  ")), width-1)
}

// fitting is the beginning of text that takes so many cells at most.
func fitting(text string, cells int) string {
	at, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if cells -= w; cells < 0 {
			return text[:at]
		}
		at += len(cluster)
	}
	return text
}
