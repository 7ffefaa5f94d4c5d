package lineedit

import (
	"fmt"
	"strings"

	"github.com/rivo/uniseg"
)

// A row is a row of the terminal: a part of a line, and what stands in front of it.
type row struct {
	text   string
	front  int  // cells of what stands in front
	from   int  // the byte of the text that it begins with
	to     int  // and the one behind it
	width  int  // in cells
	wraps  bool // the next row goes on with the same line
	filled bool // the terminal goes to the next row by itself
}

// layout breaks a text into rows of at most width cells: the first line behind prompt, the others behind more. A row
// that is full has another behind it, where the cursor can stand.
func layout(s, prompt, more string, width int) []row {
	var rows []row
	start := 0
	for i, line := range strings.SplitAfter(s, "\n") {
		front := more
		if i == 0 {
			front = prompt
		}
		cells := uniseg.StringWidth(front)
		r := row{text: front, front: cells, width: cells, from: start, to: start}
		wrap := func() {
			r.wraps, r.filled = true, r.width == width
			rows = append(rows, r)
			r = row{from: r.to, to: r.to}
		}
		for rest, state := strings.TrimSuffix(line, "\n"), -1; rest != ""; {
			var cluster string
			var w int
			cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
			shown := cluster
			if cluster == "\t" {
				shown, w = "    ", 4
			}
			if r.width+w > width && r.width > 0 {
				wrap()
			}
			r.text, r.width, r.to = r.text+shown, r.width+w, r.to+len(cluster)
		}
		if r.width >= width {
			wrap()
		}
		rows = append(rows, r)
		start += len(line)
	}
	return rows
}

// place finds the row and the cell of the cursor at a byte of the text.
func place(rows []row, s string, at int) (line, col int) {
	for line = len(rows) - 1; line > 0 && rows[line].from > at; line-- {
	}
	return line, rows[line].front + cells(s[rows[line].from:at])
}

// offset finds the byte of the text that is in cell col of a row, or the row's end.
func offset(r row, s string, col int) int {
	at, width := r.from, r.front
	for at < r.to {
		cluster, _, w, _ := uniseg.FirstGraphemeClusterInString(s[at:r.to], -1)
		if cluster == "\t" {
			w = 4
		}
		if width += w; width > col {
			break
		}
		at += len(cluster)
	}
	return at
}

// cells is the width of a part of a line.
func cells(s string) int { return uniseg.StringWidth(strings.ReplaceAll(s, "\t", "    ")) }

// view draws the text that is edited, below what the terminal showed before.
type view struct {
	width, height int
	drawn         []row // the rows that the terminal shows
	cursor        int   // and the one that the cursor is in
}

// draw shows the text in the place of what was drawn before. A text of more rows than the terminal has shows those
// around the cursor.
func (v *view) draw(s, prompt, more string, at int) string {
	rows := layout(s, prompt, more, v.width)
	line, col := place(rows, s, at)
	if most := max(v.height-1, 1); len(rows) > most {
		first := min(max(line-most/2, 0), len(rows)-most)
		rows, line = rows[first:first+most], line-first
	}
	var b strings.Builder
	b.WriteString(v.top())
	b.WriteString("\x1b[J")
	for i, r := range rows {
		b.WriteString(r.text)
		switch {
		case i == len(rows)-1:
		case !r.filled:
			b.WriteString("\r\n")
		case rows[i+1].text == "":
			b.WriteString(" \r") // the terminal goes on in the next row only when something is written there
		}
	}
	if up := len(rows) - 1 - line; up > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", up)
	}
	b.WriteByte('\r')
	if col > 0 {
		fmt.Fprintf(&b, "\x1b[%dC", col)
	}
	v.drawn, v.cursor = rows, line
	return b.String()
}

// top moves the cursor to where the text was drawn.
func (v *view) top() string {
	if v.cursor == 0 {
		return "\r"
	}
	return fmt.Sprintf("\x1b[%dA\r", v.cursor)
}

// leave moves the cursor below the text, which stays.
func (v *view) leave() string {
	down := len(v.drawn) - 1 - v.cursor
	v.drawn, v.cursor = nil, 0
	if down > 0 {
		return fmt.Sprintf("\x1b[%dB\r\n", down)
	}
	return "\r\n"
}

// resize takes another size. Some terminals wrap anew what they show, others do not: the text counts as drawn where
// both have it, so that nothing above it is lost.
func (v *view) resize(width, height int) {
	if len(v.drawn) > 0 && width != v.width {
		wrapped := 0 // rows above the cursor, if the terminal wraps anew
		for i := 0; i < v.cursor; {
			cells := 0
			for ; i < v.cursor; i++ {
				cells += v.drawn[i].width
				if !v.drawn[i].filled {
					i++
					break
				}
			}
			wrapped += max((cells+width-1)/width, 1)
		}
		v.cursor = min(v.cursor, wrapped)
	}
	v.width, v.height = width, height
}
