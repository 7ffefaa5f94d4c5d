// Package strategy chooses among the kernels that families offer. It ranks candidates, drops those that are not worth
// asking a compiler or a device about, and predicts times. Families offer everything legal and know no measurements.
// What was fitted to a device is that target's curve; tiles for targets without one are ranked by their roofline
// (tiles.go).
package strategy

import (
	"cmp"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// Candidates are the ways to compute s that are worth considering, best guess first.
func Candidates(s *kernels.Site) []kernels.Candidate { return Rank(s, kernels.Candidates(s)) }

// Rank orders what families offer for s, best guess first, and drops the rest. Families stay in the
// order of their table.
func Rank(s *kernels.Site, offers []kernels.Candidate) []kernels.Candidate {
	offers = slices.DeleteFunc(offers, func(c kernels.Candidate) bool {
		return tooFew(s.Target, c.Family, c.Rows) || tooWide(s, &c) || c.Staging != nil && c.Staging.Tiles != stagedTiles(s.Target, c.Staging) ||
			c.Kept > keptElements && s.Target.AMD == nil || c.Timed && !s.Target.Thresholds.Timed
	})
	if s.Target.CUDA == 0 { // of these only that backend's were measured
		offers = slices.DeleteFunc(offers, func(c kernels.Candidate) bool { return c.AtOnce })
	}
	if s.Func.Class == ir.ExactStep {
		return roomFirst(s, offers)
	}
	return rank(s, offers).list()
}

// fixedRows is the least number of rows of x for which gemm_fixed is considered: that of the device or, if none was
// measured, half of the rows that its matrices have room for.
func fixedRows(t *target.Target) int { return cmp.Or(t.Thresholds.FixedRows, target.DecodeRows/2) }

// tooFew reports whether a family computes so many rows of x, but others do it faster.
func tooFew(t *target.Target, family string, rows int) bool {
	return family == "gemm_fixed" && rows < fixedRows(t)
}

// tooWide reports whether a projection would take in the gated convolution behind it for so many columns that
// gemm_fixed, which has no convolution, may be faster.
func tooWide(s *kernels.Site, c *kernels.Candidate) bool {
	return c.Family == "gemv" && c.Rows >= fixedRows(s.Target) && slices.ContainsFunc(s.Group.Ops, func(op *ir.Op) bool { return op.Kind.Name == "conv1d" })
}

const (
	// stagedSubgroups is the number of subgroups for which a unit has registers, of workgroups with a staging buffer.
	stagedSubgroups = 16
	// driverShared is the bytes of shared memory that CUDA takes for each workgroup.
	driverShared = 1 << 10
)

// stagedTiles returns the tiles of the longest staging buffer for which a unit holds as many workgroups as its
// registers allow. It bounds shared memory by what is fast and the tiles by what was measured; where nothing was, there
// is none.
func stagedTiles(t *target.Target, r *site.Staging) int {
	shared := t.SharedOptIn
	if t.SharedFast > 0 {
		shared = min(shared, t.SharedFast)
	}
	workgroups := max(1, stagedSubgroups/r.Subgroups)
	return min(t.Thresholds.StagedTiles, (shared/workgroups-driverShared-r.Besides)/r.Bytes)
}

// tooShort reports whether expert_down would round x to fixed point for rows of which a lane has one unit, so that it
// gains nothing but where workgroups load ahead. For the 35B's rows of 512 elements it made no difference on an H200
// through Vulkan (docs/lab/experts.md).
func tooShort(t *target.Target, w *kernels.Rewrite) bool {
	return w.Family == "expert_down" && w.Units < 2 && !t.Thresholds.LoadsEarly
}

func rank(s *kernels.Site, offers []kernels.Candidate) *ranking {
	r := &ranking{t: s.Target, class: s.Func.Class, rows: s.Func.Rows, widths: widthsOf(s), of: map[string][]kernels.Candidate{}}
	for _, c := range offers {
		if r.of[c.Family] == nil {
			r.families = append(r.families, c.Family)
		}
		r.of[c.Family] = append(r.of[c.Family], c)
	}
	if s.Target.AMD != nil {
		r.of["gemm_coop"] = slices.DeleteFunc(r.of["gemm_coop"], func(c kernels.Candidate) bool { return slowOnAMD(c.Tiling) })
	}
	r.attention()
	r.sort("gemm_coop")
	r.sort("gemm_fragment")
	r.sort("gemm_wgmma")
	r.floats()
	if !r.alike() { // else times at all widths decide between families, too
		r.slowFloats()
		r.fragments()
	}
	r.series()
	return r
}

// ranking is the candidates of a site by family.
type ranking struct {
	t        *target.Target
	class    ir.StepClass
	rows     int
	widths   []int    // see widthsOf
	families []string // in the order of their table
	of       map[string][]kernels.Candidate
}

func (r *ranking) list() []kernels.Candidate {
	var list []kernels.Candidate
	for _, f := range r.families {
		c := r.of[f]
		if most := kernels.Most(f); most > 0 {
			c = c[:min(most, len(c))]
		}
		list = append(list, c...)
	}
	return list
}

// seconds is what a step takes with a tile.
func (r *ranking) seconds(family string, t *kernels.Tiling) float64 {
	return tileSeconds(r.t, family, t, r.rows)
}

// sort orders the candidates of a family by their time.
func (r *ranking) sort(family string) {
	slices.SortStableFunc(r.of[family], func(a, b kernels.Candidate) int {
		return cmp.Compare(r.seconds(family, a.Tiling), r.seconds(family, b.Tiling))
	})
}

// roomFirst puts the form of attention of several rows first that leaves room.
func roomFirst(s *kernels.Site, offers []kernels.Candidate) []kernels.Candidate {
	room := s.Target.Thresholds.Room
	if s.Func.Rows < room.Rows || !slices.ContainsFunc(s.Group.Ops, func(op *ir.Op) bool {
		return op.Kind.Name == "attention_split" && op.Attrs.Int("head_dim") <= room.Head
	}) {
		return offers
	}
	slices.SortStableFunc(offers, func(a, b kernels.Candidate) int {
		is := func(c kernels.Candidate) int {
			if c.RoomFor() == room.Lanes {
				return 0
			}
			return 1
		}
		return is(a) - is(b)
	})
	return offers
}

// attention decides between attention_wgmma and attention_coop.
func (r *ranking) attention() {
	switch {
	case slices.Min(r.widths) < r.t.Thresholds.WgmmaRows:
		r.of["attention_wgmma"] = nil
	case len(r.of["attention_wgmma"]) > 0:
		r.of["attention_coop"] = nil
	}
}

// fragments decides between gemm_fragment and gemm_coop.
func (r *ranking) fragments() {
	list := r.of["gemm_fragment"]
	if len(list) == 0 {
		return
	}
	best, c := list[0].Tiling, r.t.Curve
	switch {
	case !r.fragmentPays(best):
		r.of["gemm_fragment"] = nil
	case c != nil && r.rows > c.FragmentAlways && best.Rows >= r.rows: // of few rows tuning may choose, and of several tiles
		r.of["gemm_coop"] = nil
	}
}

// series keeps of expert_fragment whose lanes keep x the one that goes through as many tiles as is best, and those
// with half and twice as many.
func (r *ranking) series() {
	list := r.of["expert_fragment"]
	if len(list) == 0 || list[0].Tiling.Name != "kept" {
		return
	}
	n := keptSeries(r.t, list[0].Tiling, r.rows)
	var kept []kernels.Candidate
	for _, series := range []int{n, n / 2, 2 * n} {
		if i := slices.IndexFunc(list, func(c kernels.Candidate) bool { return c.Tiling.Series == series }); i >= 0 {
			kept = append(kept, list[i])
		}
	}
	r.of["expert_fragment"] = kept
}

// fragmentPays reports whether gemm_fragment with this tile is expected to be faster than the best
// gemm_coop.
func (r *ranking) fragmentPays(t *kernels.Tiling) bool {
	coop, c := r.of["gemm_coop"], r.t.Curve
	if len(coop) == 0 || c != nil && r.rows <= c.FragmentAlways {
		return true
	}
	own, other := r.seconds("gemm_fragment", t), r.seconds("gemm_coop", coop[0].Tiling)
	if c == nil {
		return own <= other // it computes fewer rows that are not there
	}
	if t.Rows >= r.rows {
		other *= c.FragmentParts
	}
	return own < other
}

// floats puts the better tiles of gemm_float and gemm_lanes first.
func (r *ranking) floats() {
	r.sort("gemm_float")
	c := r.t.Curve
	if c == nil {
		r.sort("gemm_lanes")
	} else if r.rows > c.LanesRows {
		slices.Reverse(r.of["gemm_lanes"])
	}
}

// slowFloats drops tiles of gemm_float that are expected to be slower than gemm_lanes.
func (r *ranking) slowFloats() {
	c, lanes := r.t.Curve, r.of["gemm_lanes"]
	r.of["gemm_float"] = slices.DeleteFunc(r.of["gemm_float"], func(f kernels.Candidate) bool {
		switch {
		case c != nil:
			return r.rows <= c.FloatRows || r.seconds("gemm_float", f.Tiling) > r.seconds("gemm_lanes", f.Tiling)
		case len(lanes) == 0:
			return false
		}
		return r.seconds("gemm_float", f.Tiling) > r.seconds("gemm_lanes", lanes[0].Tiling)
	})
}

// Wants returns the rewrites that families want around s. Of rewrites that exclude each other it
// returns the one with the fastest kernel, if that is faster than kernels without a rewrite.
func Wants(s *kernels.Site) []kernels.Rewrite {
	var list, rivals []kernels.Rewrite
	for _, w := range kernels.Wants(s) {
		switch {
		case w.Tiling != nil:
			rivals = append(rivals, w)
		case !tooFew(s.Target, w.Family, w.Rows) && !tooShort(s.Target, &w):
			list = append(list, w)
		}
	}
	if len(rivals) == 0 {
		return list
	}
	r := rank(s, kernels.Candidates(s, "gemm_wgmma", "gemm_fragment", "gemm_coop"))
	family := func(w kernels.Rewrite) string {
		if w.Tiling.Name == "grouped" {
			return "gemm_wgmma"
		}
		return "gemm_fragment"
	}
	if r.alike() {
		return append(list, r.alikeWant(rivals, family)...)
	}
	time := func(w kernels.Rewrite) float64 { return r.seconds(family(w), w.Tiling) }
	best := slices.MinFunc(rivals, func(a, b kernels.Rewrite) int { return cmp.Compare(time(a), time(b)) })
	fragment := family(best) == "gemm_fragment"
	if fragment && !r.fragmentPays(best.Tiling) {
		return list
	}
	for _, family := range []string{"gemm_wgmma", "gemm_fragment", "gemm_coop"} {
		if own := r.of[family]; len(own) > 0 && !(fragment && family == "gemm_coop") && r.seconds(family, own[0].Tiling) <= time(best) {
			return list
		}
	}
	return append(list, best)
}

// alikeWant returns the rival that is best for all functions of the site's class, if it is better than what needs no
// rewrite.
func (r *ranking) alikeWant(rivals []kernels.Rewrite, family func(kernels.Rewrite) string) []kernels.Rewrite {
	var list []product
	for _, f := range []string{"gemm_wgmma", "gemm_fragment", "gemm_coop"} {
		for _, c := range r.of[f] {
			list = append(list, product{f, c.Sums, c.Tiling})
		}
	}
	own := len(list)
	for _, w := range rivals {
		f := family(w)
		list = append(list, product{f, f + " " + w.Sums, w.Tiling})
	}
	if best := r.together(list); best >= own {
		return []kernels.Rewrite{rivals[best-own]}
	}
	return nil
}

// Seconds returns the time of a step of so many rows by the curve of the target's device, if it has one.
func Seconds(c *kernels.Candidate, t *target.Target, rows int) (float64, bool) {
	if c.Tiling == nil || t.Curve == nil {
		return 0, false
	}
	s := tileSeconds(t, c.Family, c.Tiling, rows)
	return s, !math.IsInf(s, 1)
}
