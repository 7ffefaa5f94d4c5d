// Package tuning reads, writes and merges tuning files, which say for `zincc compile` which kernel is
// best at a call site. `zincrun tune` measures that on a device; `zincc tune` predicts it with AMD's compiler.
//
// A file has one row a line, each a JSON object, in the order of the keys. So files
// merge: a row replaces an older row of the same key.
package tuning

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/internal/outfile"
)

// Row names the best candidate at a site on a device. Site, Device and Driver are
// its key.
type Row struct {
	Site       string    `json:"site"`   // see SiteOf
	Device     string    `json:"device"` // as the driver names it
	Driver     string    `json:"driver"`
	Best       string    `json:"best"` // the candidate: see Order
	Micros     float64   `json:"us"`   // of one dispatch and its barrier
	Next       string    `json:"next,omitempty"`
	NextMicros float64   `json:"next_us,omitempty"`
	Of         int       `json:"of"`                  // candidates that were compared
	Predicted  bool      `json:"predicted,omitempty"` // not measured
	Note       string    `json:"note,omitempty"`      // what else is known of the best
	When       time.Time `json:"when,omitzero"`       // none if predicted, which can be done again
	// Compiled holds the answer of AMD's compiler about the candidate, as package radv writes it;
	// only in rows that were predicted from it.
	Compiled string `json:"compiled,omitempty"`
}

// MaxFile bounds a file; a model takes some 20 kB on a target.
const MaxFile = 64 << 20

// maxLine bounds a row.
const maxLine = 64 << 10

// Read reads the rows of a file.
func Read(path string) ([]Row, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: not a tuning file: %w", path, err)
	}
	return rows, nil
}

// Decode reads rows. Unknown fields, invalid times and duplicate keys are errors,
// which name the line.
func Decode(r io.Reader) ([]Row, error) {
	limited := &io.LimitedReader{R: r, N: MaxFile + 1}
	s := bufio.NewScanner(limited)
	s.Buffer(nil, maxLine)
	var rows []Row
	keys := map[[3]string]bool{}
	for n := 1; s.Scan(); n++ {
		if limited.N <= 0 {
			return nil, fmt.Errorf("more than %d bytes", MaxFile)
		}
		row, err := decodeRow(s.Bytes())
		if err == nil && keys[row.key()] {
			err = errors.New("the key of an earlier line")
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		keys[row.key()] = true
		rows = append(rows, row)
	}
	if err := s.Err(); err != nil {
		return nil, fmt.Errorf("line %d: %w", len(rows)+1, err)
	}
	return rows, nil
}

func decodeRow(line []byte) (Row, error) {
	var row Row
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&row); err != nil {
		return row, err
	}
	if _, err := d.Token(); err != io.EOF {
		return row, errors.New("more than one value")
	}
	return row, row.check()
}

func (r *Row) check() error {
	positive := func(us float64) bool { return us > 0 && !math.IsInf(us, 0) }
	switch {
	case r.Site == "" || r.Device == "" || r.Driver == "" || r.Best == "":
		return errors.New("site, device, driver or best is missing")
	case !positive(r.Micros):
		return fmt.Errorf("us: %v is no time", r.Micros)
	case r.Next != "" && !positive(r.NextMicros):
		return fmt.Errorf("next_us: %v is no time", r.NextMicros)
	case r.Of < 1:
		return fmt.Errorf("of: %d candidates", r.Of)
	case r.When.IsZero() && !r.Predicted:
		return errors.New("when is missing")
	}
	for _, text := range []string{r.Site, r.Device, r.Driver, r.Best, r.Next, r.Note, r.Compiled} {
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' }) {
			return fmt.Errorf("a control character in %q", text)
		}
	}
	return nil
}

// Why returns the reason of a choice by the row, for people.
func (r *Row) Why() string {
	how := "measured"
	if r.Predicted {
		how = "predicted"
	}
	s := fmt.Sprintf("%s %.2f us on %s, of %d", how, r.Micros, r.Device, r.Of)
	if r.Note != "" {
		s += ": " + r.Note
	}
	if r.Next != "" {
		s += fmt.Sprintf("; next %.2f us, %s", r.NextMicros, r.Next)
	}
	return s
}

func (r *Row) key() [3]string { return [3]string{r.Site, r.Device, r.Driver} }

// Encode writes rows as Decode reads them.
func Encode(w io.Writer, rows []Row) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, r := range rows {
		if err := e.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// Merge returns the rows of both, in the order of their keys. If both have a key, it takes the
// newer row, and of equally old ones the row of b.
func Merge(a, b []Row) []Row {
	at := map[[3]string]int{}
	var all []Row
	for _, r := range slices.Concat(a, b) {
		i, ok := at[r.key()]
		switch {
		case !ok:
			at[r.key()] = len(all)
			all = append(all, r)
		case !r.When.Before(all[i].When):
			all[i] = r
		}
	}
	slices.SortFunc(all, func(x, y Row) int {
		return cmp.Or(cmp.Compare(x.Site, y.Site), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Driver, y.Driver))
	})
	return all
}

// MergeFile merges rows into a file, which need not exist.
func MergeFile(path string, rows []Row) error {
	old, err := Read(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return outfile.Write(path, func(w io.Writer) error { return Encode(w, Merge(old, rows)) })
}

// Table finds rows by site. A nil Table has none.
type Table struct {
	bySite map[string]Row
	// described are the rows that Near looks through.
	described    []described
	describeOnce sync.Once
}

// NewTable makes a table of lists of rows. If several devices or drivers have a row for a site,
// the table takes the newest row of the first list that has one.
func NewTable(lists ...[]Row) *Table {
	t := &Table{bySite: map[string]Row{}}
	for _, rows := range lists {
		newest := map[string]Row{}
		for _, r := range rows {
			if have, ok := newest[r.Site]; !ok || r.When.After(have.When) {
				newest[r.Site] = r
			}
		}
		for site, r := range newest {
			if _, ok := t.bySite[site]; !ok {
				t.bySite[site] = r
			}
		}
	}
	return t
}

// Lookup returns the row of a site.
func (t *Table) Lookup(site string) (Row, bool) {
	if t == nil {
		return Row{}, false
	}
	r, ok := t.bySite[site]
	return r, ok
}
