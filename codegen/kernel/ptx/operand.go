package ptx

import (
	"fmt"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// operand is one element of a value: a register, or a number that is known here.
type operand struct {
	reg  string
	bits uint32
	lit  bool
}

func number(bits uint32) operand   { return operand{bits: bits, lit: true} }
func register(name string) operand { return operand{reg: name} }

// as writes an operand for instructions of a type.
func (o operand) as(t kernel.Type) string {
	switch {
	case !o.lit:
		return o.reg
	case t == kernel.F32:
		return fmt.Sprintf("0f%08X", o.bits)
	case t == kernel.I32:
		return fmt.Sprint(int32(o.bits))
	}
	return fmt.Sprint(o.bits)
}

// word emits an instruction into a new register of 32 bits.
func (l *lowering) word(instr, format string, args ...any) operand {
	to := l.reg(words)
	l.do("%s %s, %s", instr, to, fmt.Sprintf(format, args...))
	return register(to)
}

// condition emits an instruction into a new predicate.
func (l *lowering) condition(instr, format string, args ...any) operand {
	to := l.reg(conditions)
	l.do("%s %s, %s", instr, to, fmt.Sprintf(format, args...))
	return register(to)
}

// held returns the operand in a register, as instructions want it that take no numbers.
func (l *lowering) held(o operand, t kernel.Type) string {
	switch {
	case !o.lit:
		return o.reg
	case t == kernel.Bool:
		return l.condition("setp.ne.u32", "%d, 0", o.bits).reg
	}
	return l.word("mov.b32", "%d", o.bits).reg
}

// value returns the elements of a node's result.
func (l *lowering) value(n *kernel.Node) []operand {
	v, ok := l.values[n]
	if !ok {
		v = l.static(n)
		l.values[n] = v
	}
	return v
}

// scalar returns the only element.
func (l *lowering) scalar(n *kernel.Node) operand { return l.value(n)[0] }

// static returns the numbers of a node that is known at specialization time.
func (l *lowering) static(n *kernel.Node) []operand {
	if !n.Static() {
		l.fail(n, "used before it is made")
		return make([]operand, 16)
	}
	if n.Op() == kernel.OpVec {
		var v []operand
		for _, a := range n.Args() {
			v = append(v, l.scalar(a))
		}
		return v
	}
	bits, err := l.f.Eval(n, l.o.Spec)
	if err != nil {
		l.fail(n, "%v", err)
	}
	return []operand{number(bits)}
}

// copyTo moves a value into registers.
func (l *lowering) copyTo(to, from []operand, t kernel.Type) {
	move := "mov.b32"
	if t.Elem() == kernel.Bool {
		move = "mov.pred"
	}
	for i := range to {
		l.do("%s %s, %s", move, to[i].reg, from[i].as(kernel.U32))
	}
}

// registers makes as many as a value of type t takes.
func (l *lowering) registers(t kernel.Type) []operand {
	class := words
	if t.Elem() == kernel.Bool {
		class = conditions
	}
	v := make([]operand, wordsOf(t))
	for i := range v {
		v[i] = register(l.reg(class))
	}
	return v
}

// wordsOf returns how many words a lane holds of a value.
func wordsOf(t kernel.Type) int {
	if !t.IsMatrix() {
		return t.Lanes()
	}
	rows, cols, _ := t.Shape()
	n := rows * cols / Wave
	if t.Elem() == kernel.F16 {
		n /= 2
	}
	return n
}
