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

// TestNamesOfJinja holds docs/chat-templates.md: every name of Jinja2 3.1 is
// there, or is refused with a reason.
func TestNamesOfJinja(t *testing.T) {
	for _, name := range strings.Fields(`abs attr batch capitalize center count d default dictsort e escape
		filesizeformat first float forceescape format groupby indent int items join last length list lower map max
		min pprint random reject rejectattr replace reverse round safe select selectattr slice sort string striptags
		sum title tojson trim truncate unique upper urlencode urlize wordcount wordwrap xmlattr`) {
		if (filters[name] != nil) == (refusedFilters[name] != "") {
			t.Errorf("filter %s", name)
		}
	}
	for _, name := range strings.Fields(`!= < <= == > >= boolean callable defined divisibleby eq equalto escaped even
		false filter float ge greaterthan gt in integer iterable le lessthan lower lt mapping ne none number odd
		sameas sequence string test true undefined upper`) {
		if tests[name] == nil {
			t.Errorf("test %s", name)
		}
	}
	for _, name := range []string{"cycler", "dict", "joiner", "lipsum", "namespace", "range"} {
		if globals[name] == nil {
			t.Errorf("global %s", name)
		}
	}
	doc, err := os.ReadFile("../../../docs/chat-templates.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range []map[string]string{refusedFilters, refusedTags} {
		for name := range table {
			if !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("docs/chat-templates.md does not name %s", name)
			}
		}
	}
}

func parseAndRender(source string, context []byte) (string, error) {
	tmpl, err := Parse(source)
	if err != nil {
		return "", err
	}
	return renderJSON(tmpl, context)
}
