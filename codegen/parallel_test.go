package codegen

import (
	"fmt"
	"runtime"
	"testing"
)

// TestParallelErrors holds that the error of the least index is returned, though that of the last one is there first.
func TestParallelErrors(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	last := make(chan struct{})
	err := parallel(2, func(i int) error {
		if i == 0 {
			<-last
		} else {
			defer close(last)
		}
		return fmt.Errorf("function %d", i)
	})
	if err == nil || err.Error() != "function 0" {
		t.Error(err)
	}
}
