package engine

import (
	goruntime "runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestEach: each number has one call, and as many as may help share them.
func TestEach(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(4))
	for _, c := range []struct {
		n, helpers, own int
		takes           time.Duration
	}{{0, 2, 0, 0}, {1, 2, 1, 1}, {8, -1, 8, 8}, {8, 0, 8, 8}, {8, 1, 4, 4}, {8, 3, 2, 2}, {8, 9, 2, 2}, {2, 3, 1, 1}} {
		synctest.Test(t, func(t *testing.T) {
			var calls [8]atomic.Int32
			var list []int
			for i := range c.n {
				list = append(list, i)
			}
			began := time.Now()
			own := each(list, c.helpers, func(i int) {
				time.Sleep(time.Second)
				calls[i].Add(1)
			})
			if took := time.Since(began); own != c.own || took != c.takes*time.Second {
				t.Errorf("%d calls with %d helpers: %d of its own in %v, want %d in %v", c.n, c.helpers, own, took, c.own, c.takes*time.Second)
			}
			for i := range calls {
				if n := int(calls[i].Load()); n != 1 && i < c.n || n != 0 && i >= c.n {
					t.Errorf("%d calls with %d helpers: %d for number %d", c.n, c.helpers, n, i)
				}
			}
		})
	}
}

// TestHelpers: vectors of logits are worth a processor each, short ones by the dozen, a few of them none.
func TestHelpers(t *testing.T) {
	for _, c := range [][3]int{{1, 151936, 3}, {8, 32768, 7}, {8, 4096, 0}, {16, 4096, 1}, {7, 4096, -1}} {
		if n := helpers(c[0], c[1]); n != c[2] {
			t.Errorf("%d of %d have %d helpers, want %d", c[0], c[1], n, c[2])
		}
	}
}

// TestEachWithoutCrew: where helpers have looked in vain and gone, others are called.
func TestEachWithoutCrew(t *testing.T) {
	defer goruntime.GOMAXPROCS(goruntime.GOMAXPROCS(4))
	c := callHelpers(2)
	for c.here.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
	list := make([]int, 64)
	if own := c.each(list, 3, func(int) { time.Sleep(time.Millisecond) }); own == len(list) {
		t.Error("nobody has helped")
	}
}
