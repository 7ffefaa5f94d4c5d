package ptx

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Products of four subgroups are wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"),
// which sm_90a alone has. A and the sums are what mma.m16n8k16 has of each subgroup's 16 rows. B lies in
// shared memory without swizzling, by columns: 8 neighbours of a column are 16 bytes, 8 columns a core matrix of
// 128 bytes.

// groupArch is the architecture that has such products; no later one has.
const groupArch = 90

// bytes of shared memory, in the units of descriptors.
const descriptorUnit, coreMatrix = 16, 128

// matGroupAdd makes all products of a call one group, that a wait counts.
func (l *lowering) matGroupAdd(n *kernel.Node) {
	if l.apart {
		l.fail(n, "where lanes may be elsewhere")
		return
	}
	stride, a, at, vars := n.Group()
	by := l.scalar(stride)
	if !by.lit {
		l.fail(n, "by a stride that is not known")
		return
	}
	var sums []operand
	for _, v := range vars {
		sums = append(sums, l.value(v)...)
	}
	var words [][]operand
	for i := range a {
		words = append(words, l.heldAll(l.value(a[i]), kernel.U32))
	}
	var descriptors []string
	for i := range at {
		descriptors = append(descriptors, l.descriptor(int(n.Imm()), l.scalar(at[i]), by.bits))
	}
	more := l.held(number(1), kernel.Bool)
	l.do("wgmma.fence.sync.aligned")
	for i := range a {
		l.do("wgmma.mma_async.sync.aligned.m64n%dk16.f32.f16.f16 %s, %s, %s, %s, 1, 1, 0", columns*len(vars), list(sums), list(words[i]), descriptors[i], more)
	}
	l.do("wgmma.commit_group.sync.aligned")
}

// descriptor returns a register with what says where B lies: where it begins, how far it is from half of a column to
// the other, and from 8 columns to the next.
func (l *lowering) descriptor(array int, i operand, stride uint32) string {
	at := l.word("mov.u32", "%s", l.shared(array, i))
	at = l.word("shr.u32", "%s, 4", at.reg)
	at = l.word("or.b32", "%s, %d", at.reg, stride<<16)
	d := l.reg(addresses)
	l.do("mov.b64 %s, {%s, %s}", d, at.reg, l.word("mov.b32", "%d", coreMatrix/descriptorUnit).reg)
	return d
}

func (l *lowering) matGroupWait(n *kernel.Node) {
	l.do("wgmma.wait_group.sync.aligned %d", n.Imm())
}

// target returns the version and architecture that a module names.
func (l *lowering) target() (string, error) {
	if !l.f.Groups && l.f.Bulk && l.o.Arch < 100 {
		return fmt.Sprintf(".version 8.0\n.target sm_%d\n", l.o.Arch), nil
	}
	if !l.f.Groups {
		return fmt.Sprintf(".version %s\n.target sm_%d\n", version(l.o.Arch), l.o.Arch), nil
	}
	if l.o.Arch != groupArch {
		return "", fmt.Errorf("products of four subgroups: sm_%d has none, only sm_%da", l.o.Arch, groupArch)
	}
	return fmt.Sprintf(".version 8.0\n.target sm_%da\n", l.o.Arch), nil
}
