package jinja

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var goldens = flag.String("goldens", "", "a `folder` of *.jinja with a goldens.json to be rendered, too")

// goldenFile is what a program that is the judge rendered: of each template and
// context the text, or the error.
type goldenFile struct {
	Contexts map[string]json.RawMessage
	Goldens  map[string]struct {
		Renders map[string]struct {
			Plain *string
			Error string `json:"plain_error"`
		}
	}
}

// goldenNow is when the goldens were rendered.
var goldenNow = time.Date(2026, 8, 22, 9, 5, 7, 0, time.UTC)

// TestGoldens renders the templates of testdata, and of the folder given with
// -goldens, with the contexts of its goldens.json.
func TestGoldens(t *testing.T) {
	for _, folder := range []string{filepath.Join("testdata", "templates"), *goldens} {
		if folder != "" {
			renderGoldens(t, folder)
		}
	}
}

func renderGoldens(t *testing.T, folder string) {
	raw, err := os.ReadFile(filepath.Join(folder, "goldens.json"))
	if err != nil {
		t.Fatal(err)
	}
	var g goldenFile
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	equal, renders, failed, failures, parsed := 0, 0, 0, 0, 0
	for _, name := range slices.Sorted(maps.Keys(g.Goldens)) {
		source, err := os.ReadFile(filepath.Join(folder, strings.TrimSuffix(name, ".jinja")+".jinja"))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, err := Parse(string(source))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		parsed++
		all := g.Goldens[name].Renders
		for _, context := range slices.Sorted(maps.Keys(all)) {
			want := all[context]
			got, err := renderJSON(tmpl, g.Contexts[context])
			switch {
			case want.Plain == nil:
				failures++
				if err != nil {
					failed++
					t.Logf("%s: %s: %v (%s)", name, context, err, want.Error)
				} else {
					t.Logf("%s: %s: renders, want %s", name, context, want.Error)
				}
			case err != nil:
				renders++
				t.Errorf("%s: %s: %v", name, context, err)
			case got != *want.Plain:
				renders++
				t.Errorf("%s: %s:\n got %q\nwant %q", name, context, got, *want.Plain)
			default:
				renders++
				equal++
			}
		}
	}
	if renders == 0 {
		t.Fatalf("%s has no goldens", folder)
	}
	t.Logf("%s: %d of %d templates parse, %d of %d renders are equal, %d of %d errors are errors",
		folder, parsed, len(g.Goldens), equal, renders, failed, failures)
}

func renderJSON(tmpl *Template, data []byte) (string, error) {
	v, err := FromJSON(data)
	if err != nil {
		return "", err
	}
	ctx, ok := v.(*Dict)
	if !ok {
		return "", errors.New("the context is not an object")
	}
	spans, err := tmpl.Render(context.Background(), ctx, goldenNow, nil)
	var b strings.Builder
	for _, s := range spans {
		b.WriteString(s.Text)
	}
	return b.String(), err
}
