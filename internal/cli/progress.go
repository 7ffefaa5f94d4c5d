package cli

import (
	"fmt"
	"os"
	"time"

	"golang.org/x/term"
)

// Progress shows on a terminal's stderr how far a long task is. It prints
// nothing in the first second, and nothing at all elsewhere.
type Progress struct {
	what    string
	total   int64
	done    int64
	start   time.Time
	printed time.Time
	on      bool
}

// NewProgress starts a task of total units.
func NewProgress(what string, total int64) *Progress {
	return &Progress{what: what, total: total, start: time.Now(), on: term.IsTerminal(int(os.Stderr.Fd()))}
}

// Add says that n more units are done.
func (p *Progress) Add(n int64) {
	p.done += n
	now := time.Now()
	if !p.on || p.total == 0 || now.Sub(p.start) < time.Second || now.Sub(p.printed) < 100*time.Millisecond {
		return
	}
	p.printed = now
	fmt.Fprintf(os.Stderr, "\r%s %3d %%", p.what, 100*p.done/p.total)
}

// Done ends the task and clears its line.
func (p *Progress) Done() {
	if !p.printed.IsZero() {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}
