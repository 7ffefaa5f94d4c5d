package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// Interruptible returns a context that ends when the process is asked to end: by ^C (SIGINT),
// SIGTERM, or SIGHUP unless that was ignored from the start. The next signal ends the process.
// stop gives the signals back to the system.
func Interruptible() (ctx context.Context, stop func()) {
	asked := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		asked = append(asked, syscall.SIGHUP)
	}
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, asked...)
	base, cancel := context.WithCancel(context.Background())
	all := &tasks{}
	go func() {
		for {
			select {
			case <-base.Done():
				return
			case s := <-signals:
				if s == os.Interrupt && all.interrupt() {
					continue
				}
				signal.Stop(signals)
				cancel()
			}
		}
	}()
	return context.WithValue(base, tasksKey{}, all), func() {
		signal.Stop(signals)
		cancel()
	}
}

// ErrTask is the cause with which the context of a Task ends at ^C.
var ErrTask = errors.New("interrupted")

// Task returns a context that ^C ends in place of ctx, which is one of Interruptible, until done
// is called: an interactive command ends an answer and goes on. A second ^C ends ctx.
func Task(ctx context.Context) (task context.Context, done func()) {
	task, cancel := context.WithCancelCause(ctx)
	all, ok := ctx.Value(tasksKey{}).(*tasks)
	if ok {
		all.set(cancel)
	}
	return task, func() {
		if ok {
			all.set(nil)
		}
		cancel(nil)
	}
}

type tasksKey struct{}

// tasks holds what ends the task that is under way.
type tasks struct {
	mu  sync.Mutex
	end context.CancelCauseFunc // nil without a task, or when it is ending
}

func (t *tasks) set(end context.CancelCauseFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = end
}

// interrupt ends the task and reports whether there was one.
func (t *tasks) interrupt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.end == nil {
		return false
	}
	t.end(ErrTask)
	t.end = nil
	return true
}
