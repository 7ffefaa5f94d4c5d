package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
)

// elsewhere are commands of readmeText that need what a test has not: a network, a model that nobody put there, a GPU,
// minutes.
var elsewhere = []string{
	"make ", "go install ", "source ", "zincrun pull ", "zincrun chat qwen3:8b", "zincrun serve ", "curl ",
	"zincrun man >/usr/", "zincrun chat testdata/", // TestTerminals holds that conversation
}

// stands are what stands in readmeText for files of the reader's.
var stands = strings.NewReplacer("qwen3-8b.gguf", "chat.gguf", "model.gguf", "chat.gguf", "a.bin b.bin", "plan.bin plan.bin", ".build/gopher-chat.bin", "plan.bin")

// readmeText is what a newcomer reads: README.md and docs/using.md.
func readmeText(t *testing.T) string {
	t.Helper()
	var all []byte
	for _, name := range []string{"../../README.md", "../../docs/using.md"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, text...)
	}
	return string(all)
}

// readme returns the commands of readmeText with what it says that they print.
func readme(t *testing.T) (commands []string, printed [][]string) {
	t.Helper()
	command := regexp.MustCompile(`^    (\$ )?((?:zincc|zincrun|make|go install|source|curl|git diff) .*)$`)
	for line := range strings.Lines(readmeText(t)) {
		line = strings.TrimRight(line, "\n")
		if m := command.FindStringSubmatch(line); m != nil && !strings.Contains(line, " = ") {
			one, _, _ := strings.Cut(m[2], "   #")
			commands, printed = append(commands, strings.TrimSpace(one)), append(printed, nil)
			continue
		}
		if n := len(commands); n > 0 && strings.HasPrefix(line, "    ") {
			printed[n-1] = append(printed[n-1], line[4:])
		}
	}
	if len(commands) < 20 {
		t.Fatalf("README.md and docs/using.md have only the commands %q", commands)
	}
	return commands, printed
}

// TestReadme runs the commands of readmeText on the chat model, in a folder of their own. Those of make must be there.
func TestReadme(t *testing.T) {
	if testing.Short() {
		t.Skip("it compiles four plans")
	}
	dir := t.TempDir()
	zincc, self := filepath.Join(dir, "zincc"), filepath.Join(dir, "zincrun")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", zincc, "../zincc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	test, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	model, err := filepath.Abs("../../testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Symlink(test, self), os.Symlink(model, filepath.Join(dir, "chat.gguf"))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	env := homeEnv(filepath.Join(dir, "home"))
	run := func(name string, args ...string) (string, error) {
		c := exec.Command(name, args...)
		c.Dir, c.Env = dir, env
		c.Stdin = strings.NewReader("What does sort.Search do?")
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("zincc", "compile", "chat.gguf", "--target", "native", "-o", "plan.bin"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	commands, printed := readme(t)
	ran := 0
	for i, command := range commands {
		if target, ok := strings.CutPrefix(command, "make "); ok {
			if out, err := exec.Command("make", "-C", "../..", "-n", target).CombinedOutput(); err != nil {
				t.Errorf("%s: %v: %s", command, err, out)
			}
			continue
		}
		if slices.ContainsFunc(elsewhere, func(p string) bool { return strings.HasPrefix(command, p) }) {
			continue
		}
		ran++
		command = stands.Replace(command)
		command = strings.ReplaceAll(command, "git diff |", "echo diff |")
		out, err := run("sh", "-c", command)
		if err != nil {
			t.Errorf("%s: %v: %s", command, err, out)
		}
		for _, want := range printed[i] {
			// What has figures, names of this computer or dots in place of the rest may be another here.
			if strings.ContainsAny(want, "0123456789*") || strings.Contains(want, "...") || strings.TrimSpace(want) == "" || strings.HasPrefix(command, "zincrun devices") {
				continue
			}
			if !strings.Contains(out, want) {
				t.Errorf("%s prints %q, and not %q", command, out, want)
			}
		}
	}
	if ran < 12 {
		t.Errorf("only %d of the commands %q are run", ran, commands)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out, err := run("zincrun", "completion", shell); err != nil || len(out) < 100 {
			t.Errorf("completion %s: %v: %s", shell, err, out)
		}
	}
	if out, err := run("zincrun", "man"); err != nil || !strings.Contains(out, ".SH COMMANDS") {
		t.Errorf("man: %v: %s", err, out)
	}
	servesAsReadme(t, dir, env)
}

// TestReadmeNames: commands and flags of zincrun in the running text of readmeText exist.
func TestReadmeNames(t *testing.T) {
	all := regexp.MustCompile("`(?:[^`]*\\| )?zincrun ([a-z-]+)([^`]*)`").FindAllStringSubmatch(readmeText(t), -1)
	if len(all) < 8 {
		t.Errorf("README.md and docs/using.md name only %d commands of zincrun", len(all))
	}
	for _, m := range all {
		at := slices.IndexFunc(program.Commands, func(c cli.Command) bool { return c.Name == m[1] })
		if at < 0 {
			t.Errorf("%s: there is no such command", m[0])
			continue
		}
		flags := pflag.NewFlagSet(m[1], pflag.ContinueOnError)
		program.Commands[at].Setup(flags)
		for _, f := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(m[2], -1) {
			if flags.Lookup(f[1]) == nil {
				t.Errorf("%s: there is no flag --%s", m[0], f[1])
			}
		}
	}
}

// servesAsReadme sends the request of docs/using.md to the server that it starts, at another port.
func servesAsReadme(t *testing.T, dir string, env []string) {
	m := regexp.MustCompile(`(?s)/v1/chat/completions -H 'Content-Type: application/json' -d '(\{.*?\})'\n.*?"content":("[^"]*")`).FindSubmatch([]byte(readmeText(t)))
	if m == nil {
		t.Fatal("docs/using.md has no request of a conversation")
	}
	c := exec.Command(filepath.Join(dir, "zincrun"), "serve", "plan.bin", "--port", "0")
	c.Dir, c.Env = dir, env
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	}()
	lines := json.NewDecoder(said)
	url := ""
	for url == "" {
		var line struct{ URL string }
		if err := lines.Decode(&line); err != nil {
			t.Fatal(err)
		}
		url = line.URL
	}
	go io.Copy(io.Discard, said)
	client := &http.Client{Timeout: time.Minute}
	resp, err := client.Post(url+"/v1/chat/completions", "application/json", bytes.NewReader(m[1]))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || !bytes.Contains(body, m[2]) {
		t.Errorf("%v: %s, want %s", err, body, m[2])
	}
}
