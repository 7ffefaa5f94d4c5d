package owned

import (
	"errors"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/runtime/driver"
)

// TestSet: what is freed is released once, and not before the submission that it was freed behind has ended.
func TestSet(t *testing.T) {
	var released []string
	s := Set[string]{Release: func(r string) { released = append(released, r) }}
	sweep := func(last driver.Fence, err error, want ...string) {
		t.Helper()
		released = nil
		if s.Sweep(func() (driver.Fence, error) { return last, err }); !slices.Equal(released, want) {
			t.Errorf("behind %d, %v: released %q, want %q", last, err, released, want)
		}
	}
	for _, r := range []string{"a", "b", "c", "d"} {
		s.Own(r)
	}
	s.Free("a", 2)
	s.Free("b", 1)
	s.Free("a", 1) // once is enough
	s.Free("none", 0)
	sweep(0, nil)
	sweep(1, nil, "b")
	if n := s.Ending(); n != 1 {
		t.Errorf("%d wait, want 1", n)
	}
	s.Free("c", 9)
	sweep(1, errors.New("lost"), "a", "c")
	s.Own("e")
	s.Free("e", 3)
	released = nil
	s.Close()
	if slices.Sort(released); !slices.Equal(released, []string{"d", "e"}) {
		t.Errorf("closed: released %q, want d and e", released)
	}
}
