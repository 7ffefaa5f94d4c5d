package zincc_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// proseWidth is how many columns a line of prose has at most, a tab as four.
const proseWidth = 120

// TestProseFits: paragraphs of documents and of comments fit. Tables, code and what has no space to break at may be
// wider.
func TestProseFits(t *testing.T) {
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "." && (name == "node_modules" || name == "testdata" || name == "dist" || strings.HasPrefix(name, ".")) {
				return fs.SkipDir
			}
			return nil
		}
		var prose func(line string) bool
		switch {
		case strings.HasSuffix(name, ".md"):
			prose = proseOfDocument()
		case strings.HasSuffix(name, ".go") && !strings.HasPrefix(name, "z"):
			prose = func(line string) bool {
				line = strings.TrimLeft(line, "\t")
				return strings.HasPrefix(line, "// ") && !strings.HasPrefix(line, "// Output:")
			}
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, line := range strings.Split(string(data), "\n") {
			columns := utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    "))
			if prose(line) && columns > proseWidth && breaks.MatchString(line) {
				t.Errorf("%s:%d has %d columns, more than %d", path, i+1, columns, proseWidth)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// breaks matches lines that can be broken: three words at least, and none that begins a comment's code or list.
var breaks = regexp.MustCompile(`^(\t*// )?\s{0,3}\S+ \S+ \S`)

// proseOfDocument returns what tells, line by line, whether a document's line is prose.
func proseOfDocument() func(line string) bool {
	code := false
	return func(line string) bool {
		fence := strings.HasPrefix(strings.TrimSpace(line), "```")
		code = code != fence
		return !code && !fence && !strings.HasPrefix(strings.TrimSpace(line), "|") && !strings.HasPrefix(line, "    ") &&
			!strings.HasPrefix(line, "#") && !strings.HasPrefix(strings.TrimSpace(line), "<")
	}
}
