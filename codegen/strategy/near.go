package strategy

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Sites that were not measured take what is best at the nearest site that was (docs/tuning.md). It was
// measured through CUDA, and rows of other drivers count for their own sites alone.

// nearDriver begins the names of the drivers whose rows count for other sites, too.
const nearDriver = "CUDA"

// near returns the candidate that is like the best one of the nearest site measured, and why; nil if there is none. It has the
// order of the first guess: other orders have kernels that may not have been there when the site was measured.
func near(site string, list []kernels.Candidate, t *tuning.Table) (*kernels.Candidate, string) {
	for _, n := range t.Near(site) {
		if n.Predicted || !strings.HasPrefix(n.Driver, nearDriver) || tuning.Order(n.Best) != tuning.Order(list[0].Name()) {
			continue
		}
		best, least := -1, math.Inf(1)
		for i := range list {
			if d := unlike(list[i].Name(), n); d < least {
				best, least = i, d
			}
		}
		if best >= 0 {
			return &list[best], fmt.Sprintf("like %s, measured on %s for %s", n.Best, n.Device, n.Site)
		}
	}
	return nil, ""
}

// number is one in a candidate's name.
var number = regexp.MustCompile(`\d+`)

// unlike is by how many powers of two the numbers in a candidate's name differ from those of a near row's best, where the rows of
// a workgroup count as shares of all, and the subgroups that share a row by its length; infinite if the words
// are others.
func unlike(name string, n tuning.Near) float64 {
	if number.ReplaceAllString(name, "#") != number.ReplaceAllString(n.Best, "#") {
		return math.Inf(1)
	}
	sum := 0.0
	at, of := number.FindAllStringIndex(name, -1), number.FindAllString(n.Best, -1)
	for i, place := range at {
		x, _ := strconv.ParseFloat(name[place[0]:place[1]], 64)
		y, _ := strconv.ParseFloat(of[i], 64)
		before, after := name[:place[0]], name[place[1]:]
		switch {
		case strings.HasSuffix(before, " of ") && strings.HasPrefix(after, " rows"):
			y *= n.Rows
		case strings.HasPrefix(after, "x"):
			y *= n.Cols
		}
		sum += math.Abs(math.Log2(x / y))
	}
	return sum
}
