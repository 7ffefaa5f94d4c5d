package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/zincc-dev/zincc/internal/lineedit/screentest"
)

// terminal is zincrun chat on a terminal of its own, and what that shows.
type terminal struct {
	t      *testing.T
	cmd    *exec.Cmd
	keys   *os.File
	screen *screentest.Screen
	ended  chan error

	mu  sync.Mutex
	raw []byte // all that was written
}

// chatOn starts zincrun chat in a home of its own, on a terminal of so many columns and 20 rows.
func chatOn(t *testing.T, home string, columns int, env []string, flags ...string) *terminal {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The binary of the tests is zincrun where it has that name.
	name := filepath.Join(home, "zincrun")
	if err := os.Symlink(self, name); err != nil && !errors.Is(err, os.ErrExist) {
		t.Fatal(err)
	}
	x := &terminal{t: t, screen: screentest.New(columns, 20), ended: make(chan error, 1)}
	x.cmd = exec.Command(name, append([]string{"chat", filepath.Join(home, "plan.bin"), "--temp", "0"}, flags...)...)
	x.cmd.Env = append(homeEnv(home), append([]string{"TERM=xterm-256color"}, env...)...)
	x.keys, err = pty.StartWithSize(x.cmd, &pty.Winsize{Rows: 20, Cols: uint16(columns)})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := x.keys.Read(b)
			x.screen.Write(b[:n])
			x.mu.Lock()
			x.raw = append(x.raw, b[:n]...)
			x.mu.Unlock()
			if err != nil {
				x.ended <- x.cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() {
		x.cmd.Process.Kill()
		x.keys.Close()
	})
	return x
}

func (x *terminal) press(keys string) {
	x.t.Helper()
	if _, err := x.keys.WriteString(keys); err != nil {
		x.t.Fatal(err)
	}
}

// shows waits for a text on the screen, whose rows are joined by "|".
func (x *terminal) shows(want string) {
	x.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		rows := strings.Join(x.screen.Rows(), "|")
		if strings.Contains(rows, want) {
			break
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the screen shows %q, want %q", rows, want)
		}
	}
	if u := x.screen.Unknown(); len(u) > 0 {
		x.t.Errorf("control sequences that the screen does not know: %q", u)
	}
}

// prompts waits for an empty prompt in the last row.
func (x *terminal) prompts() {
	x.t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		rows := x.screen.Rows()
		cx, cy := x.screen.Cursor()
		if len(rows) > 0 && rows[len(rows)-1] == ">" && cx == 2 && cy == len(rows)-1 {
			return
		}
		if time.Now().After(deadline) {
			x.t.Fatalf("the screen shows %q, want a prompt", rows)
		}
	}
}

func (x *terminal) exits(code int) {
	x.t.Helper()
	select {
	case err := <-x.ended:
		if got := x.cmd.ProcessState.ExitCode(); got != code {
			x.t.Errorf("exit code %d (%v), want %d; the screen shows %q", got, err, code, x.screen.Rows())
		}
	case <-time.After(time.Minute):
		x.t.Fatalf("the program goes on; the screen shows %q", x.screen.Rows())
	}
}

// homeEnv is the environment of somebody whose files are all in home.
func homeEnv(home string) []string {
	return append(os.Environ(), "HOME="+home, "XDG_CACHE_HOME="+home, "XDG_STATE_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home)
}

// TestTerminals talks to the chat model through terminals.
func TestTerminals(t *testing.T) {
	home := t.TempDir()
	zincc := filepath.Join(home, "zincc-program")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", zincc, "../zincc").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	compile := exec.Command(zincc, "compile", "../../testdata/models/gopher-chat-q4_k_m.gguf", "--target", "host", "-o", filepath.Join(home, "plan.bin"))
	compile.Env = homeEnv(home)
	if out, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Run("readme", func(t *testing.T) { talkAsReadme(t, home) })
	t.Run("narrow", func(t *testing.T) { talkNarrow(t, home) })
	t.Run("piped", func(t *testing.T) { talkThroughPipes(t, home) })
	t.Run("private", func(t *testing.T) { talkPrivately(t, home) })
	t.Run("kept", func(t *testing.T) { talkTwice(t, home) })
}

// talkTwice talks as a person would: ^C at the prompt, wide characters, another size, a paste, a path, and what is
// there in the next program.
func talkTwice(t *testing.T, home string) {
	x := chatOn(t, home, 60, nil, "--think", "off")
	x.shows("context 2048")
	x.prompts()
	x.press("What does strings.Cut do?\r")
	x.shows("> What does strings.Cut do?|Cut slices s around the first instance of sep, returning the|text before and after sep.|>")
	x.prompts()

	// ^C takes the line, and neither the program nor the conversation.
	x.press("half a li\x03")
	x.shows("> half a li|/exit or ^D ends|>")
	x.prompts()
	x.press("/stats\r")
	x.shows("answer")
	x.prompts()

	x.press("日本語")
	x.shows("> 日本語")
	if cx, _ := x.screen.Cursor(); cx != 8 {
		t.Errorf("behind three wide characters the cursor is in cell %d", cx)
	}
	x.press("\x7f\x7f\x7f")
	x.prompts()

	// A line that wraps, in a narrower terminal.
	x.press(strings.Repeat("word ", 14))
	x.shows("wor|d word word")
	x.screen.Resize(40, 20)
	if err := pty.Setsize(x.keys, &pty.Winsize{Rows: 20, Cols: 40}); err != nil {
		t.Fatal(err)
	}
	x.shows("|> word word word word word word word wor|d word word word word word word")
	x.press("\x15")
	x.prompts()

	x.press("/usr/bin/go is a path\x03")
	x.prompts()
	x.press("/nothing\r")
	x.shows("unknown command /nothing")
	x.prompts()
	x.press("\x1b[200~What does\r\nsort.Search do?\x1b[201~")
	x.shows("> What does|  sort.Search do?")
	x.press("\r")
	x.shows("binary search")
	x.prompts()
	x.press("\x04")
	x.exits(0)

	// The next program finds the paste as one message, and the conversation.
	x = chatOn(t, home, 60, nil, "--think", "off", "--continue")
	x.shows("4 messages; the last said: Search uses binary search")
	x.prompts()
	x.press("\x12Search")
	x.shows("search Search: What does|  sort.Search do?")
	x.press("\x03")
	x.press("/sessions\r")
	x.shows("gopher-chat         4  What does")
	x.prompts()
	x.press("/exit\r")
	x.exits(0)
	files, err := filepath.Glob(filepath.Join(home, "zincc", "chats", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, path := range []string{files[0], filepath.Dir(files[0]), filepath.Join(home, "zincc", "history")} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

// talkPrivately checks that --private keeps nothing. It ends the program by a signal.
func talkPrivately(t *testing.T, home string) {
	x := chatOn(t, home, 60, []string{"NO_COLOR=1"}, "--private", "--think", "on")
	x.prompts()
	x.press("What does strings.Cut do?\r")
	x.shows("text before and after sep.")
	x.prompts()
	x.cmd.Process.Signal(syscall.SIGTERM)
	x.exits(1)
	for _, name := range []string{"chats", "history"} {
		if _, err := os.Stat(filepath.Join(home, "zincc", name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is kept: %v", name, err)
		}
	}
}

// colored are sequences that change colors and styles.
var colored = regexp.MustCompile(`\x1b\[[0-9;]*m`)

// styles says whether anything was written that changes colors or styles.
func (x *terminal) styles() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return colored.Match(x.raw)
}

// talkAsReadme holds the conversation of docs/using.md, of which all lines without figures must be as they are there.
func talkAsReadme(t *testing.T, home string) {
	_, rest, _ := strings.Cut(readmeText(t), "    $ zincrun chat testdata/models/gopher-chat-q4_k_m.gguf --temp 0\n")
	part, _, ok := strings.Cut(rest, "\n\nThe first line")
	if !ok {
		t.Fatal("docs/using.md has no conversation")
	}
	x := chatOn(t, home, 100, nil, "--private")
	said := 0
	for line := range strings.Lines(part) {
		line = strings.TrimSpace(line)
		if message, ok := strings.CutPrefix(line, "> "); ok {
			said++
			x.prompts()
			x.press(message + "\r")
			continue
		}
		if line != "" && !strings.ContainsAny(line, "0123456789") {
			x.shows(line)
		}
	}
	if x.exits(0); said < 4 {
		t.Errorf("docs/using.md says only %d lines", said)
	}
	if !x.styles() {
		t.Error("a terminal gets no styles")
	}
}

// talkNarrow reads a long message in 40 columns without colors: how far it is takes one row, and goes before the
// answer.
func talkNarrow(t *testing.T, home string) {
	x := chatOn(t, home, 40, []string{"NO_COLOR=1"}, "--private", "--think", "off", "-n", "8")
	x.prompts()
	x.press("\x1b[200~" + strings.Repeat("What does strings.Cut do? ", 60) + "\x1b[201~\r")
	x.shows("|reading the prompt")
	rows := x.screen.Rows()
	if at := slices.IndexFunc(rows, func(row string) bool { return strings.HasPrefix(row, "reading the prompt") }); at >= 0 && at != len(rows)-1 {
		t.Errorf("below how far it is there is something: %q", rows)
	}
	x.prompts()
	if rows := x.screen.Rows(); slices.ContainsFunc(rows, func(row string) bool { return strings.Contains(row, "reading") }) {
		t.Errorf("how far it is stays: %q", rows)
	}
	// ^C stops the reading, and nothing else.
	x.press("\x1b[200~" + strings.Repeat("And what is its signature? ", 60) + "\x1b[201~\r")
	x.shows("|reading the prompt")
	x.press("\x03")
	x.prompts()
	x.press("\x04")
	x.exits(0)
	if x.styles() {
		t.Error("with NO_COLOR there are styles")
	}
}

// talkThroughPipes asks through pipes, which get text and nothing that a terminal acts on.
func talkThroughPipes(t *testing.T, home string) {
	c := exec.Command(filepath.Join(home, "zincrun"), "chat", filepath.Join(home, "plan.bin"), "--temp", "0", "--think", "off", "-n", "8", "-f", "-")
	c.Env = append(homeEnv(home), "TERM=xterm-256color")
	c.Stdin = strings.NewReader(strings.Repeat("What does strings.Cut do? ", 30))
	out, err := c.CombinedOutput()
	if err != nil || len(out) < 8 || strings.ContainsAny(string(out), "\x1b\r") || strings.Contains(string(out), "reading") {
		t.Errorf("%v: %q", err, out)
	}
}
