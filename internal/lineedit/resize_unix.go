//go:build unix

package lineedit

import (
	"os"
	"os/signal"
	"syscall"
)

// resizes tells when the terminal has another size.
func resizes() (<-chan os.Signal, func()) {
	changes := make(chan os.Signal, 1)
	signal.Notify(changes, syscall.SIGWINCH)
	return changes, func() { signal.Stop(changes) }
}
