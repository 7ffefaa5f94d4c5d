// Package progress says how far a task is: to whoever watches it in this program, and to the program that started this
// one, in lines on standard error between all others.
package progress

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Env is the variable by which a program asks those that it starts for lines of progress; it is Lines then.
const (
	Env   = "ZINCC_PROGRESS"
	Lines = "lines"
)

// Report is how far a task is: Done of Total, in units of its own. Total 0 is not known.
type Report struct {
	Part        string // what is being done; "": the task has no parts
	Done, Total int64
}

// mark is what lines of progress begin with, and no other line.
const mark = "\x1eprogress "

// String is the report as a line, without its end.
func (r Report) String() string { return fmt.Sprintf("%s%d %d %s", mark, r.Done, r.Total, r.Part) }

// Parse reads a line of String's. false: it is another line.
func Parse(line string) (Report, bool) {
	rest, ok := strings.CutPrefix(line, mark)
	if !ok {
		return Report{}, false
	}
	done, rest, _ := strings.Cut(rest, " ")
	total, part, _ := strings.Cut(rest, " ")
	d, err := strconv.ParseInt(done, 10, 64)
	t, err2 := strconv.ParseInt(total, 10, 64)
	if err != nil || err2 != nil || d < 0 || t < 0 {
		return Report{}, false
	}
	return Report{Part: part, Done: d, Total: t}, true
}

// Percent is the share that is done, 0 to 100; false if the total is not known.
func (r Report) Percent() (int, bool) {
	if r.Total <= 0 {
		return 0, false
	}
	return int(100 * (float64(min(max(r.Done, 0), r.Total)) / float64(r.Total))), true
}

// Task is a task that somebody watches.
type Task interface {
	At(r Report) // how far it is
	Done()       // it has ended
}

// Watcher watches tasks. It is called at the beginning of each, with what it is: "compiling". nil watches none.
type Watcher func(what string) Task

// Begin begins a task.
func (w Watcher) Begin(what string) Task {
	if w == nil {
		return unwatched{}
	}
	return w(what)
}

type unwatched struct{}

func (unwatched) At(Report) {}
func (unwatched) Done()     {}

// With returns ctx with who watches the tasks that are done for it, as From tells.
func With(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, watcherKey{}, w)
}

// From is the watcher of a context, nil if nobody watches.
func From(ctx context.Context) Watcher {
	w, _ := ctx.Value(watcherKey{}).(Watcher)
	return w
}

type watcherKey struct{}
