package plans

import (
	"cmp"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// checkOrder proves on the program alone, also of plans without dispatches, that
// groups wait for what they depend on.
func checkOrder(c *checker) {
	for _, f := range c.plan.Program.Funcs {
		made := map[*ir.Value]*ir.Group{}
		written := map[*ir.Value]*ir.Group{} // globals: the last group that writes
		read := map[*ir.Value]*ir.Group{}    // globals: the last group that reads
		for _, g := range f.Groups {
			writes := g.Writes()
			for _, v := range g.Inputs() {
				from := made[v]
				if from == nil {
					from = written[v]
				}
				if from != nil && from.Stage >= g.Waits {
					c.add("order", f.Name, g.Name, "reads %s and waits for %d stages: %q writes it in stage %d", v, g.Waits, from.Name, from.Stage)
				}
			}
			for _, v := range writes {
				if from := read[v]; from != nil && from.Stage >= g.Waits {
					c.add("order", f.Name, g.Name, "writes %s and waits for %d stages: %q reads it in stage %d", v, g.Waits, from.Name, from.Stage)
				}
			}
			for _, v := range g.Inputs() {
				if v.IsGlobal() {
					read[v] = g
				}
			}
			for _, v := range writes {
				written[v] = g
			}
			for _, op := range g.Ops {
				if op.Result != nil {
					made[op.Result] = g
				}
			}
		}
	}
}

// access is the bytes of one argument.
type access struct {
	site   *site
	arg    *Arg
	lo, hi int64
}

// checkHazards sweeps over the bytes of every region, stage by stage, for overlaps
// of which one side writes. All wait for the end of an entry.
func checkHazards(c *checker) {
	for from := 0; from < len(c.sites); {
		to := from
		for to < len(c.sites) && c.sites[to].entry == c.sites[from].entry && c.sites[to].Stage == c.sites[from].Stage {
			to++
		}
		byRegion := map[regionKey][]access{}
		var keys []regionKey
		for i := from; i < to; i++ {
			s := &c.sites[i]
			for j := range s.Args {
				a := &s.Args[j]
				k := regionKey{a.Space, a.Region}
				if byRegion[k] == nil {
					keys = append(keys, k)
				}
				byRegion[k] = append(byRegion[k], access{s, a, a.Offset, a.Offset + a.Bytes})
			}
		}
		for _, k := range keys {
			sweep(c, byRegion[k])
		}
		from = to
	}
	checkAhead(c)
}

// mostAhead bounds the pairs of arguments that checkAhead compares.
const mostAhead = 1 << 22

// checkAhead finds overlaps of which one side writes between a dispatch and those of earlier stages that it does not
// wait for.
func checkAhead(c *checker) {
	pairs := 0
	for i := range c.sites {
		s := &c.sites[i]
		if s.Waits == s.Stage {
			continue
		}
		for j := i - 1; j >= 0 && c.sites[j].entry == s.entry && c.sites[j].Stage >= s.Waits; j-- {
			if pairs += len(s.Args) * len(c.sites[j].Args); pairs > mostAhead {
				c.addAt("hazard", s, "too many dispatches do not wait for those before them")
				return
			}
			if c.sites[j].Stage < s.Stage {
				c.together(s, &c.sites[j])
			}
		}
	}
}

// together reports accesses of two dispatches that overlap, if one of them writes.
func (c *checker) together(s, other *site) {
	for _, a := range s.Args {
		for _, b := range other.Args {
			if (a.Write || b.Write) && a.Space == b.Space && a.Region == b.Region && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes {
				c.addAt("hazard", s, "argument %q and argument %q of %q, of stage %d, overlap in %s %q; it waits for %d stages",
					a.Name, b.Name, other.Site, other.Stage, a.Space, a.Region, s.Waits)
			}
		}
	}
}

// sweep reports every access that overlaps one that begins at a lower address,
// naming one of those.
func sweep(c *checker, all []access) {
	slices.SortStableFunc(all, func(a, b access) int { return cmp.Compare(a.lo, b.lo) })
	var furthest, writer access // those that reach furthest, of all and of writes
	for _, a := range all {
		other := writer
		if a.arg.Write {
			other = furthest
		}
		if other.arg != nil && a.lo < other.hi {
			c.addAt("hazard", a.site, "argument %q and argument %q of %q overlap in %s %q at [%d, %d) in stage %d",
				a.arg.Name, other.arg.Name, other.site.Site, a.arg.Space, a.arg.Region, a.lo, min(a.hi, other.hi), a.site.Stage)
		}
		if a.hi > furthest.hi {
			furthest = a
		}
		if a.arg.Write && a.hi > writer.hi {
			writer = a
		}
	}
}

// checkCoverage proves that outputs are written, whole and once, and that every
// weight is read where the program reads it.
func checkCoverage(c *checker) {
	read := map[string]bool{}
	for i := range c.sites {
		s := &c.sites[i]
		checkGrid(c, s)
		for _, a := range s.Args {
			if a.Space == "weight" && a.Read {
				read[a.Region] = true
			}
		}
		if s.agrees {
			checkWrites(c, s)
		}
	}
	for _, w := range c.plan.Weights {
		if !read[w.Name] {
			c.add("coverage", "", w.Name, "no dispatch reads the weight")
		}
	}
}

// checkGrid proves that the workgroups of every cover are in the grid and that
// each workgroup of the grid is in a cover.
func checkGrid(c *checker, s *site) {
	var used [3][][2]int // of each axis: ranges of workgroups that write
	for _, cover := range s.Cover {
		var onAxis [3]bool
		for d, axis := range cover.Axis {
			if axis < 0 {
				continue
			}
			if onAxis[axis] {
				c.addAt("coverage", s, "output %q has two dims on axis %d", cover.Arg, axis)
			}
			onAxis[axis] = true
			first := 0
			if cover.First != nil {
				first = cover.First[d]
			}
			end := max(first+1, s.Grid[axis])
			if tile := cover.Tile[d]; tile > 0 {
				end = first + (cover.Dims[d]+tile-1)/tile
			}
			if end > s.Grid[axis] {
				c.addAt("coverage", s, "output %q: dim %d of %d in tiles of %d from workgroup %d takes workgroups up to %d of axis %d, grid is %d",
					cover.Arg, d, cover.Dims[d], cover.Tile[d], first, end, axis, s.Grid)
			}
			used[axis] = append(used[axis], [2]int{first, end})
		}
		for axis, on := range onAxis {
			if !on && s.Grid[axis] > 1 && !slices.Contains(cover.Joined, axis) {
				c.addAt("coverage", s, "output %q is written once by each of %d workgroups of axis %d", cover.Arg, s.Grid[axis], axis)
			}
		}
	}
	for axis, ranges := range used {
		slices.SortFunc(ranges, func(a, b [2]int) int { return a[0] - b[0] })
		end := 0
		for _, r := range ranges {
			if r[0] > end {
				break
			}
			end = max(end, r[1])
		}
		if len(ranges) > 0 && end < s.Grid[axis] {
			c.addAt("coverage", s, "workgroup %d of axis %d writes nothing, grid is %d", end, axis, s.Grid)
		}
	}
}

// checkWrites holds what a dispatch writes against what its group produces.
func checkWrites(c *checker, s *site) {
	writes := s.group.Writes()
	counters := checkMeeting(c, s)
	produced := func(v *ir.Value) bool {
		return slices.Contains(s.outputs, v) || slices.Contains(writes, v) || slices.Contains(s.scratch, v) || v == counters
	}
	have := map[*ir.Value]bool{}
	for i, a := range s.Args {
		v := s.group.Call.Args[i]
		if !a.Write {
			continue
		}
		have[v] = true
		if !produced(v) {
			c.addAt("coverage", s, "argument %q writes %s, which the group does not produce", a.Name, v)
		}
		if want := size(c, v, s.fn.Rows); v != counters && a.Bytes < want {
			c.addAt("coverage", s, "argument %q writes %d bytes, %s takes %d", a.Name, a.Bytes, v.Type, want)
		}
		covered, n := int64(0), 0
		for _, cover := range s.Cover {
			if cover.Arg == a.Name {
				covered += product(cover.Dims)
				n++
			}
		}
		if n == 0 && v.Class != ir.Step {
			c.addAt("coverage", s, "nothing says how the workgroups tile output %q", a.Name)
		}
		if want, err := v.Type.Elements(s.fn.Rows, c.plan.Program.Ctx); n > 0 && !v.IsGlobal() && err == nil && covered != want {
			c.addAt("coverage", s, "covers of output %q have %d elements, %s has %d", a.Name, covered, v.Type, want)
		}
	}
	for _, v := range append(slices.Clone(s.outputs), writes...) {
		if !have[v] {
			c.addAt("coverage", s, "no argument writes %s, which the group produces", v)
		}
	}
	for _, v := range s.group.Inputs() {
		i := slices.Index(s.group.Call.Args, v)
		if v.Class == ir.Weight && (i < 0 || !s.Args[i].Read) {
			c.addAt("coverage", s, "no argument reads weight %s", v)
		}
	}
}

// checkMeeting proves that workgroups of a last-block reduction can count themselves, and that dispatches
// without one leave nothing in memory for it. It returns the counters, or nil.
func checkMeeting(c *checker, s *site) *ir.Value {
	workgroups := 0
	for _, cover := range s.Cover {
		if len(cover.Joined) == 0 {
			continue
		}
		n := 1
		for axis, size := range s.Grid {
			if !slices.Contains(cover.Joined, axis) || slices.Contains(cover.Axis, axis) { // or the data tell who meets on it
				n *= size
			}
		}
		workgroups = max(workgroups, n)
	}
	if workgroups == 0 {
		for _, v := range s.scratch {
			c.addAt("coverage", s, "%s is a workspace, but there is no last-block reduction", v)
		}
		return nil
	}
	for i, a := range s.Args {
		if a.Name == "arrivals" && a.Space == "step" && a.Read && a.Write {
			if a.Bytes < 4*int64(workgroups) {
				c.addAt("coverage", s, "argument %q has %d bytes, the %d workgroups of a last-block reduction need 4 each", a.Name, a.Bytes, workgroups)
			}
			return s.group.Call.Args[i]
		}
	}
	c.addAt("coverage", s, "no argument counts the workgroups of the last-block reduction")
	return nil
}

// product of dims, no more than maxRegion.
func product(dims []int) int64 {
	n := int64(1)
	for _, d := range dims {
		if n > maxRegion/int64(d) {
			return maxRegion
		}
		n *= int64(d)
	}
	return n
}
