package cli

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// TestInterruptible: ^C ends a task alone, SIGTERM ends all. Under the race detector it also looks at the start.
func TestInterruptible(t *testing.T) {
	ctx, stop := Interruptible()
	defer stop()
	ended := func(c context.Context) bool {
		select {
		case <-c.Done():
			return true
		case <-time.After(10 * time.Second):
			return false
		}
	}
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	task, done := Task(ctx)
	defer done()
	if err := self.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if !ended(task) || !errors.Is(context.Cause(task), ErrTask) || ctx.Err() != nil {
		t.Fatalf("at ^C: the task %v, all %v", context.Cause(task), ctx.Err())
	}
	if err := self.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if !ended(ctx) {
		t.Error("SIGTERM ends nothing")
	}
}
