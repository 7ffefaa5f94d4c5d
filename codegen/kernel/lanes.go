package kernel

// The place of a lane. A lane is one invocation, a subgroup the lanes that run in
// lock step (a wave, a warp), a workgroup some subgroups that share memory and
// barriers. All are U32.

// SubgroupLane returns the lane's index in its subgroup.
func (b *Builder) SubgroupLane() Value { return b.builtin(subgroupLane, "basic") }

// SubgroupID returns the subgroup's index in its workgroup.
func (b *Builder) SubgroupID() Value { return b.builtin(subgroupID, "basic") }

// NumSubgroups returns the subgroups of a workgroup.
func (b *Builder) NumSubgroups() Value { return b.builtin(numSubgroups, "basic") }

// LocalID returns the lane's index in its workgroup.
func (b *Builder) LocalID() Value { return b.builtin(localID, "") }

// WorkgroupID returns the workgroup's index along dimension dim, 0 to 2, of the
// grid.
func (b *Builder) WorkgroupID(dim int) Value { return b.dimension(workgroupIDX, dim) }

// NumWorkgroups returns the size of the grid along dimension dim, 0 to 2.
func (b *Builder) NumWorkgroups(dim int) Value { return b.dimension(numWorkgroupsX, dim) }

func (b *Builder) dimension(x builtin, dim int) Value {
	if dim < 0 || dim > 2 {
		b.fail("dimension %d", dim)
		dim = 0
	}
	return b.builtin(x+builtin(dim), "")
}

func (b *Builder) builtin(x builtin, class string) Value {
	if class != "" {
		b.subgroup[class] = true
	}
	return b.add(&node{op: opBuiltin, typ: U32, imm: uint32(x)})
}

// Operations between the active lanes of a subgroup. The order in which a
// reduction of floats adds is the device's: the same on one device for the same
// subgroup size.

// SubgroupAdd returns the sum of x over the subgroup.
func (b *Builder) SubgroupAdd(x Value) Value { return b.unary(opSubgroupAdd, kNum, x) }

// SubgroupMax returns the maximum of x over the subgroup.
func (b *Builder) SubgroupMax(x Value) Value { return b.unary(opSubgroupMax, kNum, x) }

// SubgroupMin returns the minimum of x over the subgroup.
func (b *Builder) SubgroupMin(x Value) Value { return b.unary(opSubgroupMin, kNum, x) }

// SubgroupExclusiveAdd returns the sum of x over the lanes before this one.
func (b *Builder) SubgroupExclusiveAdd(x Value) Value {
	return b.unary(opSubgroupExclusiveAdd, kNum, x)
}

// SubgroupShuffle returns the x of the lane that each lane names, a U32.
func (b *Builder) SubgroupShuffle(x Value, lane Operand) Value {
	return b.fromLane(opSubgroupShuffle, x, lane)
}

// SubgroupShuffleXor returns the x of the lane whose index is this lane's xor
// mask, a U32 that is the same in all lanes.
func (b *Builder) SubgroupShuffleXor(x Value, mask Operand) Value {
	return b.fromLane(opSubgroupShuffleXor, x, mask)
}

func (b *Builder) fromLane(o op, x Value, lane Operand) Value {
	n := b.same(o, kAny, x)[0]
	return b.emit(o, n.typ, n, b.typed(o, lane, U32))
}

// SubgroupElect holds in the first active lane only.
func (b *Builder) SubgroupElect() Value { return b.emit(opSubgroupElect, Bool) }

// SubgroupAny returns whether the Bool x holds in any lane.
func (b *Builder) SubgroupAny(x Value) Value {
	return b.emit(opSubgroupAny, Bool, b.typed(opSubgroupAny, x, Bool))
}
