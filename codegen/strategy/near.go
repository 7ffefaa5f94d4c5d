package strategy

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/plans/tuning"
)

// Sites that were not measured take the candidate like the best one of a similar, measured site (docs/tuning.md). That
// was evaluated through CUDA only, so rows of other drivers count only for their own sites.

// nearDriver begins the names of the drivers whose rows count for other sites, too.
const nearDriver = "CUDA"

// near returns the candidate that is most like the best one of a near site, and the reason; nil if there is none. Of
// all near sites and all candidates it takes the pair with the least distance, between the sites plus between the
// candidates, since the best candidate of the nearest site may have no like here. The result has the order of the first
// guess: kernels of other orders may not have existed when the site was measured.
func near(site string, list []kernels.Candidate, units int, t *tuning.Table) (*kernels.Candidate, string) {
	best, least, why := -1, math.Inf(1), ""
	parts := make([]map[string][]float64, len(list))
	for _, n := range t.Near(site) {
		if n.Predicted || !strings.HasPrefix(n.Driver, nearDriver) || tuning.Order(n.Best) != tuning.Order(list[0].Name()) {
			continue
		}
		there := partsOf(n.Best)
		for i := range list {
			if parts[i] == nil {
				parts[i] = partsOf(list[i].Name())
			}
			if d := n.Distance + unlike(parts[i], there, n) + idle(&list[i], units); d < least {
				best, least, why = i, d, fmt.Sprintf("like %s, measured on %s for %s", n.Best, n.Device, n.Site)
			}
		}
	}
	if best < 0 {
		return nil, ""
	}
	return &list[best], why
}

// Distances of candidates, in powers of two: for registers for twice as many workgroups of a unit, for twice as many
// rows of a workgroup, for twice as many lanes of teams, for teams or none, for prefetching weights at a place or not.
// On an H200 half and twice these values chose the same at nearly all sites.
const (
	roomCounts  = 0.5
	tileCounts  = 0.5
	lanesCount  = 0.5
	teamsCount  = 1
	aheadCounts = 0.3
)

// Parts of candidates' names, numbers left out.
const (
	subgroupsPart, rowsPart, teamsPart = "#x#", "# of # rows", "# teams"
	roomPart, tilePart                 = "room for #", "tile #"
	aheadPart, afterPart               = "# MiB ahead", "# MiB after"
)

// number is one in a candidate's name.
var number = regexp.MustCompile(`\d+`)

// partsOf returns the numbers of a candidate's name by the words around them.
func partsOf(name string) map[string][]float64 {
	parts := map[string][]float64{}
	for part := range strings.SplitSeq(strings.Replace(name, "/", ", ", 1), ", ") {
		var values []float64
		for _, digits := range number.FindAllString(part, -1) {
			v, _ := strconv.ParseFloat(digits, 64)
			values = append(values, v)
		}
		parts[number.ReplaceAllString(part, "#")] = values
	}
	delete(parts, "")
	return parts
}

// unlike is the distance of a candidate, by the parts of its name, from a near row's best, in powers of two. It
// compares rows of a workgroup as shares of all rows, and subgroups that share a row relative to its length. It is
// infinite if the words of the names differ.
func unlike(here, there map[string][]float64, n tuning.Near) float64 {
	sum := roomCounts * apart(bound(here), bound(there))
	for _, part := range []struct {
		words  string
		counts float64
	}{{teamsPart, teamsCount}, {aheadPart, aheadCounts}, {afterPart, aheadCounts}} {
		if (here[part.words] == nil) != (there[part.words] == nil) {
			sum += part.counts
		}
	}
	if here[teamsPart] != nil && there[teamsPart] != nil {
		sum += lanesCount * apart(lanesOf(here), lanesOf(there))
	}
	if shapeParts(here) != shapeParts(there) {
		return math.Inf(1)
	}
	for _, words := range slices.Sorted(maps.Keys(here)) { // floats add up in one order
		if slices.Contains(forms, words) {
			continue
		}
		own := here[words]
		best, ok := there[words]
		if !ok {
			return math.Inf(1)
		}
		for i, v := range own {
			switch other, counts := best[i], 1.0; {
			case words == subgroupsPart && i == 0:
				sum += apart(v, other*n.Cols)
			case words == rowsPart && i == 1, words == tilePart:
				counts = tileCounts
				other *= n.Rows
				fallthrough
			default:
				sum += counts * apart(v, other)
			}
		}
	}
	return sum
}

// forms are the parts of names that have been counted by themselves.
var forms = []string{teamsPart, aheadPart, afterPart, roomPart}

// shapeParts counts the other parts.
func shapeParts(parts map[string][]float64) int {
	n := len(parts)
	for _, form := range forms {
		if _, has := parts[form]; has {
			n--
		}
	}
	return n
}

// apart is the distance of two numbers in powers of two.
func apart(x, y float64) float64 { return math.Abs(math.Log2(x / y)) }

// bound is the number of workgroups of a unit for which registers must suffice, at least 1; the number of lanes if the
// name does not give the lanes of a workgroup.
func bound(parts map[string][]float64) float64 {
	room := parts[roomPart]
	if room == nil {
		return 1
	}
	return max(1, math.Floor(room[0]/lanesOf(parts)))
}

// lanesOf is the lanes of a workgroup, 1 if the name does not say how many.
func lanesOf(parts map[string][]float64) float64 {
	lanes := 1.0
	for words, values := range parts {
		if words == teamsPart || strings.HasSuffix(words, subgroupsPart) {
			for _, v := range values {
				lanes *= v // whole numbers, in any order
			}
		}
	}
	return lanes
}

// idle is the share of time in which units have no workgroup, if all workgroups take equally long and each unit runs as
// many at a time as registers allow.
func idle(c *kernels.Candidate, units int) float64 {
	if c.Lanes == 0 {
		return 0
	}
	atOnce := max(1, max(c.RoomFor(), unitLanes)/c.Lanes)
	workgroups := float64(c.Grid[0] * c.Grid[1] * c.Grid[2])
	rounds := workgroups / float64(units*atOnce)
	if rounds < 1 {
		rounds = workgroups / float64(units)
	}
	return 1 - rounds/math.Ceil(rounds)
}

// unitLanes is the number of lanes of a unit for which candidates without a bound are assumed to have registers.
const unitLanes = 512
