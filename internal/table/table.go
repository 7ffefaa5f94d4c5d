// Package table prints rows as aligned text and as JSON, from the same cells.
package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Table is a titled list of rows. A cell is a string, an int, an int64, a float64,
// or one of the types below; a row has one for each column.
type Table struct {
	Title   string
	Columns []string
	Rows    [][]any
	// Pair: the last two columns are compared. Text has them beside each other, however long their values are.
	Pair bool
}

// None is a number that there is none of: null in JSON, "-" in text.
var None none

type none struct{}

func (none) String() string               { return "-" }
func (none) MarshalJSON() ([]byte, error) { return []byte("null"), nil }

// Bytes is a size: a number in JSON, with a binary unit in text.
type Bytes int64

func (b Bytes) String() string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if b < 1<<10 {
		return fmt.Sprintf("%d B", int64(b))
	}
	f := float64(b)
	i := -1
	for f >= 1024 && i+1 < len(units) {
		f /= 1024
		i++
	}
	return fmt.Sprintf("%.2f %s", f, units[i])
}

// Count is a large number: all digits in JSON, a decimal prefix in text.
type Count int64

func (c Count) String() string {
	units := []string{"k", "M", "G", "T", "P"}
	if c < 1000 {
		return fmt.Sprint(int64(c))
	}
	f := float64(c)
	i := -1
	for f >= 1000 && i+1 < len(units) {
		f /= 1000
		i++
	}
	return fmt.Sprintf("%.2f %s", f, units[i])
}

// List is an array in JSON; text shows the first of its distinct strings and how
// many there are besides, or "none".
type List []string

func (l List) String() string {
	switch len(l) {
	case 0:
		return "none"
	case 1:
		return l[0]
	}
	return fmt.Sprintf("%s +%d", l[0], len(l)-1)
}

// MarshalJSON writes an empty list for nil.
func (l List) MarshalJSON() ([]byte, error) { return json.Marshal(append([]string{}, l...)) }

// Add appends a row.
func (t *Table) Add(cells ...any) {
	if len(cells) != len(t.Columns) {
		panic(fmt.Sprintf("table %s: %d cells for %d columns", t.Title, len(cells), len(t.Columns)))
	}
	t.Rows = append(t.Rows, cells)
}

// IsText reports whether a cell is text rather than a number.
func IsText(c any) bool {
	switch c.(type) {
	case string, List:
		return true
	}
	return false
}

// MarshalJSON writes the rows as a list of objects, keyed by column.
func (t *Table) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('[')
	for i, row := range t.Rows {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := object(&b, t.Columns, row); err != nil {
			return nil, err
		}
	}
	b.WriteByte(']')
	return b.Bytes(), nil
}

func object(b *bytes.Buffer, keys []string, values []any) error {
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteByte(',')
		}
		for j, v := range []any{k, values[i]} {
			if j > 0 {
				b.WriteByte(':')
			}
			data, err := json.Marshal(v)
			if err != nil {
				return err
			}
			b.Write(data)
		}
	}
	b.WriteByte('}')
	return nil
}

// WriteJSON writes one object of all tables, keyed by title.
func WriteJSON(w io.Writer, tables ...*Table) error {
	var keys []string
	var values []any
	for _, t := range tables {
		keys = append(keys, t.Title)
		values = append(values, t)
	}
	var b, indented bytes.Buffer
	if err := object(&b, keys, values); err != nil {
		return err
	}
	if err := json.Indent(&indented, b.Bytes(), "", "  "); err != nil {
		return err
	}
	indented.WriteByte('\n')
	_, err := w.Write(indented.Bytes())
	return err
}
