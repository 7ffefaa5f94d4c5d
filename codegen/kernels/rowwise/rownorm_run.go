package rowwise

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/codegen/kernels/lane"
	"github.com/zincc-dev/zincc/codegen/kernels/site"
	"github.com/zincc-dev/zincc/ir"
)

// normArgs are the arguments and constants of a norm's kernel.
type normArgs struct {
	extent         site.StepRows
	x, gain, z     *kernel.Buffer // l2norm has the first, rmsnorm one or two
	post           postNormArgs
	y, half, tiles *kernel.Buffer // nil where they are not written
	group, eps     kernel.Value
	width          kernel.Value // only where there are several gains, or tiles
}

func (k rowNormKernel) declare(s *site.Signature) (a normArgs) {
	a.extent = k.rows.Declare(s)
	for i, to := range []**kernel.Buffer{&a.x, &a.gain, &a.z}[:len(k.op.Args)] {
		*to = s.Read([...]string{"x", "gain", "z"}[i], k.op.Args[i])
	}
	a.post = k.post.declare(s)
	switch {
	case k.post.result != nil:
		a.y = s.Write("y", k.post.result)
	case k.exact:
		a.y = s.Write("y", k.op.Result)
	}
	if k.half != nil {
		a.half = s.Write("half", k.half.Result)
	}
	a.tiles = k.tile.declare(s)
	a.group = s.U32("group", k.group, 4096, "elements that are normed together")
	a.eps = s.F32("eps", k.op.Attrs.Float("eps"), 1e-6, "added to the mean square, or the least length")
	if k.gains() || k.tile.op != nil {
		a.width = s.U32("width", int(k.op.Result.Type.Last()), 4096, "elements of a row")
	}
	return a
}

// normRun is a lane's part of a run.
type normRun struct {
	normArgs
	k     rowNormKernel
	b     *kernel.Builder
	t     kernel.Type  // of an access
	n     kernel.Value // accesses of the run
	rows  kernel.Value // of the step
	row   kernel.Value
	from  kernel.Value // first access of the run
	lane  kernel.Value // of the run
	stage *normStage   // nil without tiles
	scale kernel.Value
}

// normPart is one access of a lane, and what it takes besides.
type normPart struct{ i, exists, x, gain, z, add, gain2, add2 kernel.Value }

func (k rowNormKernel) kernel(s *site.Signature) func(b *kernel.Builder) {
	a := k.declare(s)
	return func(b *kernel.Builder) {
		r := &normRun{k: k, normArgs: a, b: b, t: kernel.F32.Vec(k.vec)}
		r.place()
		parts, squares := r.load()
		r.scaleBy(k.sum(b, squares))
		if a.post.again != nil {
			r.again(parts)
		}
		if k.loop {
			b.For(r.lane, r.n, k.size, func(i kernel.Value) { r.write(r.part(i)) })
		}
		for _, p := range parts {
			r.write(p)
		}
		if r.stage != nil {
			r.stage.write()
		}
	}
}

// place finds the run.
func (r *normRun) place() {
	b := r.b
	r.rows = r.extent.Load(b)
	b.Workgroup(r.k.lanes())
	r.row = b.WorkgroupID(1)
	r.n = b.Div(r.group, r.k.vec)
	r.from, r.lane = b.Mul(b.Add(b.Mul(r.row, b.NumWorkgroups(0)), b.WorkgroupID(0)), r.n), b.LocalID()
	if r.tiles != nil {
		r.stage = r.k.stage(b, r.tiles, r.width, r.group)
		r.row = b.Add(b.Mul(b.WorkgroupID(2), ir.TileRows), r.stage.rowOf(r.stage.line))
		r.from, r.lane = b.Add(b.Div(b.Add(b.Mul(r.row, r.width), b.Mul(b.WorkgroupID(0), r.stage.columns)), r.k.vec), r.stage.run), r.stage.lane
	} else if r.k.runs > 1 {
		r.from, r.lane = b.Add(b.Mul(r.from, r.k.runs), b.Mul(b.SubgroupID(), r.n)), b.SubgroupLane()
	}
}

// load loads all parts at once and returns the sum of their squares. In a loop it returns no parts.
func (r *normRun) load() (parts []normPart, squares kernel.Value) {
	b := r.b
	squares = b.F32(0)
	if r.k.loop {
		all := b.Var(kernel.F32, 0.0)
		b.For(r.lane, r.n, r.k.size, func(i kernel.Value) {
			all.Set(r.square(normPart{x: r.x.Load(r.t, b.Add(r.from, i)), exists: b.Bool(true)}, all.Get()))
		})
		return nil, all.Get()
	}
	for j := range r.k.perLane() {
		parts = append(parts, r.part(b.Add(r.lane, j*r.k.size)))
	}
	for _, p := range parts {
		squares = r.square(p, squares)
	}
	return parts, squares
}

// part loads access i of the run.
func (r *normRun) part(i kernel.Value) normPart {
	b := r.b
	p := normPart{i: i, exists: b.Bool(true)}
	if !r.k.even() && !r.k.loop {
		p.exists, p.i = b.Lt(p.i, r.n), b.Min(p.i, b.Sub(r.n, 1))
	}
	p.x = r.x.Load(r.t, b.Add(r.from, p.i))
	if r.gain != nil && r.stage == nil {
		p.gain = r.gainOf(p)
	}
	if r.z != nil {
		p.z = r.z.Load(r.t, b.Add(r.from, p.i))
	}
	if r.post.add != nil {
		p.add = r.post.add.Load(r.t, b.Add(r.from, p.i))
	}
	if r.post.again != nil {
		p.gain2, p.add2 = r.post.gain2.Load(r.t, p.i), r.post.add2.Load(r.t, b.Add(r.from, p.i))
	}
	return p
}

func (r *normRun) gainOf(p normPart) kernel.Value {
	b, at := r.b, p.i
	if r.k.gains() {
		at = b.Add(at, b.Sub(r.from, b.Mul(r.row, b.Div(r.width, r.k.vec))))
	}
	return r.gain.Load(r.t, at)
}

// square adds the squares of a part to sum.
func (r *normRun) square(p normPart, sum kernel.Value) kernel.Value {
	b := r.b
	for _, e := range lane.Elements(b, p.x) {
		sum = b.FMA(b.Select(p.exists, e, 0), e, sum)
	}
	return sum
}

// scaleBy finds the scale from the sum of all squares.
func (r *normRun) scaleBy(total kernel.Value) {
	b := r.b
	if r.k.op.Kind.Name == "l2norm" {
		r.scale = b.InverseSqrt(b.Add(total, r.eps))
	} else {
		r.scale = b.InverseSqrt(b.Add(b.Div(total, b.Convert(kernel.F32, r.group)), r.eps))
	}
}

func (r *normRun) normed(p normPart) kernel.Value {
	v := r.b.Mul(p.x, lane.Splat(r.b, r.scale, r.k.vec))
	if p.gain != (kernel.Value{}) {
		v = r.b.Mul(v, p.gain)
	}
	return v
}

// again norms what the first norm and its add have made, which takes the place of x.
func (r *normRun) again(parts []normPart) {
	b := r.b
	squares := b.F32(0)
	for i := range parts {
		p := &parts[i]
		p.x = b.Add(r.normed(*p), p.add)
		p.gain, p.add = p.gain2, p.add2
		squares = r.square(*p, squares)
	}
	r.scale = b.InverseSqrt(b.Add(b.Div(r.k.sum(b, squares), b.Convert(kernel.F32, r.group)), r.post.eps2))
}

// write finishes a part and writes it.
func (r *normRun) write(p normPart) {
	b := r.b
	if r.gain != nil && r.stage != nil { // only now: lanes have many elements
		p.gain = r.gainOf(p)
	}
	v := r.normed(p)
	if r.z != nil {
		v = b.Mul(v, lane.EachElement(b, p.z, lane.Activations["silu"]))
	}
	if r.post.add != nil {
		v = r.post.finish(b, b.Add(v, p.add), r.k.vec)
	}
	b.If(b.And(p.exists, b.Lt(r.row, r.rows)), func() {
		if r.y != nil {
			r.y.Store(b.Add(r.from, p.i), v)
		}
		if r.half != nil {
			r.half.Store(b.Add(r.from, p.i), lane.RoundHalf(b, v))
		}
	})
	if r.stage != nil {
		b.If(p.exists, func() {
			r.stage.put(p.i, b.Select(b.Splat(b.Lt(r.row, r.rows), 2), lane.RoundHalf(b, v), b.Splat(b.U32(0), 2)))
		})
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
