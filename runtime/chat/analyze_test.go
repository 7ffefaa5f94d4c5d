package chat

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/zincc-dev/zincc/plans"
)

var (
	update    = flag.Bool("update", false, "rewrite the goldens")
	templates = flag.String("templates", "", "a `folder` of *.jinja to be analyzed, too")
)

// own are the templates of testdata by the name of their form.
func own(t testing.TB) map[string]*Template {
	archive, err := txtar.ParseFile(filepath.Join("testdata", "templates.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*Template{}
	for _, f := range archive.Files {
		all[f.Name] = mustNew(t, f.Name, string(f.Data))
	}
	return all
}

func mustNew(t testing.TB, name, source string) *Template {
	tmpl, err := New(plans.Vocab{ChatTemplate: source, Tokens: []string{"<s>", "</s>"}, Types: []int32{3, 3}, BOS: new(int32(0)), EOS: new(int32(1))})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return tmpl
}

// TestAnalyze compares the dialects of the templates of testdata with the golden,
// and holds that there is a template for every form. With -templates DIR it
// prints those of a folder as a table.
func TestAnalyze(t *testing.T) {
	all := own(t)
	var got strings.Builder
	for _, name := range Dialects() {
		tmpl := all[name]
		if tmpl == nil {
			t.Fatalf("no template for %s", name)
		}
		d := tmpl.Dialect()
		if d.Name != name {
			t.Errorf("the dialect of %s is %s", name, d.Name)
		}
		e := json.NewEncoder(&got)
		e.SetIndent("", "\t")
		e.SetEscapeHTML(false)
		if err := e.Encode(d); err != nil {
			t.Fatal(err)
		}
	}
	golden := filepath.Join("testdata", "dialects.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != string(want) {
		t.Errorf("dialects\n%s", got.String())
	}

	paths, _ := filepath.Glob(filepath.Join(*templates, "*.jinja"))
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := mustNew(t, path, string(source)).Dialect()
		t.Logf("| %-44.44s | %-13s | %s %q %v | %s %v | %v %v | %s | %s", strings.TrimSuffix(filepath.Base(path), ".jinja"), d.Name,
			d.ReasoningOpen, d.Closing, d.PromptOpens, d.Switch, d.Effort, d.TextCalls, d.OneCall, strings.Join(d.Ends, " "), strings.Join(d.Roles, " "))
	}
}
