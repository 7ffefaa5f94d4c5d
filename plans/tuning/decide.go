package tuning

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Timing is the time of a candidate at a site.
type Timing struct {
	Site, Candidate string
	Micros          float64
	// Busy is the microseconds for which the device's units issue instructions, all at once; 0: not known.
	Busy float64
	Note string // what else is known of it
}

// lighter is the share by which a candidate that is no faster must be less busy: predictions of that differ by as much
// from what is executed (docs/backends/amd.md).
const lighter = 0.2

// Beats reports whether the candidate is better than one that is offered earlier: faster by a share of margin, or no
// slower and clearly less busy.
func (t *Timing) Beats(earlier *Timing, margin float64) bool {
	return t.Micros < (1-margin)*earlier.Micros || t.Micros <= earlier.Micros && t.Busy < (1-lighter)*earlier.Busy
}

// Decide returns a row for each site with its best candidate, without device, driver and
// time. The timings of a site are in the order in which its candidates are offered; a later
// candidate must beat earlier ones. All widths of a decode entry get candidates of one order, the best one at the
// narrowest width.
func Decide(timings []Timing, margin float64) []Row {
	bySite := map[string][]Timing{}
	var sites []string
	for _, t := range timings {
		if bySite[t.Site] == nil {
			sites = append(sites, t.Site)
		}
		bySite[t.Site] = append(bySite[t.Site], t)
	}
	slices.SortStableFunc(sites, func(a, b string) int { return cmp.Compare(width(a), width(b)) })
	orders := map[string]string{} // by what a decode entry computes
	var rows []Row
	for _, site := range sites {
		entry, what, _ := strings.Cut(site, ": ")
		decode := strings.HasPrefix(entry, "decode/")
		list := bySite[site]
		if order, ok := orders[what]; ok && decode {
			same := slices.DeleteFunc(slices.Clone(list), func(t Timing) bool { return Order(t.Candidate) != order })
			if len(same) > 0 {
				list = same
			}
		}
		row := best(list, margin)
		row.Site, row.Of, row.Micros, row.NextMicros = site, len(bySite[site]), round(row.Micros), round(row.NextMicros)
		if decode && orders[what] == "" {
			orders[what] = Order(row.Best)
		}
		rows = append(rows, row)
	}
	return rows
}

// best returns a row with the fastest candidate and the next.
func best(list []Timing, margin float64) Row {
	first := list[0]
	for _, t := range list[1:] {
		if t.Beats(&first, margin) {
			first = t
		}
	}
	row := Row{Best: first.Candidate, Micros: first.Micros, Note: first.Note}
	for _, t := range list {
		if t.Candidate != first.Candidate && (row.Next == "" || t.Micros < row.NextMicros) {
			row.Next, row.NextMicros = t.Candidate, t.Micros
		}
	}
	return row
}

// width is the rows of the entry of a site.
func width(site string) int {
	entry, _, _ := strings.Cut(site, ": ")
	_, rows, _ := strings.Cut(entry, "/")
	n, _ := strconv.Atoi(rows)
	return n
}

// round keeps nanoseconds.
func round(us float64) float64 { return math.Round(1e3*us) / 1e3 }
