package printable

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestName(t *testing.T) {
	for s, want := range map[string]string{
		"":                                 "",
		"Qwen3 8B (größer)":                "Qwen3 8B (größer)",
		"a\x1b[2Jb":                        "a�[2Jb",
		"a\r\n\tb":                         "a   b",
		"\x00\x7f\u009b\u202e\u2066\ufeff": "������",
		"\xff\xfe":                         "��",
		"世界":                               "世界",
		"x\u2028y":                         "x y",
		strings.Repeat("é", 81):            strings.Repeat("é", 80) + "...",
		strings.Repeat("A", 1<<20):         strings.Repeat("A", 80) + "...",
	} {
		if have := Name(s); have != want {
			t.Errorf("%.100q: %q, want %q", s, have, want)
		}
	}
	if have := Text("a\x1b\nb\r\n\nc" + strings.Repeat("d", 3000)); have != "a�\nb \n\nc"+strings.Repeat("d", 3000) {
		t.Errorf("%q", have)
	}
}

func TestAllIsPrintable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Line(string(rapid.SliceOf(rapid.Byte()).Draw(t, "s")))
		if !utf8.ValidString(s) || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) && r != utf8.RuneError }) {
			t.Errorf("%q", s)
		}
	})
}
