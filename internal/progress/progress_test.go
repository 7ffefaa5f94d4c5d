package progress

import (
	"testing"

	"pgregory.net/rapid"
)

// TestParse: a line tells what was reported, and no other line is one.
func TestParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := Report{rapid.StringMatching(`[a-z ]*`).Draw(t, "part"), rapid.Int64Min(0).Draw(t, "done"), rapid.Int64Min(0).Draw(t, "total")}
		if got, ok := Parse(want.String()); !ok || got != want {
			t.Fatalf("%q is read as %+v, %v", want, got, ok)
		}
		if n, ok := want.Percent(); n < 0 || n > 100 || ok != (want.Total > 0) {
			t.Fatalf("%+v: %d %%", want, n)
		}
	})
	for _, line := range []string{"", "progress 1 2 x", "\x1eprogress", "\x1eprogress 1", "\x1eprogress -1 2 x", "\x1eprogress 1 y x", "zincc: no GPU is used"} {
		if r, ok := Parse(line); ok {
			t.Errorf("%q is read as %+v", line, r)
		}
	}
}
