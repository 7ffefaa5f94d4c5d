package strategy

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Choose returns a candidate of the list, and the reason: the one named by the first table with a row for the site,
// else the one most like the best one of a near measured site, else the first. of counts all candidates of the site;
// those of other orders are not in the list.
func Choose(site string, list []kernels.Candidate, of int, on *target.Target, tables ...*tuning.Table) (*kernels.Candidate, string) {
	gone := ""
	for _, t := range tables {
		row, ok := t.Lookup(site)
		if !ok {
			continue
		}
		if i := slices.IndexFunc(list, func(c kernels.Candidate) bool { return c.Name() == row.Best }); i >= 0 {
			return &list[i], row.Why()
		}
		gone = fmt.Sprintf("; %s, the best on %s, is none of them", row.Best, row.Device)
	}
	for _, t := range tables {
		if c, why := near(site, list, on.Units, t); c != nil {
			return c, why + gone
		}
	}
	how := ""
	switch {
	case of == 1:
	case list[0].Tiling != nil && on.Curve == nil:
		how = " by the target's roofline, since no curve is fitted to it"
	case on.Thresholds.Device == "":
		how = " by rules, since no thresholds were measured on the target's device"
	}
	return &list[0], fmt.Sprintf("best guess of %d%s%s", of, how, gone)
}
