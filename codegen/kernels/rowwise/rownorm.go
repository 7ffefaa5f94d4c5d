package rowwise

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

func RowNormCandidates(s *site.Site) []site.Candidate {
	var op *ir.Op
	for _, name := range []string{"rmsnorm", "gated_rmsnorm", "l2norm"} {
		if op == nil {
			op = site.Only(s, name)
		}
	}
	half, tile := roundedNorm(s)
	if half != nil {
		op = s.Group.Ops[0]
	}
	var post postNorm
	if op == nil {
		if post = matchPostNorm(s); post.result != nil {
			op = s.Group.Ops[0]
		}
	}
	if op == nil || len(op.Args) > 1 && op.Args[1].Type.DType != ir.F32 {
		return nil
	}
	rows, ok := site.ExtentOf(s, op.Result)
	if !ok {
		return nil
	}
	width, group := int(op.Result.Type.Last()), op.Attrs.Int("group")
	k := rowNormKernel{rows: rows, op: op, vec: site.Widest(group), exact: post.result != nil || slices.Contains(s.Outputs, op.Result), half: half, post: post, group: group,
		wave: s.Target.Wave, loop: s.Target.Backend == plans.CPU}
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
		Kernel: k.key(),
		Grid:   [3]int{width / group / k.runs, rows.Max, 1},
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

func (k rowNormKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	extent := k.rows.Declare(s)
	var args [3]*kernel.Buffer // l2norm has the first, rmsnorm one or two
	for i, v := range k.op.Args {
		args[i] = s.Read([...]string{"x", "gain", "z"}[i], v)
	}
	x, gain, z, post := args[0], args[1], args[2], k.post.declare(s)
	var y, half *kernel.Buffer
	switch {
	case k.post.result != nil:
		y = s.Write("y", k.post.result)
	case k.exact:
		y = s.Write("y", k.op.Result)
	}
	if k.half != nil {
		half = s.Write("half", k.half.Result)
	}
	tiles := k.tile.declare(s)
	group := s.U32("group", k.group, 4096, "elements that are normed together")
	eps := s.F32("eps", k.op.Attrs.Float("eps"), 1e-6, "added to the mean square, or the least length")
	var width kernel.Value
	if k.gains() || k.tile.op != nil {
		width = s.U32("width", int(k.op.Result.Type.Last()), 4096, "elements of a row")
	}
	return func(b *kernel.Builder) {
		rows := extent.Load(b)
		b.Workgroup(k.lanes())

		row := b.WorkgroupID(1)
		t, n := kernel.F32.Vec(k.vec), b.Div(group, k.vec)
		from, laneID := b.Mul(b.Add(b.Mul(row, b.NumWorkgroups(0)), b.WorkgroupID(0)), n), b.LocalID()
		var stage *normStage
		if tiles != nil {
			stage = k.stage(b, tiles, width, group)
			row = b.Add(b.Mul(b.WorkgroupID(2), ir.TileRows), stage.rowOf(stage.line))
			from, laneID = b.Add(b.Div(b.Add(b.Mul(row, width), b.Mul(b.WorkgroupID(0), stage.columns)), k.vec), stage.run), stage.lane
		} else if k.runs > 1 {
			from, laneID = b.Add(b.Mul(from, k.runs), b.Mul(b.SubgroupID(), n)), b.SubgroupLane()
		}
		type part struct{ i, exists, x, gain, z, add, gain2, add2 kernel.Value }
		gainOf := func(p part) kernel.Value {
			at := p.i
			if k.gains() {
				at = b.Add(at, b.Sub(from, b.Mul(row, b.Div(width, k.vec))))
			}
			return gain.Load(t, at)
		}
		load := func(i kernel.Value) part {
			p := part{i: i, exists: b.Bool(true)}
			if !k.even() && !k.loop {
				p.exists, p.i = b.Lt(p.i, n), b.Min(p.i, b.Sub(n, 1))
			}
			p.x = x.Load(t, b.Add(from, p.i))
			if gain != nil && stage == nil {
				p.gain = gainOf(p)
			}
			if z != nil {
				p.z = z.Load(t, b.Add(from, p.i))
			}
			if post.add != nil {
				p.add = post.add.Load(t, b.Add(from, p.i))
			}
			if post.again != nil {
				p.gain2, p.add2 = post.gain2.Load(t, p.i), post.add2.Load(t, b.Add(from, p.i))
			}
			return p
		}
		square := func(p part, sum kernel.Value) kernel.Value {
			for _, e := range lane.Elements(b, p.x) {
				sum = b.FMA(b.Select(p.exists, e, 0), e, sum)
			}
			return sum
		}
		var parts []part
		sum := b.F32(0)
		if k.loop {
			all := b.Var(kernel.F32, 0.0)
			b.For(laneID, n, k.size, func(i kernel.Value) {
				all.Set(square(part{x: x.Load(t, b.Add(from, i)), exists: b.Bool(true)}, all.Get()))
			})
			sum = all.Get()
		} else {
			for j := range k.perLane() { // all is loaded at once
				parts = append(parts, load(b.Add(laneID, j*k.size)))
			}
			for _, p := range parts {
				sum = square(p, sum)
			}
		}
		total := k.sum(b, sum)
		var scale kernel.Value
		if k.op.Kind.Name == "l2norm" {
			scale = b.InverseSqrt(b.Add(total, eps))
		} else {
			scale = b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, group)), eps))
		}
		normed := func(p part) kernel.Value {
			v := b.Mul(p.x, lane.Splat(b, scale, k.vec))
			if p.gain != (kernel.Value{}) {
				v = b.Mul(v, p.gain)
			}
			return v
		}
		if post.again != nil { // the sums take the place of x
			again := b.F32(0)
			for i := range parts {
				p := &parts[i]
				p.x = b.Add(normed(*p), p.add)
				p.gain, p.add = p.gain2, p.add2
				again = square(*p, again)
			}
			scale = b.InverseSqrt(b.Add(b.Div(k.sum(b, again), b.Convert(kernel.F32, group)), post.eps2))
		}
		write := func(p part) {
			if gain != nil && stage != nil { // only now: lanes have many elements
				p.gain = gainOf(p)
			}
			v := normed(p)
			if z != nil {
				v = b.Mul(v, lane.EachElement(b, p.z, lane.Activations["silu"]))
			}
			if post.add != nil {
				v = post.finish(b, b.Add(v, p.add), k.vec)
			}
			b.If(b.And(p.exists, b.Lt(row, rows)), func() {
				if y != nil {
					y.Store(b.Add(from, p.i), v)
				}
				if half != nil {
					half.Store(b.Add(from, p.i), lane.RoundHalf(b, v))
				}
			})
			if stage != nil {
				b.If(p.exists, func() {
					stage.put(p.i, b.Select(b.Splat(b.Lt(row, rows), 2), lane.RoundHalf(b, v), b.Splat(b.U32(0), 2)))
				})
			}
		}
		if k.loop {
			b.For(laneID, n, k.size, func(i kernel.Value) { write(load(i)) })
		}
		for _, p := range parts {
			write(p)
		}
		if stage != nil {
			stage.write()
		}
	}
}

// sum returns the sum of x over the lanes of a run, in all of them: over lanes, then over
// subgroups; a run has no more subgroups than one has lanes.
func (k rowNormKernel) sum(b *kernel.Builder, x kernel.Value) kernel.Value {
	subgroups := k.size / k.wave
	x = b.SubgroupAdd(x)
	if subgroups == 1 {
		return x
	}
	parts := b.Shared(kernel.F32, k.lanes()/k.wave)
	b.If(b.SubgroupElect(), func() { parts.Store(b.SubgroupID(), x) })
	b.Barrier()
	laneID := b.SubgroupLane()
	there, at := b.Lt(laneID, subgroups), b.Min(laneID, subgroups-1)
	if k.lanes() > k.size {
		at = b.Add(at, b.Mul(b.Div(b.SubgroupID(), subgroups), subgroups))
	}
	return b.SubgroupAdd(b.Select(there, parts.Load(at), 0))
}
