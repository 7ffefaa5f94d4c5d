package ir

import (
	"strings"
	"testing"
)

// TestForms names candidates in forms, as tuning files do.
func TestForms(t *testing.T) {
	for _, c := range []struct {
		form            Form
		candidate, want string
	}{
		{Form{}, "gemv 2x32/2 of 8 rows", "gemv 2x32/2 of 8 rows"},
		{Form{Room: 768, After: 4 << 20}, "gemv 2x32/2 of 8 rows", "gemv 2x32/2 of 8 rows, room for 768, 4 MiB after"},
		{Form{Ahead: 4 << 20}, "argmax w32/", "argmax w32/4 MiB ahead"},
	} {
		if have := c.form.Of(c.candidate); have != c.want {
			t.Errorf("have %q, want %q", have, c.want)
		}
	}
}

// TestBadOverlaps refuses calls whose form or overlap cannot be.
func TestBadOverlaps(t *testing.T) {
	const good = "room=512 ahead=4194304 after=2097152 overlap=loads loads=[0, 2] trigger=late"
	for _, c := range []struct{ have, want string }{
		{"room=0", "room=0 is not written"},
		{"ahead=4194304 room=512", `want "why"`},
		{"overlap=soon", "want overlap=waits or loads"},
		{"loads=[0]", "does not load before it waits"},
		{"overlap=waits loads=[0]", "does not load before it waits"},
		{"overlap=loads loads=[2, 0]", "do not increase"},
		{"overlap=loads loads=[1, 1]", "do not increase"},
		{"overlap=loads loads=[0, 4]", "of 4"},
		{"overlap=loads loads=[-1]", "invalid syntax"},
		{"trigger=early", `want "late"`},
	} {
		if _, err := Parse(strings.Replace(placed, good, c.have, 1)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.have, err, c.want)
		}
	}
	specialized := strings.NewReplacer("stage place", "stage specialize", " stage=1 waits=1", " stage=0 waits=0").Replace(placed)
	if _, err := Parse(specialized); err == nil || !strings.Contains(err.Error(), "an overlap before stage schedule") {
		t.Error(err)
	}
}
