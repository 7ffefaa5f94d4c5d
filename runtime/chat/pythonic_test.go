package chat

import "testing"

func TestEscaped(t *testing.T) {
	for _, c := range []struct {
		in, text string
		size     int
	}{
		{`\n`, "\n", 2},
		{`\'`, "'", 2},
		{`\q`, `\`, 1},
		{`\`, "", 0},
		{`\u00e9x`, "é", 6},
		{`\u00e`, "", 0},
		{`\uD83D\uDE00x`, "😀", 12},
		{`\ud83d\ude`, "", 0}, // the other half may come
		{`\u00zz`, `\`, 1},
	} {
		if text, size := escaped(c.in); text != c.text || size != c.size {
			t.Errorf("%s: %q, %d, want %q, %d", c.in, text, size, c.text, c.size)
		}
	}
}
