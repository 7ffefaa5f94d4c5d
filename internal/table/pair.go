package table

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// pairMin is the width that each column of a pair gets at least; with less, all but one of the columns before it
	// are written above the rows.
	pairMin    = 36
	pairIndent = 4
)

// pairText is a table whose last two columns are compared: they stand beside each other, and long values are wrapped
// within their columns.
type pairText struct {
	*grid
	above  int // columns that are written above the rows for which they hold
	widths [2]int
}

func newPair(g *grid) *pairText {
	p := &pairText{grid: g}
	last := len(g.head) - 2
	room := p.room(last)
	if want := g.widths[last] + g.widths[last+1]; want > room && room < 2*pairMin && last > 1 {
		p.above = last - 1
		room = p.room(last)
	}
	p.widths = shares(g.widths[last], g.widths[last+1], max(room, 2*pairMin))
	return p
}

// room is what the columns from above to last leave to the pair, with its gaps.
func (p *pairText) room(last int) int {
	room := LineWidth - 4
	if p.above > 0 {
		room -= pairIndent
	}
	for _, w := range p.grid.widths[p.above:last] {
		room -= w + 2
	}
	return room
}

// shares divides the room: a column that is content with less than half leaves the rest to the other.
func shares(a, b, room int) [2]int {
	switch {
	case a+b <= room:
		return [2]int{a, b}
	case a <= room/2:
		return [2]int{a, room - a}
	case b <= room/2:
		return [2]int{room - b, b}
	}
	return [2]int{room / 2, room / 2}
}

func (p *pairText) write(b *strings.Builder) {
	p.line(b, p.head, true)
	for i, cells := range p.cells {
		p.line(b, cells, i == 0 || !slices.Equal(cells[:p.above], p.cells[i-1][:p.above]))
	}
}

// line writes a row, below the columns that stand above it where they are new.
func (p *pairText) line(b *strings.Builder, cells []string, heading bool) {
	indent := ""
	if p.above > 0 {
		indent = strings.Repeat(" ", pairIndent)
		if heading {
			b.WriteString("  " + strings.TrimRight(strings.Join(cells[:p.above], "  "), " ") + "\n")
		}
	}
	last := len(cells) - 2
	left, right := wrapCell(cells[last], p.widths[0]), wrapCell(cells[last+1], p.widths[1])
	for i := 0; i < max(len(left), len(right), 1); i++ {
		line := indent
		for c := p.above; c < last; c++ {
			cell := ""
			if i == 0 {
				cell = cells[c]
			}
			line += "  " + pad(cell, p.grid.widths[c], p.right[c])
		}
		line += "  " + pad(at(left, i), p.widths[0], p.right[last]) + "  " + pad(at(right, i), p.widths[1], p.right[last+1])
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

func pad(s string, width int, right bool) string {
	if right {
		return fmt.Sprintf("%*s", width, s)
	}
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

// wrapCell breaks a cell behind words, and words that are too long behind a comma or where the column ends.
func wrapCell(text string, width int) []string {
	var lines []string
	for _, line := range Wrap(text, width) {
		for utf8.RuneCountInString(line) > width {
			runes := []rune(line)
			cut := strings.LastIndexByte(string(runes[:width]), ',') + 1
			if cut == 0 {
				cut = len(string(runes[:width]))
			}
			lines, line = append(lines, line[:cut]), line[cut:]
		}
		lines = append(lines, line)
	}
	return lines
}
