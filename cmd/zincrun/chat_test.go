package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/talk"
)

// quiet is a conversation that nobody answers.
func quiet() *conversation {
	c := &conversation{model: &talk.Model{Ctx: 64}, screen: &screen{out: &bytes.Buffer{}, aside: &bytes.Buffer{}}, kept: &kept{}}
	c.options.Sampling = sample.Neutral()
	return c
}

// TestScreen checks what of an answer is printed where, and what is kept of it.
func TestScreen(t *testing.T) {
	text := func(reasoning, content string) talk.Piece {
		return talk.Piece{Delta: chat.Delta{Reasoning: reasoning, Content: content}}
	}
	call := func(index int, name, arguments string) talk.Piece {
		return talk.Piece{Delta: chat.Delta{Call: &chat.CallDelta{Index: index, Name: name, Arguments: arguments}}}
	}
	for _, c := range []struct {
		name            string
		pieces          []talk.Piece
		out, aside      string
		folded          bool
		content, called string
	}{
		{"text", []talk.Piece{text("", "\n\nHel"), text("", "lo")}, "Hello\n", "", false, "Hello", ""},
		{"reasoning", []talk.Piece{text("\nhm", ""), text(".", ""), text("", "\nYes")}, "Yes\n", "hm.\n\n", false, "Yes", ""},
		{"folded", []talk.Piece{text("hm", ""), text("", "Yes")}, "Yes\n", "\n\n", true, "Yes", ""},
		{"calls", []talk.Piece{text("", "See"), call(0, "f", ""), call(0, "", "{}"), call(1, "g", "{}")}, "See", "\n[calls f with {}\n[calls g with {}\n", false, "See", "f{}g{}"},
		{"escapes", []talk.Piece{text("", "a\x1b[31mb\x07\u202ec\td")}, "a[31mbc\td\n", "", false, "a\x1b[31mb\x07\u202ec\td", ""},
		{"nothing", nil, "", "", false, "", ""},
	} {
		var out, aside bytes.Buffer
		s := &screen{out: &out, aside: &aside, folded: c.folded}
		for _, p := range c.pieces {
			if err := s.show(p); err != nil {
				t.Fatal(err)
			}
		}
		m := s.end()
		called := ""
		for _, x := range m.Calls {
			called += x.Name + x.Arguments
		}
		if out.String() != c.out || aside.String() != c.aside || m.Content != c.content || called != c.called || m.Role != "assistant" {
			t.Errorf("%s: printed %q and %q, kept %+v", c.name, out.String(), aside.String(), m)
		}
	}
}

// TestCommands runs the commands that need no answer.
func TestCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "talk.json")
	c := quiet()
	c.messages = []chat.Message{{Role: "system", Content: "Be kind."}, {Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Hello"}}
	for _, step := range []struct {
		line, fails string
		messages    int
	}{
		{"/save " + file, "", 3},
		{"/undo", "", 1},
		{"/undo", "nothing was said", 1},
		{"/regen", "nothing was said", 1},
		{"/load " + file, "", 3},
		{"/load " + t.TempDir(), "", 3},
		{"/clear", "", 1},
		{"/system Be brief.", "", 1},
		{"/set temp 0.5", "", 1},
		{"/set top_k 7", "", 1},
		{"/set temperature -1", "temperature is -1", 1},
		{"/set nothing 1", "unknown parameter", 1},
		{"/set temp \"x\"", "unknown parameter", 1},
		{"/think 30", "", 1},
		{"/think maybe", "on, off or a number", 1},
		{"/fold", "", 1},
		{"/what", "unknown command /what", 1},
		{"/exit", "exit", 1},
	} {
		err := c.turn(context.Background(), step.line)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if step.line != "/load "+file && strings.HasPrefix(step.line, "/load") {
			if err == nil {
				t.Errorf("%s: a folder is a conversation", step.line)
			}
			continue
		}
		if !strings.Contains(said, step.fails) || (said == "") != (step.fails == "") || len(c.messages) != step.messages {
			t.Errorf("%s: error %q, want %q; %d messages, want %d", step.line, said, step.fails, len(c.messages), step.messages)
		}
	}
	if p := c.options.Sampling; p.Temp != 0.5 || p.TopK != 7 || c.system() != "Be brief." || *c.think.limit != 30 || !c.screen.folded {
		t.Errorf("after the commands: %+v, system %q", p, c.system())
	}
}

// TestSaveKeepsOthers checks that /save does not destroy a file that is no conversation.
func TestSaveKeepsOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(path, []byte("mine"), 0o666); err != nil {
		t.Fatal(err)
	}
	c := quiet()
	if err := c.turn(context.Background(), "/save "+path); err == nil {
		t.Error("the file was written")
	}
	if data, _ := os.ReadFile(path); string(data) != "mine" {
		t.Errorf("the file is %q", data)
	}
}

func TestReadSaved(t *testing.T) {
	for _, bad := range []string{"", "{", "[]", "{}", `{"messages":[{"content":"x"}]}`, `{"messages":[],"top_p":9}`} {
		path := filepath.Join(t.TempDir(), "talk.json")
		if err := os.WriteFile(path, []byte(bad), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := readSaved(path); err == nil {
			t.Errorf("%q is a conversation", bad)
		}
	}
}

func TestStatsOfNothing(_ *testing.T) {
	c := quiet()
	c.stats(1) // nothing was answered
	c.last = &engine.Done{Usage: engine.Usage{Prompt: 3}}
	c.stats(1)
}

func TestAskedAndPiped(t *testing.T) {
	for _, c := range [][3]string{{"why?", "a diff\n", "why?\n\na diff\n"}, {"why?", " \n", "why? \n"}, {"", "a diff", "a diff"}, {"why?", "", "why?"}} {
		if got := both(c[0], c[1]); got != c[2] {
			t.Errorf("%q and %q: %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
