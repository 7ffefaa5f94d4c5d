package dynamic

import (
	"strings"
	"sync"
	"testing"
)

// TestOpenMissing opens libraries that are not there from many goroutines: each is told its own error.
func TestOpenMissing(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				if _, err := Open("libnone.so.1"); err == nil || !strings.Contains(err.Error(), "libnone.so.1") {
					t.Errorf("%v", err)
					return
				}
			}
		})
	}
	all.Wait()
}
