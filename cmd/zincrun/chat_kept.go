package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/runtime/chat"
)

// kept is the folder of the conversations that were held, a file each. Its owner alone can read it.
type kept struct {
	dir  string // "": conversations are not kept
	file string // of this one; "" before its first answer
}

// mostKept is how many conversations are kept; the oldest go.
const mostKept = 500

// stateDir is the folder for what users would miss if it were gone, by the XDG Base Directory Specification.
func stateDir() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "zincc"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "state", "zincc"), nil
}

// openKept makes the folder.
func openKept() (*kept, error) {
	dir, err := stateDir()
	if err != nil {
		return &kept{}, err
	}
	dir = filepath.Join(dir, "chats")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return &kept{}, err
	}
	return &kept{dir: dir}, os.Chmod(dir, 0o700)
}

// files are the conversations, the newest first.
func (k *kept) files() []string {
	if k.dir == "" {
		return nil
	}
	all, _ := filepath.Glob(filepath.Join(k.dir, "*.json"))
	changed := map[string]time.Time{}
	for _, path := range all {
		if info, err := os.Stat(path); err == nil {
			changed[path] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(changed[b].Compare(changed[a]), strings.Compare(b, a)) })
	return all
}

// keep writes the conversation, whole or not at all.
func (k *kept) keep(s *saved) error {
	if k.dir == "" {
		return nil
	}
	f, err := os.CreateTemp(k.dir, ".new-*")
	if err != nil {
		return err
	}
	err = errors.Join(s.write(f), f.Close())
	if err == nil && k.file == "" {
		// The file's own name is made at random: two programs may begin at the same time.
		k.file = filepath.Join(k.dir, time.Now().Format("2006-01-02-150405")+strings.TrimPrefix(filepath.Base(f.Name()), ".new")+".json")
		if old := k.files(); len(old) >= mostKept {
			for _, path := range old[mostKept-1:] {
				os.Remove(path)
			}
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), k.file)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}

// last finds the newest conversation with a model.
func (k *kept) last(model string) (string, *saved, error) {
	for _, path := range k.files() {
		if s, err := readSaved(path); err == nil && s.Model == model {
			return path, s, nil
		}
	}
	return "", nil, fmt.Errorf("no conversation with %s is kept", printable.Name(model))
}

// resume goes on with a conversation that was kept, in its file.
func (c *conversation) resume(path string, s *saved) {
	c.messages, c.options.Sampling, c.kept.file = s.messages(), s.Params, path
	fmt.Fprintf(cli.Stderr, "%d messages; the last said: %s\n", len(s.Messages), printable.Name(lastText(c.messages)))
}

func lastText(messages []chat.Message) string {
	if len(messages) == 0 {
		return ""
	}
	return strings.TrimSpace(messages[len(messages)-1].Content)
}

// shownSessions is how many conversations /sessions lists.
const shownSessions = 20

// sessions lists the conversations that are kept, or goes on with one.
func sessions(_ context.Context, c *conversation, args string) error {
	files := c.kept.files()
	if args != "" {
		n, err := strconv.Atoi(args)
		if err != nil || n < 1 || n > len(files) {
			return fmt.Errorf("/sessions %s: want a number from 1 to %d", printable.Name(args), len(files))
		}
		s, err := readSaved(files[n-1])
		if err != nil {
			return err
		}
		c.resume(files[n-1], s)
		return nil
	}
	if len(files) == 0 {
		return errors.New("no conversation is kept")
	}
	t := &table.Table{Title: "conversations, newest first; /sessions N goes on with one", Columns: []string{"n", "when", "model", "messages", "began with"}}
	for i, path := range files[:min(len(files), shownSessions)] {
		s, err := readSaved(path)
		if err != nil {
			continue
		}
		info, err := os.Stat(path)
		if err != nil {
			continue
		}
		t.Add(i+1, info.ModTime().Format("2006-01-02 15:04"), short(s.Model, 16), len(s.Messages), short(s.first(), 28))
	}
	return t.WriteText(cli.Stderr)
}

// short is the first line of a text, of at most that many characters.
func short(text string, most int) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	runes := []rune(printable.Line(line))
	if len(runes) > most || more {
		return string(runes[:min(len(runes), most-3)]) + "..."
	}
	return string(runes)
}
