package schema

import (
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// maxTens bounds exponents, but for Documents: what is larger is no number of 64 bits.
const maxTens = 308

// maxDigits bounds the digits before and behind the point in answers; more come only where a number needs them.
const maxDigits = 20

// anyNumber is every number that JSON has; unless any is set, those with exponents of at most three digits and maxTens.
func anyNumber(p *lex.Pool, any bool) *lex.Term {
	digit := p.Set(lex.NewSet(lex.Range{Lo: '0', Hi: '9'}))
	digits := p.Repeat(digit, 1, -1)
	exponent, whole, fraction := digits, p.Repeat(digit, 0, -1), digits
	if !any {
		whole, fraction = p.Repeat(digit, 0, maxDigits-1), p.Repeat(digit, 1, maxDigits)
		exponent = p.Or(p.Repeat(digit, 1, 2), p.Cat(p.Set(lex.Chars("012")), digit, digit), p.Cat(p.Text("30"), p.Set(lex.Chars("012345678"))))
	}
	return p.Cat(p.Opt(p.Text("-")),
		p.Or(p.Text("0"), p.Cat(p.Set(lex.NewSet(lex.Range{Lo: '1', Hi: '9'})), whole)),
		p.Opt(p.Cat(p.Text("."), fraction)),
		p.Opt(p.Cat(p.Set(lex.Chars("eE")), p.Opt(p.Set(lex.Chars("+-"))), exponent)))
}

// numbers writes a set of numbers as JSON does. Its states are what is written, or what is left of it where other texts
// have the same rest.
type numbers struct {
	num
	any bool // Options.Documents
}

// Phases of a number.
const (
	atSign  uint8 = iota
	atDigit       // behind the sign
	atZero        // behind a first 0
	inWhole
	atPoint
	inFraction
	atExponent
	atExponentDigit // behind its sign
	inExponent
)

// exponents is the state behind an e: which exponents make a number of the set, and what is written of one.
type exponents struct {
	spans string // intervals that ascend: "from:to;"
	minus bool
	x     int64 // of the digits, at most hugeExponent
	any   bool  // Options.Documents: more than three digits, and more than maxTens
}

// hugeExponent stands for all exponents from it on.
const hugeExponent = 1 << 40

func (n *numbers) Step(k lex.Key, b byte) (lex.Key, bool) {
	if k.Phase >= atExponent {
		return n.exponent(k, b)
	}
	text, _ := k.P.(string)
	switch {
	case '0' <= b && b <= '9':
		return n.digit(k, text, b)
	case b == '-' && k.Phase == atSign:
		return n.mantissa(text+"-", atDigit)
	case b == '.' && (k.Phase == atZero || k.Phase == inWhole):
		if n.whole() {
			return k, false
		}
		return n.mantissa(text+".", atPoint)
	case (b == 'e' || b == 'E') && (k.Phase == atZero || k.Phase == inWhole || k.Phase == inFraction):
		if n.whole() || n.listed && !n.any {
			return k, false
		}
		e := exponents{spans: n.spans(text), any: n.any}
		return lex.Key{Phase: atExponent, P: e}, e.spans != ""
	}
	return k, false
}

// digit is Step of a digit before the exponent.
func (n *numbers) digit(k lex.Key, text string, b byte) (lex.Key, bool) {
	switch {
	case b == '0' && k.Phase <= atDigit:
		return n.mantissa(text+"0", atZero)
	case n.long(k, text):
	case k.Phase <= atDigit || k.Phase == inWhole:
		return n.mantissa(text+string(b), inWhole)
	case k.Phase == atPoint || k.Phase == inFraction:
		return n.mantissa(text+string(b), inFraction)
	}
	return k, false
}

// long says whether a number of the set has enough digits.
func (n *numbers) long(k lex.Key, text string) bool {
	if n.any || n.listed || len(text) < maxDigits {
		return false
	}
	if _, point, ok := strings.Cut(text, "."); ok && len(point) < maxDigits {
		return false
	}
	_, ok := n.Accept(k)
	return ok
}

// whole says whether all numbers of the set are integers, which answers write with digits alone.
func (n *numbers) whole() bool {
	switch {
	case n.any:
		return false
	case n.listed:
		return !slices.ContainsFunc(n.values, func(v *big.Rat) bool { return !v.IsInt() })
	}
	return n.mult != nil && n.mult.IsInt()
}

// mantissa returns the state behind a text, if a number can still become of it.
func (n *numbers) mantissa(text string, phase uint8) (lex.Key, bool) {
	if n.any {
		return lex.Key{Phase: phase, P: text}, true
	}
	more, ok := n.live(text, phase)
	if !ok || phase == inWhole && n.strays(text, more) {
		return lex.Key{}, false
	}
	return lex.Key{Phase: phase, P: n.alike(text, phase)}, true
}

// rare is from where on multiples are too far apart for a bound of their digits.
var rare = new(big.Rat).SetInt(power(15))

// strays says whether the last digit of a text leads away from all multiples with as many digits before the point as
// are enough, or as the digits before it need. Digits at random hardly ever meet a multiple of a large number.
func (n *numbers) strays(text string, more int) bool {
	if n.listed || n.mult == nil || n.mult.Cmp(rare) > 0 {
		return false
	}
	whole := func(text string) int { return len(strings.TrimPrefix(text, "-")) }
	total, before := whole(text)+more, text[:len(text)-1]
	if total <= maxDigits || whole(before) == 0 {
		return false
	}
	need, _ := n.live(before, inWhole)
	return total > whole(before)+need
}

// scaled returns the digits of a text as a number, and how many of them are behind the point.
func scaled(text string) (digits *big.Int, behind int) {
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	digits, ok := new(big.Int).SetString(whole+fraction, 10)
	if !ok {
		digits = new(big.Int)
	}
	return digits, len(fraction)
}

func power(e int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(e)), nil) }

// live says whether digits, and no exponent, can make a number of the set of a text, and how many of them at least must
// come before the point.
func (n *numbers) live(text string, phase uint8) (more int, ok bool) {
	minus := strings.HasPrefix(text, "-")
	if phase == atDigit {
		return 0, n.within(minus, new(big.Rat), nil)
	}
	digits, behind := scaled(text)
	unit := new(big.Rat).SetFrac(one, power(behind))
	lo := new(big.Rat).Mul(new(big.Rat).SetInt(digits), unit)
	hi := new(big.Rat).Add(lo, unit)
	if n.within(minus, lo, hi) {
		return 0, true
	}
	if phase != inWhole {
		return 0, false
	}
	// More digits before the point: as long as they do not go over all that is in the set.
	top := n.hi
	if minus {
		top = nil
		if n.lo != nil {
			top = new(big.Rat).Neg(n.lo)
		}
	}
	if n.listed {
		top = nil
		for _, v := range n.values {
			if a := new(big.Rat).Abs(v); top == nil || a.Cmp(top) > 0 {
				top = a
			}
		}
	}
	ten := big.NewRat(10, 1)
	for more = 1; more <= 2*maxExponent; more++ {
		lo, hi = new(big.Rat).Mul(lo, ten), new(big.Rat).Mul(hi, ten)
		if top != nil && lo.Cmp(top) > 0 {
			return 0, false
		}
		if n.within(minus, lo, hi) {
			return more, true
		}
	}
	return 0, false
}

// within says whether a number of the set lies at lo or above it and below hi; nil: without end. For minus, all have
// the other sign.
func (n *numbers) within(minus bool, lo, hi *big.Rat) bool {
	loOpen, hiOpen := false, true
	if minus {
		neg := func(r *big.Rat) *big.Rat {
			if r == nil {
				return nil
			}
			return new(big.Rat).Neg(r)
		}
		lo, hi, loOpen, hiOpen = neg(hi), neg(lo), true, false
	}
	if n.listed {
		for _, v := range n.values {
			if lo != nil {
				if d := v.Cmp(lo); d < 0 || d == 0 && loOpen {
					continue
				}
			}
			if hi != nil {
				if d := v.Cmp(hi); d > 0 || d == 0 && hiOpen {
					continue
				}
			}
			return true
		}
		return false
	}
	if n.lo != nil && (lo == nil || n.lo.Cmp(lo) > 0 || n.lo.Cmp(lo) == 0 && n.loOpen) {
		lo, loOpen = n.lo, n.loOpen
	}
	if n.hi != nil && (hi == nil || n.hi.Cmp(hi) < 0 || n.hi.Cmp(hi) == 0 && n.hiOpen) {
		hi, hiOpen = n.hi, n.hiOpen
	}
	return n.between(lo, loOpen, hi, hiOpen)
}

// alike returns a text with the same rest, the same one for many texts where it can be told.
func (n *numbers) alike(text string, phase uint8) string {
	whole := n.mult != nil && n.mult.Cmp(big.NewRat(1, 1)) == 0
	if n.listed || len(n.not)+len(n.apart) > 0 || !whole && n.mult != nil || phase != inWhole {
		return text
	}
	digits := strings.TrimPrefix(text, "-")
	minus := len(digits) < len(text)
	near, far, nearOpen := n.lo, n.hi, n.loOpen
	if minus {
		near, far, nearOpen = negated(n.hi), negated(n.lo), n.hiOpen
	}
	if near != nil && (near.Sign() > 0 || near.Sign() == 0 && nearOpen) {
		return text
	}
	// What follows depends on how many digits there are, and on whether they are below, at or above the first ones of
	// the bound; for exponents, on the zeros at the end.
	zeros := len(digits) - len(strings.TrimRight(digits, "0"))
	rest := strings.Repeat("0", zeros)
	same := "1" + strings.Repeat("1", len(digits)-zeros-1) + rest
	if far != nil {
		bound := floor(far).String()
		if len(digits) >= len(bound) || digits[:1] >= bound[:1] || same[:1] >= bound[:1] {
			return text
		}
	}
	if n.mult == nil && far != nil {
		return text // an exponent depends on each digit
	}
	if minus {
		same = "-" + same
	}
	return same
}

func negated(r *big.Rat) *big.Rat {
	if r == nil {
		return nil
	}
	return new(big.Rat).Neg(r)
}

func (n *numbers) Accept(k lex.Key) (any, bool) {
	switch k.Phase {
	case atZero, inWhole, inFraction:
		text := k.P.(string)
		digits, behind := scaled(text)
		v := new(big.Rat).SetFrac(digits, power(behind))
		if strings.HasPrefix(text, "-") {
			v.Neg(v)
		}
		return nil, n.has(v)
	case inExponent:
		e := k.P.(exponents)
		return nil, e.has()
	}
	return nil, false
}

func (n *numbers) More(k lex.Key) bool {
	for b := range []byte("0123456789.-+eE") {
		if _, ok := n.Step(k, "0123456789.-+eE"[b]); ok {
			return true
		}
	}
	return false
}

func (n *numbers) Radius(lex.Key, lex.Class) (int, bool) { return 0, false }
func (n *numbers) Clip(k lex.Key, _ int) lex.Key         { return k }

// exponent follows a byte behind the e.
func (n *numbers) exponent(k lex.Key, b byte) (lex.Key, bool) {
	e := k.P.(exponents)
	switch {
	case (b == '+' || b == '-') && k.Phase == atExponent:
		e.minus = b == '-'
		return lex.Key{Phase: atExponentDigit, P: e}, e.live(0)
	case '0' <= b && b <= '9':
		e.x = min(10*e.x+int64(b-'0'), hugeExponent)
		digits := k.N + 1
		if e.any {
			digits = 1
		}
		return lex.Key{Phase: inExponent, N: digits, P: e}, digits <= 3 && e.live(int(digits))
	}
	return k, false
}

// each calls f with the intervals, those of the written sign alone and as sizes, until it returns true.
func (e exponents) each(f func(lo, hi int64) bool) bool {
	for s := range strings.SplitSeq(strings.TrimSuffix(e.spans, ";"), ";") {
		a, b, _ := strings.Cut(s, ":")
		lo, _ := strconv.ParseInt(a, 10, 64)
		hi, _ := strconv.ParseInt(b, 10, 64)
		if e.minus {
			lo, hi = -hi, -lo
		}
		if hi >= 0 && f(max(lo, 0), hi) {
			return true
		}
	}
	return false
}

func (e exponents) has() bool {
	return e.each(func(lo, hi int64) bool { return lo <= e.x && (e.x <= hi || hi == math.MaxInt64) })
}

// live says whether more digits behind those that are written, or none, can make an exponent that counts.
func (e exponents) live(digits int) bool {
	return e.each(func(lo, hi int64) bool {
		if digits == 0 || e.x == 0 && e.any {
			return true
		}
		from, to := e.x, e.x
		for n := digits; from <= hi && (n <= 3 || e.any); n++ {
			if to >= lo {
				return true
			}
			if from >= hugeExponent {
				return hi == math.MaxInt64
			}
			from, to = from*10, to*10+9
		}
		return false
	})
}

// spans returns the exponents with which a text is a number of the set.
func (n *numbers) spans(text string) string {
	digits, behind := scaled(text)
	if strings.HasPrefix(text, "-") {
		digits.Neg(digits)
	}
	least, most := int64(-math.MaxInt64), int64(math.MaxInt64)
	if !n.any {
		least, most = -maxTens, maxTens
	}
	if digits.Sign() == 0 {
		if n.has(new(big.Rat)) {
			return span(least, most)
		}
		return ""
	}
	at := func(e int64) *big.Rat { // the number with exponent e
		v := new(big.Rat).SetInt(digits)
		if e -= int64(behind); e >= 0 {
			return v.Mul(v, new(big.Rat).SetInt(power(int(e))))
		}
		return v.Quo(v, new(big.Rat).SetInt(power(int(-e))))
	}
	if n.listed {
		return n.listedSpans(digits.Sign(), least, most, at)
	}
	lo, hi := n.boundedSpan(digits.Sign(), least, most, at)
	if n.mult != nil {
		q := new(big.Rat).Quo(at(0), n.mult)
		e, ok := tens(q)
		if !ok {
			return ""
		}
		lo = max(lo, e)
	}
	for _, m := range n.apart {
		if e, ok := tens(new(big.Rat).Quo(at(0), m)); ok {
			hi = min(hi, e-1)
		}
	}
	if lo > hi {
		return ""
	}
	out := ""
	for e := range n.left(lo, hi, at) {
		out += span(e[0], e[1])
	}
	return out
}

// listedSpans are the spans of exponents that make numbers of the list, from least to most.
func (n *numbers) listedSpans(sign int, least, most int64, at func(e int64) *big.Rat) string {
	out := ""
	for _, v := range n.values {
		if v.Sign() != sign {
			continue
		}
		e := magnitude(v) - magnitude(at(0))
		for d := e - 1; d <= e+1; d++ {
			if at(d).Cmp(v) == 0 && d >= least && d <= most {
				out += span(d, d)
			}
		}
	}
	return out
}

// boundedSpan is the span of exponents that make numbers within the bounds, from least to most; empty, with lo > hi, if
// all numbers of the sign are beyond them.
func (n *numbers) boundedSpan(sign int, least, most int64, at func(e int64) *big.Rat) (lo, hi int64) {
	lo, hi = least, most
	near, far := n.lo, n.hi // by size
	if sign < 0 {
		near, far = n.hi, n.lo
	}
	switch {
	case far == nil:
	case far.Sign() != sign:
		return 1, 0
	default:
		for hi = magnitude(far) - magnitude(at(0)) + 2; !n.bounded(at(hi), true); hi-- {
		}
		hi = min(hi, most)
	}
	if near != nil && near.Sign() == sign {
		for lo = magnitude(near) - magnitude(at(0)) - 2; !n.bounded(at(lo), false); lo++ {
		}
		lo = max(lo, least)
	}
	return lo, hi
}

func span(lo, hi int64) string {
	return strconv.FormatInt(lo, 10) + ":" + strconv.FormatInt(hi, 10) + ";"
}

// bounded says whether a number keeps the bound that is farther from 0, or the nearer one.
func (n *numbers) bounded(v *big.Rat, outer bool) bool {
	m := n.num
	m.mult, m.not, m.apart = nil, nil, nil
	if (v.Sign() > 0) == outer {
		m.lo = nil
	} else {
		m.hi = nil
	}
	return m.fits(v)
}

// left yields the intervals of lo to hi without the exponents of numbers that are not in the set.
func (n *numbers) left(lo, hi int64, at func(int64) *big.Rat) func(func([2]int64) bool) {
	return func(yield func([2]int64) bool) {
		for {
			out, found := int64(0), false
			for _, v := range n.not {
				if v.Sign() == 0 || v.Sign() != at(0).Sign() {
					continue
				}
				e := magnitude(v) - magnitude(at(0))
				for d := e - 1; d <= e+1; d++ {
					if d >= lo && d <= hi && at(d).Cmp(v) == 0 && (!found || d < out) {
						out, found = d, true
					}
				}
			}
			if !found {
				yield([2]int64{lo, hi})
				return
			}
			if lo < out && !yield([2]int64{lo, out - 1}) || out == hi {
				return
			}
			lo = out + 1
		}
	}
}

// magnitude is the power of ten of a number's first digit, or one less.
func magnitude(v *big.Rat) int64 {
	size := func(n *big.Int) int { return len(new(big.Int).Abs(n).String()) }
	return int64(size(v.Num()) - size(v.Denom()))
}

// tens returns the least e with which q times 10 to e is whole; false: there is none.
func tens(q *big.Rat) (e int64, ok bool) {
	d := new(big.Int).Set(q.Denom())
	count := func(n int64) (times int64) {
		for r := new(big.Int); ; times++ {
			quo, rem := new(big.Int).QuoRem(d, big.NewInt(n), r)
			if rem.Sign() != 0 {
				return times
			}
			d = quo
		}
	}
	if d.Cmp(one) == 0 {
		d.Set(q.Num())
		return -count(10), true
	}
	e = max(count(2), count(5))
	return e, d.Cmp(one) == 0
}
