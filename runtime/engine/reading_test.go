package engine_test

import (
	"context"
	"testing"

	"github.com/zincc-dev/zincc/runtime/engine"
)

// TestReading: whoever asked learns how much of a prompt is read, behind each of its steps, also of one whose beginning
// is known.
func TestReading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := fakePlan(1, 1024, false)
		e, err := engine.New(p, newFake(p), fakeTokenizer(), engine.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		for _, kept := range []bool{false, true} {
			var read []int
			r := engine.Request{Prompt: prompt(1, 404), Max: 2, TopLogprobs: -1, Reading: func(tokens int) { read = append(read, tokens) }}
			a := ask(context.Background(), e, r)
			if a.err != nil || (a.done.Usage.Cached > 0) != kept {
				t.Fatal(a.err, a.done.Usage)
			}
			before := a.done.Usage.Cached
			for _, n := range read {
				if n <= before {
					t.Errorf("kept %v: read %v", kept, read)
				}
				before = n
			}
			if before != 404 || !kept && len(read) < 3 {
				t.Errorf("kept %v: read %v of 404", kept, read)
			}
		}
	})
}
