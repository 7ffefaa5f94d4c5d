package tuning

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// Near is a row of another site that computes the same with matrices of other sizes or types.
type Near struct {
	Row
	Distance float64 // see distance
	// Rows and Cols are ratios of the requested site to this one: of its rows of weights, over all matrices, and of
	// the elements of a row.
	Rows, Cols float64
}

// farthest is the distance beyond which rows say nothing of each other.
const farthest = 4

// Near returns the rows of decode sites like this one, the nearest first: sites with matrices, of the same entry and
// ops.
func (t *Table) Near(site string) []Near {
	here, ok := describe(site)
	if t == nil || !ok {
		return nil
	}
	t.describeOnce.Do(func() {
		for _, r := range t.bySite {
			if d, ok := describe(r.Site); ok {
				t.described = append(t.described, described{r, d})
			}
		}
		slices.SortFunc(t.described, func(a, b described) int { return cmp.Compare(a.row.Site, b.row.Site) })
	})
	var list []Near
	for _, d := range t.described {
		if far := here.distance(d.is); far <= farthest {
			list = append(list, Near{Row: d.row, Distance: far, Rows: here.rows / d.is.rows, Cols: here.cols / d.is.cols})
		}
	}
	slices.SortStableFunc(list, func(a, b Near) int { return cmp.Compare(a.Distance, b.Distance) })
	return list
}

type described struct {
	row Row
	is  description
}

// description is what counts of a site's key.
type description struct {
	what       string   // the entry and kinds of ops
	types      []string // of the matrices
	bytes      []float64
	rows, cols float64 // of all matrices; of one
	all        float64 // bytes
}

var (
	matrix     = regexp.MustCompile(`([a-z0-9_]+)\[((?:\d+, )+)(\d+)\]`)
	projection = regexp.MustCompile(`^(expert_)?linear `)
)

// describe takes the key of a site apart; false if it is of no decode entry or has no matrix.
func describe(site string) (d description, ok bool) {
	entry, ops, _ := strings.Cut(site, ": ")
	d.what = entry
	for _, op := range strings.Split(ops, "; ") {
		kind, _, _ := strings.Cut(op, " ")
		d.what += " " + kind
		if !projection.MatchString(op) {
			continue
		}
		m := matrix.FindStringSubmatch(op)
		if m == nil {
			return d, false
		}
		dims := strings.Split(strings.TrimSuffix(m[2], ", "), ", ")
		rows, _ := strconv.ParseFloat(dims[len(dims)-1], 64)
		cols, _ := strconv.ParseFloat(m[3], 64)
		dtype, known := ir.ParseDType(m[1])
		if !known {
			return d, false
		}
		bytes := rows * cols * float64(dtype.BlockBytes()) / float64(dtype.Block())
		d.types, d.bytes = append(d.types, m[1]), append(d.bytes, bytes)
		d.rows, d.cols, d.all = d.rows+rows, max(d.cols, cols), d.all+bytes
	}
	return d, strings.HasPrefix(entry, "decode/") && d.all > 0
}

// distance says how far sites are apart: how many times as many bytes and elements of a row one has, as powers of two,
// and by which share the bytes are of another type, twice.
func (d description) distance(o description) float64 {
	if d.what != o.what || len(d.types) != len(o.types) {
		return math.Inf(1)
	}
	other := 0.0
	for i, t := range d.types {
		if o.types[i] != t {
			other += d.bytes[i] / d.all
		}
	}
	return math.Abs(math.Log2(d.all/o.all)) + math.Abs(math.Log2(d.cols/o.cols)) + 2*other
}
