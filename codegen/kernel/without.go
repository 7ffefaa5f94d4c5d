package kernel

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// walk calls visit for every node of the region and of those inside, in order.
func (r *Region) walk(visit func(n *Node)) {
	for _, n := range r.nodes {
		visit(n)
		for _, inner := range n.regions {
			inner.walk(visit)
		}
	}
}

// orders reports whether the operation is there for the order of accesses alone.
func (o Op) orders() bool {
	return o == OpBarrier || o == OpSubgroupBarrier || o == OpFence || o == OpReached
}

func (f *Func) ordering() []*Node {
	var list []*Node
	f.body.walk(func(n *Node) {
		if n.op.orders() && !n.ahead {
			list = append(list, n)
		}
	})
	return list
}

// Barriers describes the kernel's barriers (also of subgroups) and fences, in order,
// each with its position in the source. It leaves out hints.
func (f *Func) Barriers() []string {
	var list []string
	for _, n := range f.ordering() {
		name := ops[n.op].name
		if n.imm != 0 {
			name = "barrier of buffers"
		}
		list = append(list, fmt.Sprintf("%s at %s", name, n.place()))
	}
	return list
}

// LoadsAhead reports whether the kernel loads through Buffer.Ahead. Run returns noise for a word that another lane may
// be writing, and more of it without a barrier.
func (f *Func) LoadsAhead() bool {
	ahead := false
	f.body.walk(func(n *Node) { ahead = ahead || n.ahead && !n.op.orders() })
	return ahead
}

// Without returns the kernel without some entries of Barriers, to test what notices. Run still requires that all lanes
// reach these places. So a kernel that runs without them also runs with them, to the same results unless it loads
// ahead.
func (f *Func) Without(entries ...int) *Func {
	g := *f
	list := f.ordering()
	g.left = nil
	for _, i := range entries {
		g.left = append(g.left, list[i])
	}
	return &g
}

// placed reports whether nodes of the operation know their place in the source.
func (o Op) placed() bool {
	return o >= OpLoad && o <= OpSharedAdd || o == OpCopyWait || o.orders() || o == OpMatLoad || o == OpMatStore || o == OpMatGroupAdd || o == OpBulk || o == OpArrivals || o == OpArrived || o == OpDone || o == OpFree || o == OpGates || o == OpReach || o == OpMatGroupWait ||
		o >= OpTileZero && o <= OpTileMulAdd
}

// callers are the program counters of those who made a node.
type callers [12]uintptr

func here() *callers {
	var c callers
	runtime.Callers(3, c[:])
	return &c
}

// place returns folder/file.go:line of the call that made the node and, where a helper made
// it, of the calls around, up to three.
func (n *Node) place() string {
	if n.at == nil {
		return "unknown place"
	}
	self := ownFrame()
	frames := runtime.CallersFrames(n.at[:])
	var list []string
	for len(list) < 3 {
		f, more := frames.Next()
		if f.Function == self+"Build" {
			break
		}
		if f.Function != "" && (!strings.HasPrefix(f.Function, self) || strings.HasSuffix(f.File, "_test.go")) {
			list = append(list, path.Join(path.Base(path.Dir(f.File)), path.Base(f.File))+fmt.Sprintf(":%d", f.Line))
		}
		if !more {
			break
		}
	}
	return strings.Join(list, " < ")
}
