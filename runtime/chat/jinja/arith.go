package jinja

import (
	"math"
	"math/big"
	"math/bits"
)

func (st *state) overflow() { st.fail("OverflowError: the number does not fit in 64 bits") }

// arithmetic is a binary operator, with Python's signs of // and %.
func (st *state) arithmetic(op string, a, b Value) Value {
	st.mustDefined(a)
	if s, ok := a.(Str); ok && op == "%" {
		return st.printf(s, b)
	}
	st.mustDefined(b)
	i, f, isInt, ok1 := number(a)
	j, g, otherInt, ok2 := number(b)
	switch {
	case ok1 && ok2:
		_, big1 := a.(*big.Int)
		_, big2 := b.(*big.Int)
		if big1 || big2 {
			st.overflow()
		}
		if isInt && otherInt {
			return st.intMath(op, i, j)
		}
		return st.floatMath(op, f, g)
	case op == "+":
		return st.join(a, b)
	case op == "*" && otherInt:
		if v, ok := st.times(a, j); ok {
			return v
		}
	case op == "*" && isInt:
		if v, ok := st.times(b, i); ok {
			return v
		}
	}
	if op == "**" {
		op = "** or pow()"
	}
	st.fail("TypeError: unsupported operand type(s) for %s: '%s' and '%s'", op, typeName(a), typeName(b))
	return nil
}

// join is + of strings and lists.
func (st *state) join(a, b Value) Value {
	switch a := a.(type) {
	case Str:
		b, ok := b.(Str)
		if !ok {
			break
		}
		return st.plus(a, b)
	case *List:
		b, ok := b.(*List)
		if !ok || a.kind != b.kind || !a.indexed() {
			break
		}
		st.spend(len(a.items) + len(b.items))
		out := &List{kind: a.kind, items: make([]Value, 0, len(a.items)+len(b.items))}
		out.items = append(append(out.items, a.items...), b.items...)
		return out
	}
	switch kind := typeName(a); kind {
	case "str", "list", "tuple":
		st.fail(`TypeError: can only concatenate %s (not "%s") to %s`, kind, typeName(b), kind)
	}
	st.fail("TypeError: unsupported operand type(s) for +: '%s' and '%s'", typeName(a), typeName(b))
	return nil
}

// times is * of a string or list with a number.
func (st *state) times(v Value, n int64) (Value, bool) {
	switch v := v.(type) {
	case Str:
		return st.repeat(v, n), true
	case *List:
		if !v.indexed() {
			return nil, false
		}
		out := &List{kind: v.kind}
		if len(v.items) == 0 {
			return out, true
		}
		for range n {
			st.spend(len(v.items))
			out.items = append(out.items, v.items...)
		}
		return out, true
	}
	return nil, false
}

func (st *state) intMath(op string, a, b int64) Value {
	switch op {
	case "+":
		if c := a + b; (c > a) == (b > 0) {
			return c
		}
		st.overflow()
	case "-":
		if c := a - b; (c < a) == (b > 0) {
			return c
		}
		st.overflow()
	case "*":
		return st.product(a, b)
	case "**":
		return st.power(a, b)
	case "/":
		return st.floatMath(op, float64(a), float64(b))
	}
	if b == 0 {
		st.fail("ZeroDivisionError: integer %s by zero", map[string]string{"//": "division or modulo", "%": "modulo"}[op])
	}
	if a == math.MinInt64 && b == -1 {
		st.overflow()
	}
	q, r := a/b, a%b
	if r != 0 && (r < 0) != (b < 0) {
		q--
		r += b
	}
	if op == "//" {
		return q
	}
	return r
}

func (st *state) product(a, b int64) int64 {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	neg := (a < 0) != (b < 0)
	if hi != 0 || lo > 1<<63 || lo == 1<<63 && !neg {
		st.overflow()
	}
	if neg {
		return -int64(lo)
	}
	return int64(lo)
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func (st *state) power(a, b int64) Value {
	if b < 0 {
		return st.floatMath("**", float64(a), float64(b))
	}
	out := int64(1)
	switch a {
	case 0, 1:
		b = min(b, 1)
	case -1:
		b = b & 1
	}
	for range b { // overflows within 63 rounds
		out = st.product(out, a)
	}
	return out
}

func (st *state) floatMath(op string, a, b float64) Value {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		if a == 0 && b < 0 {
			st.fail("ZeroDivisionError: 0.0 cannot be raised to a negative power")
		}
		if a < 0 && b != math.Trunc(b) {
			st.fail("ValueError: complex numbers are not supported")
		}
		c := math.Pow(a, b)
		if math.IsInf(c, 0) && !math.IsInf(a, 0) && !math.IsInf(b, 0) {
			st.fail("OverflowError: numerical result out of range")
		}
		return c
	}
	if b == 0 {
		st.fail("ZeroDivisionError: division by zero")
	}
	if op == "/" {
		return a / b
	}
	r := math.Mod(a, b)
	q := (a - r) / b
	if r != 0 && (r < 0) != (b < 0) {
		r += b
		q--
	}
	if op == "%" {
		if r == 0 {
			r = math.Copysign(0, b)
		}
		return r
	}
	if q == 0 {
		return math.Copysign(0, a/b)
	}
	if floor := math.Floor(q); q-floor > 0.5 {
		return floor + 1
	} else {
		return floor
	}
}
