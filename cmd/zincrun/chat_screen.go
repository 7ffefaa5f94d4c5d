package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/markdown"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// screen prints answers as they come: reasoning dimmed or folded, what a terminal would take for a
// command left out.
type screen struct {
	out     io.Writer          // the answer
	aside   io.Writer          // reasoning and tool calls
	text    *markdown.Renderer // to out; nil: as it is
	thought *markdown.Renderer // to aside; nil: as it is
	colors  bool
	folded  bool
	section section
	pieces  int // of the folded reasoning
	answer  chat.Message
	blank   bool // only white space of this section came so far
}

// section is what the last piece was a part of.
type section int

const (
	nothing section = iota
	reasoning
	content
	call
)

// terminalScreen shows answers on the terminal, or as they are where plain says so or where there is none.
func terminalScreen(plain bool) *screen {
	s := &screen{out: cli.Stdout.Screen(), aside: cli.Stderr.Screen(), colors: colorsOn(os.Stderr)}
	render := func(f *os.File, to io.Writer, o markdown.Options) *markdown.Renderer {
		if plain || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
			return nil
		}
		o.Styles = colorsOn(f)
		o.Width = func() int {
			w, _, err := term.GetSize(int(f.Fd()))
			if err != nil {
				return 0
			}
			return w
		}
		return markdown.New(to, o)
	}
	s.text = render(os.Stdout, s.out, markdown.Options{})
	s.thought = render(os.Stderr, s.aside, markdown.Options{Dim: true})
	return s
}

// colorsOn reports whether what f shows may be colored.
func colorsOn(f *os.File) bool {
	return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// dim prints text to the aside in a paler color.
func (s *screen) dim(text string) {
	if s.colors && text != "" {
		text = "\x1b[2m" + text + "\x1b[22m"
	}
	io.WriteString(s.aside, text)
}

// show prints a piece and keeps it.
func (s *screen) show(p talk.Piece) error {
	s.answer.Add(p.Delta)
	var err error
	switch {
	case p.Reasoning != "":
		s.enter(reasoning)
		if s.folded {
			s.pieces++
			if s.colors {
				s.dim(fmt.Sprintf("\rthinking, %d pieces", s.pieces))
			}
			break
		}
		if s.thought != nil {
			_, err = io.WriteString(s.thought, s.printable(p.Reasoning))
			break
		}
		s.dim(s.printable(p.Reasoning))
	case p.Content != "":
		s.enter(content)
		if s.text != nil {
			_, err = io.WriteString(s.text, s.printable(p.Content))
			break
		}
		_, err = io.WriteString(s.out, s.printable(p.Content))
	case p.Call != nil:
		if p.Call.Name != "" {
			if s.section == call {
				io.WriteString(s.aside, "\n")
			}
			s.enter(call)
			s.dim("[calls " + printable.Name(p.Call.Name) + " with ")
		}
		s.dim(s.printable(p.Call.Arguments))
	}
	return err
}

// enter begins a section on a line of its own.
func (s *screen) enter(next section) {
	if s.section == next {
		return
	}
	s.flush()
	switch s.section {
	case reasoning:
		io.WriteString(s.aside, "\n\n")
	case content, call:
		io.WriteString(s.aside, "\n")
	}
	s.section, s.blank = next, true
}

// flush shows what a renderer holds back.
func (s *screen) flush() {
	switch {
	case s.section == reasoning && s.thought != nil:
		s.thought.Close()
	case s.section == content && s.text != nil:
		s.text.Close()
	}
}

// end ends the answer's last line and returns the answer.
func (s *screen) end() chat.Message {
	s.flush()
	if s.section != nothing {
		to := s.aside
		if s.section == content {
			to = s.out
		}
		io.WriteString(to, "\n")
	}
	m := s.answer
	m.Role, m.Content = "assistant", strings.TrimLeft(m.Content, "\n")
	s.answer, s.section, s.pieces = chat.Message{}, nothing, 0
	return m
}

// printable leaves out the white space that a section begins with, and what printable does.
func (s *screen) printable(text string) string {
	if s.blank {
		text = strings.TrimLeft(text, " \n")
		s.blank = text == ""
	}
	return printable.Stream(text)
}
