package rowwise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func RowNormCandidates(s *site.Site, op *ir.Op) []site.Candidate {
	half, tile := roundedNorm(s)
	var post postNorm
	if half == nil && !site.Alone(s, op) {
		if post = matchPostNorm(s); post.result == nil {
			return nil
		}
	}
	if len(op.Args) > 1 && op.Args[1].Type.DType != ir.F32 {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	width, group := int(op.Result.Type.Last()), op.Attrs.Int("group")
	k := rowNormKernel{rows: rows, op: op, vec: site.Widest(group), exact: post.result != nil || slices.Contains(s.Outputs, op.Result), half: half, post: post, group: group,
		wave: s.Target.Wave, loop: s.Target.FewKernels}
	if tile != nil {
		return k.tiled(s, tile)
	}
	k.size, k.runs = min(site.CeilDiv(group/k.vec, k.wave), s.Target.Workgroup/k.wave, k.wave)*k.wave, 1
	// Decode entries of every width add in one order.
	if !rows.Exact && rows.Max >= 2*s.Target.Units { // so many workgroups that fewer lanes with more each fill the units
		k.size = max(k.wave, k.size/2/k.wave*k.wave)
		for k.size == k.wave && k.runs < min(normRuns, s.Target.Workgroup/k.wave) && width/group%(2*k.runs) == 0 {
			k.runs *= 2
		}
	}
	c := site.Candidate{
		Kernel: k.key(), Sums: k.sums(),
		Grid: [3]int{width / group / k.runs, rows.Max, 1},
	}
	c = site.Implement(c, "rownorm", k.kernel)
	for _, o := range c.Operands {
		if o.Access == kernel.Write {
			c.Cover = append(c.Cover, plans.Cover{Arg: o.Name, Dims: []int{rows.Max, width}, Tile: []int{1, group * k.runs}, Axis: []int{1, 0}})
		}
	}
	return []site.Candidate{c}
}

// normRuns is how many runs of a subgroup each a workgroup has at most.
const normRuns = 8

// rowNormKernel has one workgroup a row or run of it, whose lanes hold all of it, or one
// subgroup a run.
type rowNormKernel struct {
	rows  site.Extent
	op    *ir.Op // rmsnorm, gated_rmsnorm or l2norm
	vec   int    // elements of one access
	exact bool   // the result is written as it is
	half  *ir.Op // that rounds it to f16, or nil
	post  postNorm
	group int // elements of a run
	wave  int
	size  int // lanes of a run
	runs  int // of a row in a workgroup; several only if each is one subgroup's, or there are tiles
	// loop: lanes go over what they have of a row twice, so that one kernel serves rows of all lengths. A processor
	// finds it in its cache.
	loop bool
	tile normTile
}

// gains reports whether the runs of a row have a weight each.
func (k rowNormKernel) gains() bool {
	return k.op.Kind.Name == "rmsnorm" && len(k.op.Args) > 1 && int(k.op.Args[1].Type.Last()) != k.group
}

// sums is what the sum of a run depends on.
func (k rowNormKernel) sums() string { return fmt.Sprintf("lanes=%d", k.size) }

// lanes is those of a workgroup.
func (k rowNormKernel) lanes() int { return k.size * k.runs * max(1, k.tile.lines) }

// perLane is the accesses of a lane, at most.
func (k rowNormKernel) perLane() int { return site.CeilDiv(k.group/k.vec, k.size) }

// even reports whether all lanes have as many.
func (k rowNormKernel) even() bool { return k.perLane()*k.size*k.vec == k.group }

// roundedNorm returns the op that rounds to f16, if the group is a norm of whole vec4 and
// such an op, and the op that puts the rounded rows into tiles, if that is the third.
func roundedNorm(s *site.Site) (half, tile *ir.Op) {
	ops := s.Group.Ops
	if len(ops) < 2 || !strings.HasSuffix(ops[0].Kind.Name, "rmsnorm") || ops[1].Kind.Name != "half" || ops[1].Args[0] != ops[0].Result ||
		ops[0].Attrs.Int("group")%4 != 0 {
		return nil, nil
	}
	switch {
	case len(ops) == 2 && slices.Contains(s.Outputs, ops[1].Result):
		return ops[1], nil
	case len(ops) == 3 && ops[2].Kind.Name == "tile" && ops[2].Args[0] == ops[1].Result:
		return ops[1], ops[2]
	}
	return nil, nil
}

func (k rowNormKernel) key() string {
	half, even := "", ""
	if k.half != nil {
		half = "+half"
	}
	if (k.half != nil || k.tile.op != nil) && k.exact {
		half += "+f32"
	}
	if !k.even() {
		even = "-"
	}
	if k.gains() {
		half += " gains"
	}
	runs := ""
	if k.runs > 1 {
		runs = fmt.Sprintf(" runs=%d", k.runs)
	}
	half += k.tile.key()
	name := k.op.Kind.Name + k.post.key(k.op.Kind.Name == "rmsnorm" && len(k.op.Args) == 1) + half
	if k.loop {
		return fmt.Sprintf("rownorm %s v=%d loop%s", name, k.vec, k.rows.Key())
	}
	return fmt.Sprintf("rownorm %s v=%dx%d%s w=%dx%d%s%s", name, k.vec, k.perLane(), even, k.size/k.wave, k.wave, runs, k.rows.Key())
}
