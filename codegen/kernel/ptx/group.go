package ptx

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// Products of four subgroups are wgmma.mma_async (PTX ISA, "Asynchronous Warpgroup Level Matrix Instructions"),
// which sm_90a alone has. A and the sums are what mma.m16n8k16 has of each subgroup's 16 rows. B, and maybe A, lies in
// shared memory: without swizzling, 8 neighbours of a column are 16 bytes, 8 columns a core matrix of
// 128 bytes; or in lines of 128 bytes, whose 16 bytes are swizzled.

// groupArch is the architecture that has such products; no later one has.
const groupArch = 90

const (
	// coreMatrix is the bytes of a core matrix, coreElements its elements of 16 bytes, which descriptors count in.
	coreMatrix, coreElements = 128, 8
	// eightLines is the bytes of 8 lines, after which their order begins again, lineElements their elements.
	eightLines, lineElements = 1024, 64
	// lines is set, in the upper half of a descriptor, of matrices in lines: the swizzling mode of 128 bytes.
	lines = 1 << 30
)

// matGroupAdd makes all products of a call one group, that a wait counts.
func (l *lowering) matGroupAdd(n *kernel.Node) {
	if l.apart {
		l.fail(n, "where lanes may be elsewhere")
		return
	}
	what, array := n.Group(), int(n.Imm())
	var sums []operand
	for _, v := range what.Sums {
		sums = append(sums, l.value(v)...)
	}
	var left, right []string
	for i, a := range what.A {
		if what.Left {
			left = append(left, l.descriptor(array, l.scalar(a), 1, lineElements|lines))
		} else {
			left = append(left, list(l.heldAll(l.value(a), kernel.U32)))
		}
		switch at := l.scalar(what.At[i]); {
		case what.ByRow:
			right = append(right, l.descriptor(array, at, what.Stride, lineElements|lines))
		case what.Lines:
			right = append(right, l.descriptor(array, at, 1, lineElements|lines))
		default:
			right = append(right, l.descriptor(array, at, what.Stride, coreElements))
		}
	}
	add := l.held(number(1), kernel.Bool)
	first := add
	if what.Set {
		first = l.held(number(0), kernel.Bool)
	}
	turned := "0"
	if what.ByRow {
		turned = "1"
	}
	if what.Left {
		turned = "0, " + turned
	}
	l.do("wgmma.fence.sync.aligned")
	for i := range left {
		l.do("wgmma.mma_async.sync.aligned.m64n%dk16.f32.f16.f16 %s, %s, %s, %s, 1, 1, %s", columns*len(what.Sums), list(sums), left[i], right[i], first, turned)
		first = add
	}
	l.do("wgmma.commit_group.sync.aligned")
}

// descriptor returns a register with what says where a matrix lies in an array: where it begins, and two steps in
// elements of 16 bytes. An index in elements is added last, so that matrices of an array differ by one addition. Of
// columns that do not lie in lines the steps are from half of a column to the other and from 8 columns to the next; of
// lines that are rows of B from 64 columns to the next and from 8 rows to the next; of other lines PTX ignores the
// first.
func (l *lowering) descriptor(array int, i operand, first, second int) string {
	at := l.word("mov.u32", "%s", l.names[array])
	at = l.word("shr.u32", "%s, 4", at.reg)
	at = l.word("or.b32", "%s, %d", at.reg, first<<16)
	at = l.word("add.u32", "%s, %s", at.reg, i.as(kernel.U32))
	d := l.reg(addresses)
	l.do("mov.b64 %s, {%s, %s}", d, at.reg, l.word("mov.b32", "%d", second).reg)
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
