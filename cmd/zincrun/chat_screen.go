package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// screen prints answers as they come: reasoning dimmed or folded, what a terminal would take for a
// command left out.
type screen struct {
	out     io.Writer // the answer
	aside   io.Writer // reasoning and tool calls
	colors  bool
	folded  bool
	section section
	thought int // pieces of the folded reasoning
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
			s.thought++
			if s.colors {
				s.dim(fmt.Sprintf("\rthinking, %d pieces", s.thought))
			}
			break
		}
		s.dim(s.printable(p.Reasoning))
	case p.Content != "":
		s.enter(content)
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
	switch s.section {
	case reasoning:
		io.WriteString(s.aside, "\n\n")
	case content, call:
		io.WriteString(s.aside, "\n")
	}
	s.section, s.blank = next, true
}

// end ends the answer's last line and returns the answer.
func (s *screen) end() chat.Message {
	if s.section != nothing {
		to := s.aside
		if s.section == content {
			to = s.out
		}
		io.WriteString(to, "\n")
	}
	m := s.answer
	m.Role, m.Content = "assistant", strings.TrimLeft(m.Content, "\n")
	s.answer, s.section, s.thought = chat.Message{}, nothing, 0
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
