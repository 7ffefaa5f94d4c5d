package lineedit

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/internal/lineedit/screentest"
)

// typist is a terminal and somebody who types at it.
type typist struct {
	*Editor
	screen *screentest.Screen
	keys   *io.PipeWriter
	wants  chan struct{} // the editor waits for keys
	said   chan string
	sizes  chan os.Signal
}

// waiting tells when a reader is asked, before it waits.
type waiting struct {
	in   io.Reader
	asks chan struct{}
}

func (w waiting) Read(p []byte) (int, error) {
	w.asks <- struct{}{}
	return w.in.Read(p)
}

func newTypist(t testing.TB, width, height int, above string) *typist {
	in, keys := io.Pipe()
	x := &typist{screen: screentest.New(width, height), keys: keys, wants: make(chan struct{}), said: make(chan string, 1), sizes: make(chan os.Signal)}
	x.Editor = newEditor(waiting{in, x.wants}, x.screen, "")
	x.size = func() (int, int, error) { w, h := x.screen.Size(); return w, h, nil }
	x.resized = func() (<-chan os.Signal, func()) { return x.sizes, func() {} }
	io.WriteString(x.screen, above)
	go func() {
		s, err := x.Read("> ", ". ")
		x.said <- fmt.Sprintf("%s %v", s, err)
	}()
	<-x.wants
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() { keys.Close() })
	}
	return x
}

func (x *typist) press(keys string) {
	io.WriteString(x.keys, keys)
	<-x.wants
}

func (x *typist) enter() string {
	io.WriteString(x.keys, "\r")
	return <-x.said
}

func (x *typist) check(t *testing.T, what string, col, line int, rows ...string) {
	t.Helper()
	if got := x.screen.Rows(); strings.Join(got, "|") != strings.Join(rows, "|") {
		t.Errorf("%s: the screen shows %q, want %q", what, got, rows)
	}
	if cx, cy := x.screen.Cursor(); cx != col || cy != line || len(x.screen.Unknown()) > 0 {
		t.Errorf("%s: the cursor is in cell %d of row %d, want %d of %d; unknown sequences %q", what, cx, cy, col, line, x.screen.Unknown())
	}
}

func TestScreenOfWideCharacters(t *testing.T) {
	x := newTypist(t, 10, 6, "above\r\n")
	x.press("日本語")
	x.check(t, "three characters", 8, 1, "above", "> 日本語")
	x.press("\x1b[D")
	x.check(t, "one back", 6, 1, "above", "> 日本語")
	x.press("a")
	x.check(t, "one between", 7, 1, "above", "> 日本a語")
	x.press("🙂")
	x.check(t, "an emoji in front of the edge", 0, 2, "above", "> 日本a🙂", "語")
	x.press("\x7f\x7f")
	x.check(t, "both deleted", 6, 1, "above", "> 日本語")
	if said := x.enter(); said != "日本語 <nil>" {
		t.Errorf("said %q", said)
	}
}

func TestScreenAtTheEdge(t *testing.T) {
	x := newTypist(t, 8, 6, "above\r\n")
	x.press("abcdef")
	x.check(t, "a full row", 0, 2, "above", "> abcdef")
	x.press("g")
	x.check(t, "and one more", 1, 2, "above", "> abcdef", "g")
	x.press("\x01")
	x.check(t, "to the start", 2, 1, "above", "> abcdef", "g")
	x.press("\x1b[B")
	x.check(t, "a row down", 1, 2, "above", "> abcdef", "g")
	x.press("\x15")
	x.check(t, "deleted", 2, 1, "above", ">")
}

func TestScreenResized(t *testing.T) {
	x := newTypist(t, 12, 8, "above\r\n")
	x.press("one two three four")
	x.check(t, "two rows", 8, 2, "above", "> one two th", "ree four")
	x.screen.Resize(30, 8)
	x.sizes <- os.Interrupt
	x.press("!")
	x.check(t, "wider", 21, 1, "above", "> one two three four!")
	x.screen.Resize(9, 8)
	x.sizes <- os.Interrupt
	x.press("!")
	if rows := x.screen.Rows(); rows[0] != "above" || strings.Join(rows[len(rows)-3:], "|") != "> one two| three fo|ur!!" {
		t.Errorf("narrower: %q", rows)
	}
	if said := x.enter(); said != "one two three four!! <nil>" {
		t.Errorf("said %q", said)
	}
}

func TestScreenOfALongPaste(t *testing.T) {
	x := newTypist(t, 20, 6, "above\r\n")
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	x.press(pasteBegins + b.String() + "end" + pasteEnds)
	if rows := x.screen.Rows(); rows[len(rows)-1] != ". end" || rows[len(rows)-2] != ". line 1999" {
		t.Errorf("%q", rows)
	}
	if said := x.enter(); said != b.String()+"end <nil>" {
		t.Errorf("%d bytes said", len(said))
	}
}

// TestScreenIsTheText types at random and compares each screen with the text that is edited.
func TestScreenIsTheText(t *testing.T) {
	keys := []string{"a", "bc def", "日本", "é", "🙂", "\t", "\n", "\x1b[D", "\x1b[C", "\x1b[A", "\x1b[B", "\x7f", "\x01", "\x05", "\x1bb", "\x1bf", "\x17", "\x0b", "\x19", "\x1b[3~"}
	rapid.Check(t, func(t *rapid.T) {
		x := newTypist(nil, rapid.IntRange(7, 24).Draw(t, "width"), 40, "above\r\n")
		defer func() { x.keys.CloseWithError(io.EOF); <-x.said }()
		for range rapid.IntRange(1, 30).Draw(t, "keys") {
			x.press(rapid.SampledFrom(keys).Draw(t, "key"))
			all := layout(x.text.s, "> ", ". ", x.view.width)
			line, col := place(all, x.text.s, x.text.at)
			want := []string{"above"}
			for _, r := range all {
				want = append(want, strings.TrimRight(r.text, " "))
			}
			if got := x.screen.Rows(); len(all) < 38 && strings.Join(got, "|") != strings.TrimRight(strings.Join(want, "|"), "|") {
				t.Fatalf("the screen shows %q, want %q", got, want)
			}
			if cx, cy := x.screen.Cursor(); len(all) < 38 && (cx != col || cy != line+1) {
				t.Fatalf("%q: the cursor is in cell %d of row %d, want %d of %d", x.text.s, cx, cy, col, line+1)
			}
		}
	})
}
