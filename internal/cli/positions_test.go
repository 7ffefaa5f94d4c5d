package cli

import "testing"

func TestPositions(t *testing.T) {
	for s, want := range map[string]Positions{
		"1": 1, "4096": 4096, "4k": 4096, "128K": 131072, "1m": 1 << 20, "2047m": 2047 << 20,
		"": 0, "0": 0, "-1": 0, "k": 0, "4kk": 0, "1.5k": 0, "2048m": 0, "99999999999999999999": 0, "many": 0, " 4": 0,
	} {
		var p Positions
		if err := p.Set(s); (err == nil) != (want > 0) || p != want {
			t.Errorf("%q is %d (%v), want %d", s, p, err, want)
		}
	}
}
