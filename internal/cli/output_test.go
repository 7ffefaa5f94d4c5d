package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/pflag"
)

func TestOutputKeepsItsFirstError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	o := &Output{to: full, name: "full"}
	for range 2 {
		if n, err := o.Write([]byte("x")); n != 0 || !errors.Is(err, syscall.ENOSPC) || err.Error() != "full: no space left on device" {
			t.Errorf("%d, %v", n, err)
		}
	}
	if o.Err() == nil {
		t.Error("the error is forgotten")
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
