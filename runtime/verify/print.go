package verify

import (
	"fmt"
	"io"
	"strings"

	"github.com/zincc-dev/zincc/internal/printable"
)

// Print writes the report for people: the first difference, or, for each entry,
// the dispatch that came nearest to its tolerance.
func (r *Report) Print(w io.Writer) error {
	var b strings.Builder
	if first := r.First(); first != nil {
		first.print(&b)
	}
	fmt.Fprintf(&b, "%-14s %5s %9s %6s %8s %6s  %s\n", "entry", "rows", "sequences", "from", "compared", "failed", "largest error of what is tolerated")
	for i := 0; i < len(r.Results); {
		i += r.printStep(&b, r.Results[i:])
	}
	fmt.Fprintf(&b, "%s: %d comparisons, %d failed\n", r.Device, len(r.Results), r.Failed)
	_, err := io.WriteString(w, printable.Text(b.String()))
	return err
}

// print says all about a difference.
func (r *Result) print(b *strings.Builder) {
	d := r.Difference
	fmt.Fprintf(b, "first difference: %s with %d rows of %d sequences from position %d\n", r.Entry, r.Rows, r.Sequences, r.From)
	fmt.Fprintf(b, "  call site  %s\n", r.Site)
	if r.Kernel != "" {
		fmt.Fprintf(b, "  kernel     %s\n", r.Kernel)
	}
	fmt.Fprintf(b, "  value      %s, row %d, column %d\n", d.Value, d.Row, d.Column)
	fmt.Fprintf(b, "  problem    %s\n", d.Problem)
	fmt.Fprintf(b, "  device     %.9g\n  oracle     %.9g\n", float64(d.Device), float64(d.Oracle))
	if r.Output != "" {
		fmt.Fprintf(b, "  error      %.3g of the run's largest magnitude, %.3g is tolerated\n", float64(r.Error), float64(r.Tolerance))
	}
	b.WriteByte('\n')
}

// printStep writes a line for the step that the results begin with and returns
// how many are of it.
func (r *Report) printStep(b *strings.Builder, results []Result) int {
	head, failed, worst, n := results[0], 0, -1, 0
	share := func(r Result) float64 { return float64(r.Error / r.Tolerance) }
	for ; n < len(results); n++ {
		x := results[n]
		if x.Entry != head.Entry || x.Rows != head.Rows {
			break
		}
		if x.Difference != nil {
			failed++
		}
		if x.Tolerance > 0 && (worst < 0 || share(x) > share(results[worst])) {
			worst = n
		}
	}
	fmt.Fprintf(b, "%-14s %5d %9d %6d %8d %6d", head.Entry, head.Rows, head.Sequences, head.From, n, failed)
	if worst >= 0 {
		x := results[worst]
		fmt.Fprintf(b, "  %5.1f %% (%.1e of %.1e) %s", 100*share(x), float64(x.Error), float64(x.Tolerance), x.Site)
	}
	b.WriteByte('\n')
	return n
}
