package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

var program = &Program{
	Name: "prog", Short: "does things", Long: "It does things.\n\n  prog it's -x",
	Commands: []Command{
		{Args: "FILE", Short: "the default", Long: "Does it.", Setup: setup("out", "where [to] write: a 'file'")},
		{Name: "list", Args: "[--json]", Short: "list \"all\" things", Long: ".starts with a dot\n\n  an example\n\nand text", Setup: setup("json", "print JSON")},
	},
}

func setup(flag, usage string) func(f *pflag.FlagSet) func(context.Context, []string) error {
	return func(f *pflag.FlagSet) func(context.Context, []string) error {
		f.StringP(flag, flag[:1], "", usage)
		return nil
	}
}

// TestBashCompletion lets bash complete words.
func TestBashCompletion(t *testing.T) {
	var script bytes.Buffer
	if err := program.completion(&script, []string{"bash"}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model.gguf"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, want string }{
		{"prog l", "list"}, {"prog list --", "--json --help"}, {"prog m", "model.gguf man"}, {"prog model.gguf --o", "--out"}, {"prog list mo", "model.gguf"},
	} {
		words := strings.Fields(c.line)
		ask := script.String() + "\nCOMP_WORDS=(" + c.line + "); COMP_CWORD=" + string('0'+rune(len(words)-1)) + "; _prog; echo ${COMPREPLY[@]}"
		cmd := exec.Command("bash", "-c", ask)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.line, got, err, c.want)
		}
	}
}

func TestCompletions(t *testing.T) {
	for shell, want := range map[string][]string{
		"zsh":  {"#compdef prog", `'list:list "all" things'`, `'--json[print JSON]:string:_files'`},
		"fish": {`-l out -s o -r -d 'where [to] write: a '\''file'\'''`, "-a list"},
	} {
		var b bytes.Buffer
		if err := program.completion(&b, []string{shell}); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(b.String(), w) {
				t.Errorf("%s: no %q in\n%s", shell, w, b.String())
			}
		}
	}
	if err := program.completion(nil, []string{"tcsh"}); err == nil || !strings.Contains(err.Error(), "bash, zsh, fish") {
		t.Errorf("another shell: %v", err)
	}
}

func TestMan(t *testing.T) {
	var b bytes.Buffer
	program.man(&b)
	for _, want := range []string{".TH PROG 1", `prog \- does things`, ".nf\n  prog it's \\-x\n.fi", "\\&.starts with a dot\n.PP\n.nf\n  an example\n\n.fi\nand text", `\fB\-j, \-\-json\fR string`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestVersion(t *testing.T) {
	if v := version("prog"); !strings.HasPrefix(v, "prog 0.") || strings.Contains(v, "\n") {
		t.Errorf("version %q", v)
	}
}
