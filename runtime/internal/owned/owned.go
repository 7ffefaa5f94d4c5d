// Package owned keeps what was made on a device until it is freed and no longer in use.
package owned

import (
	"slices"
	"sync"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// Set has what was made on a device. Its methods may be called by several goroutines.
type Set[R comparable] struct {
	Release func(R)

	mu     sync.Mutex
	live   map[R]struct{}
	ending []ending[R]
}

// ending was freed and is in use until a submission has ended.
type ending[R comparable] struct {
	resource R
	after    driver.Fence
}

// Own adds what was made.
func (s *Set[R]) Own(r R) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[R]struct{}{}
	}
	s.live[r] = struct{}{}
}

// Free has r released once the submission after has ended: no caller can know that better who has given up a wait.
// Once is enough.
func (s *Set[R]) Free(r R, after driver.Fence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, alive := s.live[r]; alive {
		delete(s.live, r)
		s.ending = append(s.ending, ending[R]{r, after})
	}
}

// Sweep releases what was freed and is no longer in use. ended tells the last submission that has ended; an error means
// that the device does nothing more.
func (s *Set[R]) Sweep(ended func() (driver.Fence, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ending) == 0 {
		return
	}
	last, err := ended()
	s.ending = slices.DeleteFunc(s.ending, func(e ending[R]) bool {
		over := err != nil || e.after <= last
		if over {
			s.Release(e.resource)
		}
		return over
	})
}

// Ending is how many were freed and wait for a submission.
func (s *Set[R]) Ending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.ending)
}

// Close releases everything: the device does nothing more.
func (s *Set[R]) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.ending {
		s.Release(e.resource)
	}
	for r := range s.live {
		s.Release(r)
	}
	s.live, s.ending = nil, nil
}
