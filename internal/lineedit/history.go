package lineedit

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// maxHistory is how many lines a history keeps.
const maxHistory = 1000

// history is the messages that were typed, the last one last, each a quoted string in a line of the file.
// That the file cannot be read or written is no error.
type history struct {
	path  string
	lines []string
}

func readHistory(path string) *history {
	h := &history{path: path}
	if path == "" {
		return h
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return h
	}
	for quoted := range strings.Lines(string(data)) {
		if line, err := strconv.Unquote(strings.TrimSuffix(quoted, "\n")); err == nil {
			h.lines = append(h.lines, line)
		}
	}
	if n := len(h.lines); n > maxHistory {
		h.lines = h.lines[n-maxHistory:]
		h.write()
	}
	return h
}

// write makes the file anew.
func (h *history) write() {
	var b strings.Builder
	for _, line := range h.lines {
		b.WriteString(strconv.Quote(line) + "\n")
	}
	_ = os.WriteFile(h.path, []byte(b.String()), 0o600)
}

// Add appends a line that is not empty and not the one before.
func (h *history) Add(line string) {
	if n := len(h.lines); strings.TrimSpace(line) == "" || n > 0 && h.lines[n-1] == line {
		return
	}
	h.lines = append(h.lines, line)
	if h.path == "" || os.MkdirAll(filepath.Dir(h.path), 0o700) != nil {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = f.WriteString(strconv.Quote(line) + "\n")
}

// Len is the number of lines.
func (h *history) Len() int { return len(h.lines) }

// At returns a line; 0 is the last one.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }

// find looks for the newest entry from i on that holds query.
func (h *history) find(query string, i int) (at int, ok bool) {
	for ; i < h.Len(); i++ {
		if strings.Contains(h.At(i), query) {
			return i, true
		}
	}
	return 0, false
}
