package table

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/zincc-dev/zincc/internal/printable"
)

// LineWidth is how wide a table may be, in characters.
const LineWidth = 120

// WriteText writes tables with an empty line between them.
func WriteText(w io.Writer, tables ...*Table) error {
	for i, t := range tables {
		if i > 0 {
			if _, err := io.WriteString(w, "\n"); err != nil {
				return err
			}
		}
		if err := t.WriteText(w); err != nil {
			return err
		}
	}
	return nil
}

// Text is a cell as WriteText writes it: one line.
func Text(c any) string {
	if f, ok := c.(float64); ok {
		return fmt.Sprintf("%.1f", f)
	}
	return printable.Line(fmt.Sprint(c)) // whatever a model calls its tensors
}

// WriteText writes the title, the column names and the rows in aligned columns, those of numbers to
// the right. Where that is too wide for a terminal, the longest texts of a row follow below it behind the columns'
// names, and the first columns are left out where they are those of the row before. The columns of a pair stay beside
// each other.
func (t *Table) WriteText(w io.Writer) error {
	g := newGrid(t)
	var b strings.Builder
	b.WriteString(printable.Line(t.Title) + "\n")
	if t.Pair {
		newPair(g).write(&b)
		_, err := io.WriteString(w, b.String())
		return err
	}
	g.fold()
	g.line(&b, g.head)
	for i := range g.cells {
		g.row(&b, i)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// grid is a table as text.
type grid struct {
	head   []string
	cells  [][]string
	widths []int
	right  []bool // columns of numbers
	below  []bool // columns whose texts follow below a row
	narrow bool   // there are some
}

func newGrid(t *Table) *grid {
	n := len(t.Columns)
	g := &grid{head: t.Columns, widths: make([]int, n), right: make([]bool, n), below: make([]bool, n)}
	for i, c := range t.Columns {
		g.widths[i] = utf8.RuneCountInString(c)
		g.right[i] = len(t.Rows) > 0 && !slices.ContainsFunc(t.Rows, func(row []any) bool { return IsText(row[i]) })
	}
	for _, row := range t.Rows {
		line := make([]string, n)
		for i, c := range row {
			line[i] = Text(c)
			g.widths[i] = max(g.widths[i], utf8.RuneCountInString(line[i]))
		}
		g.cells = append(g.cells, line)
	}
	return g
}

// fold puts the widest texts below until the rest fits. The first column stays.
func (g *grid) fold() {
	order, width := []int{}, 0
	for i, n := range g.widths {
		width += 2 + n
		if i > 0 && !g.right[i] {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(g.widths[b], g.widths[a]) })
	for _, i := range order {
		if width <= LineWidth {
			return
		}
		g.below[i], g.narrow = true, true
		width -= 2 + g.widths[i]
	}
}

// line writes the cells of the columns that are not below.
func (g *grid) line(b *strings.Builder, cells []string) {
	var l strings.Builder
	for i, s := range cells {
		if g.below[i] {
			continue
		}
		pad := strings.Repeat(" ", g.widths[i]-utf8.RuneCountInString(s))
		if l.WriteString("  "); g.right[i] {
			s = pad + s
		} else {
			s += pad
		}
		l.WriteString(s)
	}
	b.WriteString(strings.TrimRight(l.String(), " ") + "\n")
}

// row writes a row and what follows below it.
func (g *grid) row(b *strings.Builder, i int) {
	cells := slices.Clone(g.cells[i])
	if !g.narrow {
		g.line(b, cells)
		return
	}
	for c := 0; i > 0 && c < len(cells) && !g.right[c] && cells[c] == g.cells[i-1][c]; c++ {
		if !g.below[c] {
			cells[c] = ""
		}
	}
	g.line(b, cells)
	g.follow(b, cells)
}

// follow writes the texts below a row: on one line if they are short.
func (g *grid) follow(b *strings.Builder, cells []string) {
	const indent = 6
	var short []string
	name, width := 0, 0
	for c, s := range cells {
		if g.below[c] && s != "" {
			short = append(short, g.head[c]+"  "+s)
			name = max(name, utf8.RuneCountInString(g.head[c]))
			width += 4 + utf8.RuneCountInString(g.head[c]+s)
		}
	}
	if len(short) == 0 {
		return
	}
	if width <= LineWidth/2 {
		fmt.Fprintf(b, "%*s%s\n", indent, "", strings.Join(short, "  "))
		return
	}
	for c, s := range cells {
		if !g.below[c] {
			continue
		}
		head := g.head[c]
		for _, part := range Wrap(s, LineWidth-indent-name-2) {
			fmt.Fprintf(b, "%*s%-*s  %s\n", indent, "", name, head, part)
			head = ""
		}
	}
}

// Wrap breaks a text behind words so that no line is longer than width, where words allow it.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
