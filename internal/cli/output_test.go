package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/printable"
)

func TestOutputKeepsItsFirstError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := newOutput(full, "full")
	for range 2 {
		if n, err := o.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.ENOSPC) || err.Error() != "full: no space left on device" {
			t.Errorf("%d, %v", n, err)
		}
	}
	if o.Err() == nil {
		t.Error("the error is forgotten")
	}
}

// TestTerminal checks that a terminal gets text alone, unless somebody draws on it, and that a file gets every byte.
func TestTerminal(t *testing.T) {
	const text = "a\x1b[2J\a\b\x9b31m\u009bb\n"
	for _, c := range []struct {
		terminal, screen bool
		want             string
	}{{true, false, "a[2J\ufffd31mb\n"}, {true, true, text}, {false, false, text}} {
		var b bytes.Buffer
		o := &Output{to: &b, text: &b, terminal: c.terminal}
		if c.terminal {
			o.text = printable.Writer(&b)
		}
		w := io.Writer(o)
		if c.screen {
			w = o.Screen()
		}
		for i := range len(text) { // tokens are pieces of runes
			if n, err := io.WriteString(w, text[i:i+1]); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		if b.String() != c.want {
			t.Errorf("%+v: %q", c, b.String())
		}
	}
}

func TestExitNamesAnErrorOnce(t *testing.T) {
	p := &Program{Name: "x", Commands: []Command{{Name: "y", Setup: func(*pflag.FlagSet) func(context.Context, []string) error { return nil }}}}
	var b bytes.Buffer
	if code := Exit(&b, p.Name, p.run(context.Background(), []string{"y", "--z"})); code != exitUsage || b.String() != "x: y: unknown flag: --z\n" {
		t.Errorf("code %d, %q", code, b.String())
	}
}

// TestCheckOutput holds that files are told apart by what they are, not by their names.
func TestCheckOutput(t *testing.T) {
	dir := t.TempDir()
	name := func(s string) string { return filepath.Join(dir, s) }
	for _, err := range []error{
		os.Mkdir(name("sub"), 0o777),
		os.WriteFile(name("in"), nil, 0o666), os.WriteFile(name("other"), nil, 0o666), os.WriteFile(name("sub/part"), nil, 0o666),
		os.Link(name("in"), name("hard")), os.Symlink("in", name("soft")), os.Symlink("none", name("dangling")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		out string
		ok  bool
	}{
		{"in", false}, {"./sub/../in", false}, {"hard", false}, {"soft", false}, {"sub", false}, {"sub/part", false},
		{"other", true}, {"new", true}, {"dangling", true}, {"none/new", true},
	} {
		err := CheckOutput(dir+"/"+c.out, name("in"), "", name("missing"), name("sub/part"))
		var usage *UsageError
		if (err == nil) != c.ok || err != nil && (!errors.As(err, &usage) || !strings.Contains(err.Error(), c.out)) {
			t.Errorf("%s: %v", c.out, err)
		}
	}
	if err := CheckOutput("/dev/null", "/dev/null"); err != nil {
		t.Errorf("a device is not destroyed: %v", err)
	}
}
