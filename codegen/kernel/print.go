package kernel

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// String prints the kernel: its interface, then its body, one operation a line.
// Values have numbers in order of appearance; constants, specialization constants
// ($name) and expressions of them stand where they are used.
func (f *Func) String() string {
	p := printer{f: f, ids: make([]int, f.nodes)}
	p.line("kernel %s", f.Name)
	for i, a := range f.Args {
		p.line("arg %d %s %v", i, a.Name, a.Access)
	}
	for _, s := range f.Spec {
		p.line("spec %d %s %v = %s", s.ID, s.Name, s.Type, literalString(s.Type, s.Default))
	}
	for i, a := range f.arrays {
		p.line("shared %d %v x %s", i, a.elem, p.ref(a.length))
	}
	for i, c := range f.tables {
		p.line("table %d in shared %d:%s", i, c.table.array.index, tableString(c))
	}
	p.line("workgroup %s", p.ref(f.workgroup))
	p.line("needs %s", strings.Join(f.Features, " "))
	if len(f.Extensions) > 0 {
		p.line("extensions %s", strings.Join(f.Extensions, " "))
	}
	p.line("subgroup %s", strings.Join(f.SubgroupOps, " "))
	p.line("{")
	p.region(f.body)
	p.line("}")
	return string(p.out)
}

type printer struct {
	f       *Func
	ids     []int // of nodes by number
	defined int
	indent  int
	out     []byte
}

func (p *printer) line(format string, args ...any) {
	p.begin()
	p.out = fmt.Appendf(p.out, format, args...)
	p.end()
}

func (p *printer) begin() {
	for range p.indent {
		p.out = append(p.out, '\t')
	}
}

func (p *printer) end() { p.out = append(bytes.TrimRight(p.out, " "), '\n') }

func (p *printer) region(r *Region) {
	p.indent++
	for _, n := range r.nodes {
		p.node(n)
	}
	p.indent--
}

// define numbers the result of a node.
func (p *printer) define(n *Node) string {
	p.ids[n.number] = p.defined
	p.defined++
	return p.ref(n)
}

// ref prints an operand.
func (p *printer) ref(n *Node) string { return string(p.appendRef(nil, n)) }

func (p *printer) appendRef(b []byte, n *Node) []byte {
	switch {
	case !n.static():
		return strconv.AppendInt(append(b, '%'), int64(p.ids[n.number]), 10)
	case n.op == OpConst:
		return append(b, literalString(n.typ, n.imm)...)
	case n.op == OpSpec:
		return append(append(b, '$'), p.f.Spec[n.imm].Name...)
	}
	b = append(append(b, ops[n.op].name...), '(')
	return append(p.appendRefs(b, n.args, ", "), ')')
}

func (p *printer) refs(ns []*Node, sep string) string { return string(p.appendRefs(nil, ns, sep)) }

func (p *printer) appendRefs(b []byte, ns []*Node, sep string) []byte {
	for i, n := range ns {
		if i > 0 {
			b = append(b, sep...)
		}
		b = p.appendRef(b, n)
	}
	return b
}

func literalString(t Type, bits uint32) string {
	switch t {
	case Bool:
		return strconv.FormatBool(bits != 0)
	case I32:
		return strconv.Itoa(int(int32(bits)))
	case F32:
		s := strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32)
		if !strings.ContainsAny(s, ".eIN") {
			s += ".0" // so that the type of a number is seen
		}
		return s
	}
	return strconv.FormatUint(uint64(bits), 10)
}

func (p *printer) node(n *Node) {
	switch n.op {
	case OpIf:
		p.line("if %s {", p.ref(n.args[0]))
		p.region(n.regions[0])
		if len(n.regions) > 1 {
			p.line("} else {")
			p.region(n.regions[1])
		}
		p.line("}")
	case OpFor:
		bounds := p.refs(n.args, ", ")
		hint := ""
		if n.regions[0].hint != NoHint {
			hint = " " + loopHints[n.regions[0].hint]
		}
		p.line("for %s = %s%s {", p.define(n.regions[0].param), bounds, hint)
		p.region(n.regions[0])
		p.line("}")
	default:
		p.operation(n)
	}
}

// operation prints a node without regions.
func (p *printer) operation(n *Node) {
	p.begin()
	if n.typ != Void {
		p.out = append(p.out, p.define(n)...)
		p.out = append(append(append(p.out, ": "...), n.typ.String()...), " = "...)
	}
	p.out = append(append(append(p.out, ops[n.op].name...), ' '), p.subject(n)...)
	p.out = p.appendRefs(p.out, n.args, " ")
	p.end()
}

// subject prints what a node is about besides its operands, with a space after.
func (p *printer) subject(n *Node) string {
	switch n.op {
	case OpBuiltin:
		return builtinNames[n.imm] + " "
	case OpAddress, OpLoad, OpStore, OpLoad16, OpStore16, OpAtomicAdd, OpPrefetch:
		return p.f.Args[n.imm].Name + " "
	case OpCopy, OpBulk:
		return fmt.Sprintf("%s %d ", p.f.Args[n.imm].Name, n.array.index)
	case OpSharedLoad, OpSharedStore, OpSharedElem, OpSharedSet, OpSharedAdd:
		return fmt.Sprintf("%d ", n.imm)
	case OpTable, OpArrived, OpDone, OpFree:
		return fmt.Sprintf("%d ", n.imm)
	case OpGates:
		return fmt.Sprintf("%d gates=%d", n.imm, n.align)
	case OpReach, OpReached:
		return fmt.Sprintf("%d gate=%d ", n.imm, n.align)
	case OpArrivals:
		return fmt.Sprintf("%d slots=%d", n.imm, n.align)
	case OpBarrier:
		if n.imm != 0 {
			return "buffers"
		}
	case OpMatGroupWait, OpCopyWait:
		return fmt.Sprint(n.imm)
	case OpMatGroupAdd:
		return fmt.Sprintf("%d products=%d ", n.imm, n.align)
	case OpMatLength:
		return fmt.Sprintf("%v ", Type(n.imm))
	case OpTileLoad, OpTileStore:
		return fmt.Sprintf("%d tile=%d ", n.imm, n.align)
	case OpTileZero:
		return fmt.Sprint(n.Tile(0))
	case OpTileMulAdd:
		return fmt.Sprintf("%d %d %d", n.Tile(0), n.Tile(1), n.Tile(2))
	case OpMatLoad, OpMatStore:
		return fmt.Sprintf("%d %s ", n.imm, layoutNames[n.align])
	}
	return ""
}
