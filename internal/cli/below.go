package cli

import (
	"io"
	"os"
	"regexp"
	"strings"
	"sync"

	"golang.org/x/term"
)

// belowLine is the line below all that a terminal shows. Whatever else is written there takes its place until it is
// shown again. It is not shown while another line has no end.
type belowLine struct {
	mu    sync.Mutex
	to    io.Writer
	shown bool
	open  bool // the cursor is behind text of others
}

var below = &belowLine{to: os.Stderr}

func (b *belowLine) width() int {
	w, _, err := term.GetSize(int(os.Stderr.Fd()))
	if err != nil || w <= 0 {
		return 80
	}
	return w
}

func (b *belowLine) show(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open {
		return
	}
	b.shown = true
	io.WriteString(b.to, "\r"+line+"\x1b[K")
}

func (b *belowLine) clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
}

func (b *belowLine) erase() {
	if b.shown {
		b.shown = false
		io.WriteString(b.to, "\r\x1b[K")
	}
}

// Write writes what others write, on to, which is the same terminal.
func (b *belowLine) write(to io.Writer, p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	n, err := to.Write(p)
	text := string(p)
	if at := strings.LastIndexByte(text, '\n'); at >= 0 {
		b.open, text = false, text[at+1:]
	}
	b.open = b.open || sequences.ReplaceAllString(text, "") != ""
	return n, err
}

// sequences move no cursor to the right.
var sequences = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]|\r")

// Entered says that the user has ended the line in which the terminal's cursor was.
func Entered() {
	below.mu.Lock()
	below.open = false
	below.mu.Unlock()
}
