package kernel

// region records body into a new region.
func (b *Builder) region(r *Region, body func()) *Region {
	outer := b.cur
	r.open = true
	b.cur = r
	body()
	r.open = false
	b.cur = outer
	return r
}

// If runs then in the lanes in which cond, a Bool, holds.
func (b *Builder) If(cond Value, then func()) { b.IfElse(cond, then, nil) }

// Line runs body, which fills shared arrays with values that are the same for all WorkgroupID(0); nothing else
// may store to these arrays. If the workgroups of such a line of the grid run one after the other, the first may
// run body for all of them.
func (b *Builder) Line(body func()) {
	b.IfElse(b.Bool(true), body, nil)
	b.cur.nodes[len(b.cur.nodes)-1].ahead = true
}

// IfElse runs then in the lanes in which cond, a Bool, holds, and otherwise in
// the others.
func (b *Builder) IfElse(cond Value, then, otherwise func()) {
	n := &Node{op: OpIf, args: []*Node{b.typed(OpIf, cond, Bool)}}
	n.regions = append(n.regions, b.region(&Region{}, then))
	if otherwise != nil {
		n.regions = append(n.regions, b.region(&Region{}, otherwise))
	}
	b.add(n)
}

// For runs body with i = lo, lo+step, ... while i < hi. All are U32; hi+step is
// less than 2^32, step is not 0.
func (b *Builder) For(lo, hi, step Operand, body func(i Value)) {
	b.loop(lo, hi, step, body, NoHint)
}

// ForUnroll is For, with the request to unroll the loop. It is for bounds that
// are known at specialization time; where Go knows them, use a Go loop.
func (b *Builder) ForUnroll(lo, hi, step Operand, body func(i Value)) {
	b.loop(lo, hi, step, body, Unroll)
}

// ForRolled is For, with the request not to unroll the loop: for long bodies, which
// drivers unroll until the device waits for instructions.
func (b *Builder) ForRolled(lo, hi, step Operand, body func(i Value)) {
	b.loop(lo, hi, step, body, Rolled)
}

func (b *Builder) loop(lo, hi, step Operand, body func(i Value), hint Hint) {
	n := &Node{op: OpFor, args: []*Node{b.typed(OpFor, lo, U32), b.typed(OpFor, hi, U32), b.typed(OpFor, step, U32)}}
	r := &Region{hint: hint}
	r.param = &Node{op: OpParam, typ: U32, region: r}
	n.regions = []*Region{b.region(r, func() { body(Value{r.param}) })}
	b.add(n)
}

// ReturnIf ends the kernel in the lanes in which cond, a Bool, holds. Where a
// Barrier follows, cond must be the same in the whole workgroup.
func (b *Builder) ReturnIf(cond Value) {
	b.add(&Node{op: OpReturnIf, args: []*Node{b.typed(OpReturnIf, cond, Bool)}})
}

// Barrier waits until all lanes of the workgroup have reached it; after it, all see what
// they wrote to shared arrays before it. All lanes must reach it.
func (b *Builder) Barrier() { b.add(&Node{op: OpBarrier}) }

// BarrierBuffers is a Barrier after which all lanes of the workgroup see what they
// wrote to buffers before, too.
func (b *Builder) BarrierBuffers() { b.add(&Node{op: OpBarrier, imm: 1}) }

// Fence orders the lane's accesses to buffers before and after it, for the
// whole device: if an AtomicAdd before one fence sees an AtomicAdd after another
// fence, then accesses after the former fence see the writes before the latter.
func (b *Builder) Fence() { b.add(&Node{op: OpFence}) }

// Await has a kernel that overlaps the dispatch before wait for it here, unless it has. It stands before branches that
// would wait themselves: behind these, the driver's compiler makes all that follows twice.
func (b *Builder) Await() { b.add(&Node{op: OpAwait}) }

// PrefetchNext is where a kernel has no more weights to load. One that prefetches those of a later dispatch then does
// so here.
func (b *Builder) PrefetchNext() { b.add(&Node{op: OpPrefetchNext}) }

// SubgroupBarrier is a Barrier among the lanes of a subgroup.
func (b *Builder) SubgroupBarrier() { b.add(&Node{op: OpSubgroupBarrier}) }

// SubgroupHint is a SubgroupBarrier that no access needs. It keeps the driver's compiler from
// mixing the code before it with the code after it.
func (b *Builder) SubgroupHint() { b.add(&Node{op: OpSubgroupBarrier, ahead: true}) }
