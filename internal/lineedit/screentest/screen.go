// Package screentest models a terminal for tests: cells, not bytes. It knows what our programs write: text of any
// width, line breaks, and the control sequences for moving, erasing and colors. Anything else is kept in Unknown, so
// that a test fails.
package screentest

import (
	"strconv"
	"strings"
	"sync"

	"github.com/rivo/uniseg"
)

// Screen is a terminal of Width x Height cells. A wide character has its text in its first cell and "" in the other. It
// is safe for a writer and a reader at a time.
type Screen struct {
	mu            sync.Mutex
	width, height int
	cells         [][]string
	x, y          int
	pending       bool // the next character begins a row
	held          []byte
	scrolled      []string // rows that left at the top
	unknown       []string
}

// New returns an empty screen.
func New(width, height int) *Screen {
	s := &Screen{width: width, height: height}
	for range height {
		s.cells = append(s.cells, s.blank())
	}
	return s
}

func (s *Screen) blank() []string {
	row := make([]string, s.width)
	for i := range row {
		row[i] = " "
	}
	return row
}

// Write shows what a program writes. The end of it that is no whole character or sequence waits for the rest.
func (s *Screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := string(append(s.held, p...))
	for data != "" {
		n := s.take(data)
		if n == 0 {
			break
		}
		data = data[n:]
	}
	s.held = []byte(data)
	return len(p), nil
}

// take shows the first character or sequence of data and returns its length, 0 if it is not whole.
func (s *Screen) take(data string) int {
	switch data[0] {
	case '\r':
		s.x, s.pending = 0, false
		return 1
	case '\n':
		s.down()
		return 1
	case '\b':
		s.x = max(s.x-1, 0)
		return 1
	case '\a':
		return 1
	case 0x1b:
		return s.sequence(data)
	}
	end := strings.IndexAny(data, "\r\n\b\a\x1b")
	if end < 0 {
		end = len(data)
	}
	for rest, state := data[:end], -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		s.put(cluster, w)
	}
	return end
}

func (s *Screen) put(cluster string, w int) {
	if s.pending || s.x+w > s.width {
		s.x, s.pending = 0, false
		s.down()
	}
	if w == 0 {
		return
	}
	s.cells[s.y][s.x] = cluster
	for i := 1; i < w; i++ {
		s.cells[s.y][s.x+i] = ""
	}
	if s.x += w; s.x == s.width {
		s.x, s.pending = s.width-1, true
	}
}

func (s *Screen) down() {
	if s.pending = false; s.y < s.height-1 {
		s.y++
		return
	}
	s.scrolled = append(s.scrolled, strings.TrimRight(strings.Join(s.cells[0], ""), " "))
	s.cells = append(s.cells[1:], s.blank())
}

func (s *Screen) sequence(data string) int {
	if len(data) < 2 {
		return 0
	}
	if data[1] != '[' {
		s.unknown = append(s.unknown, data[:2])
		return 2
	}
	n := 2
	for n < len(data) && data[n] >= 0x20 && data[n] < 0x40 {
		n++
	}
	if n == len(data) {
		return 0
	}
	arg, err := strconv.Atoi(data[2:n])
	count := max(arg, 1)
	if err != nil {
		arg = 0
	}
	clear := func(y, from, to int) {
		for x := from; x < to; x++ {
			s.cells[y][x] = " "
		}
	}
	switch data[n] {
	case 'A':
		s.y, s.pending = max(s.y-count, 0), false
	case 'B':
		s.y, s.pending = min(s.y+count, s.height-1), false
	case 'C':
		s.x, s.pending = min(s.x+count, s.width-1), false
	case 'D':
		s.x, s.pending = max(s.x-count, 0), false
	case 'H':
		s.x, s.y, s.pending = 0, 0, false
	case 'J':
		if arg == 2 {
			for y := range s.cells {
				clear(y, 0, s.width)
			}
			break
		}
		clear(s.y, s.x, s.width)
		for y := s.y + 1; y < s.height; y++ {
			clear(y, 0, s.width)
		}
	case 'K':
		clear(s.y, s.x, s.width)
	case 'm', 'h', 'l': // colors, and modes such as that of pastes
	default:
		s.unknown = append(s.unknown, data[:n+1])
	}
	return n + 1
}

// Resize gives the terminal another size, as terminals do that do not wrap anew: rows are cut or filled at the right.
func (s *Screen) Resize(width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.width, s.pending = width, false
	for y, row := range s.cells {
		s.cells[y] = append(row, s.blank()...)[:width]
	}
	for s.height > height {
		if s.y < s.height-1 {
			s.cells = s.cells[:s.height-1]
		} else {
			s.scrolled = append(s.scrolled, strings.TrimRight(strings.Join(s.cells[0], ""), " "))
			s.cells, s.y = s.cells[1:], s.y-1
		}
		s.height--
	}
	for ; s.height < height; s.height++ {
		s.cells = append(s.cells, s.blank())
	}
	s.x = min(s.x, width-1)
}

// Size is the terminal's width and height.
func (s *Screen) Size() (width, height int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.width, s.height
}

// Rows are the rows from the first to the last with text, without the blanks that they end in.
func (s *Screen) Rows() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var rows []string
	last := 0
	for i, row := range s.cells {
		rows = append(rows, strings.TrimRight(strings.Join(row, ""), " "))
		if rows[i] != "" {
			last = i + 1
		}
	}
	return rows[:last]
}

// Scrolled are the rows that left at the top.
func (s *Screen) Scrolled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.scrolled...)
}

// Cursor is the cell and the row that the cursor is in, from 0.
func (s *Screen) Cursor() (x, y int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.x, s.y
}

// Unknown are the control sequences that the model does not know.
func (s *Screen) Unknown() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.unknown...)
}
