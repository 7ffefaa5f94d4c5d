package compiler

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/internal/progress"
)

// watched keeps what it is told.
type watched []progress.Report

func (w *watched) At(r progress.Report) { *w = append(*w, r) }
func (w *watched) Done()                {}

// TestRun: lines of progress are told apart from the others, which come one by one; the last is the error where zincc
// fails.
func TestRun(t *testing.T) {
	zincc := filepath.Join(t.TempDir(), "zincc")
	script := "#!/bin/sh\n[ \"$ZINCC_PROGRESS\" = lines ] || exit 9\nprintf 'zincc: a note\\n" + progress.Report{Part: "passes", Done: 1, Total: 2}.String() + "\\nzincc: another' >&2\necho out\nexit $1\n"
	if err := os.WriteFile(zincc, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code string
		said []string
		err  string
	}{{"0", []string{"a note", "another"}, ""}, {"1", []string{"a note"}, "another"}, {"3", []string{"a note"}, "another"}} {
		var said []string
		var seen watched
		out, err := Run(t.Context(), func(line string) { said = append(said, line) }, &seen, zincc, c.code)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if !slices.Equal(said, c.said) || text != c.err || errors.Is(err, errors.ErrUnsupported) != (c.code == "3") {
			t.Errorf("%s: said %q, error %v", c.code, said, err)
		}
		if (string(out) == "out\n") != (err == nil) || len(seen) != 1 || seen[0] != (progress.Report{Part: "passes", Done: 1, Total: 2}) {
			t.Errorf("%s: %q, seen %+v", c.code, out, seen)
		}
	}
}
