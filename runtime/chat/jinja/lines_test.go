package jinja

import (
	"os"
	"strings"
	"testing"
)

// marks stand for what a line cannot show.
var marks = strings.NewReplacer("⏎", "\n", "⇥", "\t", "␍", "\r", "␡", "\x7f", "␤", "\u2028")

// TestLines renders the one-line templates of testdata/lines.txt. Below each
// stands "= " with its text and a bar, or "! " with a part of its error.
func TestLines(t *testing.T) {
	context, err := os.ReadFile("testdata/lines.json")
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSuffix(string(file), "\n"), "\n")
	section, cases := "", 0
	for i := 0; i < len(lines); i++ {
		source, ok := strings.CutPrefix(lines[i], "  ")
		if !ok {
			section = lines[i]
			continue
		}
		i++
		cases++
		got, err := parseAndRender(marks.Replace(source), context)
		switch want := marks.Replace(lines[i]); {
		case strings.HasPrefix(want, "  ! "):
			if err == nil {
				t.Errorf("line %d (%s): %s\n got %q\nwant error %s", i, section, source, got, want[4:])
			} else if !strings.Contains(err.Error(), want[4:]) {
				t.Errorf("line %d (%s): %s\n got error %v\nwant error %s", i, section, source, err, want[4:])
			}
		case err != nil:
			t.Errorf("line %d (%s): %s\n got error %v\nwant %s", i, section, source, err, want)
		case "  = "+got+"|" != want:
			t.Errorf("line %d (%s): %s\n got %q\nwant %q", i, section, source, got, want[4:len(want)-1])
		}
	}
	if cases < 300 {
		t.Errorf("only %d cases", cases)
	}
}

func parseAndRender(source string, context []byte) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return renderJSON(tmpl, context)
}
