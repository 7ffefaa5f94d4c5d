package plans

import (
	"os"
	"strings"
	"testing"
)

// TestDocumentListsSections holds docs/plan-format.md against the table of
// sections: all of them, in file order.
func TestDocumentListsSections(t *testing.T) {
	data, err := os.ReadFile("../docs/plan-format.md")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, _ := strings.Cut(string(data), "\n## Sections\n")
	doc, _, _ = strings.Cut(doc, "\n## ")
	var have []string
	for line := range strings.Lines(doc) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			name, _, _ := strings.Cut(rest, "`")
			have = append(have, name)
		}
	}
	var want []string
	for _, s := range sections {
		want = append(want, s.name)
	}
	if strings.Join(have, " ") != strings.Join(want, " ") {
		t.Errorf("docs/plan-format.md lists sections %q, the file has %q", have, want)
	}
}
