package kernel

// The place of a lane. A lane is one invocation, a subgroup the lanes that run in
// lock step (a wave, a warp), a workgroup some subgroups that share memory and
// barriers. All are U32.

// SubgroupLane returns the lane's index in its subgroup.
func (b *Builder) SubgroupLane() Value { return b.builtin(SubgroupLane, "basic") }

// SubgroupID returns the subgroup's index in its workgroup.
func (b *Builder) SubgroupID() Value { return b.builtin(SubgroupID, "basic") }

// NumSubgroups returns the subgroups of a workgroup.
func (b *Builder) NumSubgroups() Value { return b.builtin(NumSubgroups, "basic") }

// LocalID returns the lane's index in its workgroup.
func (b *Builder) LocalID() Value { return b.builtin(LocalID, "") }

// WorkgroupID returns the workgroup's index along dimension dim, 0 to 2, of the
// grid.
func (b *Builder) WorkgroupID(dim int) Value {
	id := b.dimension(WorkgroupIDX, dim)
	if dim == 0 && b.from != nil {
		id = b.Sub(id, *b.from)
	}
	return id
}

// WorkgroupsFrom runs body, in which WorkgroupID counts the workgroups along dimension 0 from the given one on. There
// body must not ask how many workgroups there are.
func (b *Builder) WorkgroupsFrom(first Value, body func()) {
	outer := b.from
	b.from = &first
	body()
	b.from = outer
}

// WorkgroupAhead returns the index along dimension 0 of the workgroup n places further in its line of the grid, if
// workgroups run one after the other and this call reaches that workgroup; otherwise the lane's own index. Kernels use
// it to prefetch lines that they will write.
func (b *Builder) WorkgroupAhead(n int) Value {
	if b.from != nil {
		b.fail("workgroup ahead in a grid of which only some workgroups count")
	}
	return b.add(&Node{op: OpBuiltin, typ: U32, imm: uint32(WorkgroupIDX), ahead: true, align: n})
}

// NumWorkgroups returns the size of the grid along dimension dim, 0 to 2.
func (b *Builder) NumWorkgroups(dim int) Value {
	if dim == 0 && b.from != nil {
		b.fail("size of a grid of which only some workgroups count")
	}
	return b.dimension(NumWorkgroupsX, dim)
}

func (b *Builder) dimension(x Builtin, dim int) Value {
	if dim < 0 || dim > 2 {
		b.fail("dimension %d", dim)
		dim = 0
	}
	return b.builtin(x+Builtin(dim), "")
}

func (b *Builder) builtin(x Builtin, class string) Value {
	if class != "" {
		b.subgroup[class] = true
	}
	return b.add(&Node{op: OpBuiltin, typ: U32, imm: uint32(x)})
}

// Operations between the active lanes of a subgroup. The order in which a
// reduction of floats adds is the device's: the same on one device for the same
// subgroup size.

// SubgroupAdd returns the sum of x over the subgroup.
func (b *Builder) SubgroupAdd(x Value) Value { return b.unary(OpSubgroupAdd, kNum, x) }

// SubgroupMax returns the maximum of x over the subgroup.
func (b *Builder) SubgroupMax(x Value) Value { return b.unary(OpSubgroupMax, kNum, x) }

// SubgroupMin returns the minimum of x over the subgroup.
func (b *Builder) SubgroupMin(x Value) Value { return b.unary(OpSubgroupMin, kNum, x) }

// SubgroupExclusiveAdd returns the sum of x over the lanes before this one.
func (b *Builder) SubgroupExclusiveAdd(x Value) Value {
	return b.unary(OpSubgroupExclusiveAdd, kNum, x)
}

// SubgroupShuffle returns the x of the lane that each lane names, a U32.
func (b *Builder) SubgroupShuffle(x Value, lane Operand) Value {
	return b.fromLane(OpSubgroupShuffle, x, lane)
}

// SubgroupShuffleXor returns the x of the lane whose index is this lane's xor
// mask, a U32 that is the same in all lanes.
func (b *Builder) SubgroupShuffleXor(x Value, mask Operand) Value {
	return b.fromLane(OpSubgroupShuffleXor, x, mask)
}

func (b *Builder) fromLane(o Op, x Value, lane Operand) Value {
	n := b.same(o, kAny, x)[0]
	return b.emit(o, n.typ, n, b.typed(o, lane, U32))
}

// SubgroupElect holds in the first active lane only.
func (b *Builder) SubgroupElect() Value { return b.emit(OpSubgroupElect, Bool) }

// SubgroupAny returns whether the Bool x holds in any lane.
func (b *Builder) SubgroupAny(x Value) Value {
	return b.emit(OpSubgroupAny, Bool, b.typed(OpSubgroupAny, x, Bool))
}
