package idna

import (
	"slices"
	"strings"
)

// Parameters of RFC 3492 section 5.
const (
	base        = 36
	least, most = 1, 26
	skew        = 38
	damp        = 700
	firstBias   = 72
	firstCode   = 0x80
	maxCode     = 0x10ffff
	maxLength   = 253 // of what is encoded or decoded
	letters     = "abcdefghijklmnopqrstuvwxyz0123456789"
)

// threshold is the one of a digit whose place is k.
func threshold(k, bias int) int { return min(max(k-bias, least), most) }

func adapt(delta, points int, first bool) int {
	if first {
		delta /= damp
	} else {
		delta /= 2
	}
	delta += delta / points
	k := 0
	for ; delta > (base-least)*most/2; k += base {
		delta /= base - least
	}
	return k + (base-least+1)*delta/(delta+skew)
}

// decode returns the code points that a text in small letters stands for (RFC 3492 section 6.2).
func decode(code string) ([]rune, bool) {
	if len(code) > maxLength {
		return nil, false
	}
	var out []rune
	if i := strings.LastIndexByte(code, '-'); i >= 0 {
		out, code = []rune(code[:i]), code[i+1:]
		for _, r := range out {
			if !isLDH(r) {
				return nil, false
			}
		}
	}
	n, i, bias := firstCode, 0, firstBias
	for code != "" {
		old, weight := i, 1
		for k := base; ; k += base {
			if code == "" {
				return nil, false
			}
			digit := strings.IndexByte(letters, code[0])
			code = code[1:]
			if digit < 0 || digit > (1<<40)/weight {
				return nil, false
			}
			i += digit * weight
			t := threshold(k, bias)
			if digit < t {
				break
			}
			if weight *= base - t; weight > 1<<40 {
				return nil, false
			}
		}
		points := len(out) + 1
		bias = adapt(i-old, points, old == 0)
		n += i / points
		if i %= points; n > maxCode || 0xd800 <= n && n < 0xe000 {
			return nil, false
		}
		out = slices.Insert(out, i, rune(n))
		i++
	}
	return out, true
}

// encode returns the text that stands for code points (RFC 3492 section 6.3).
func encode(text []rune) (string, bool) {
	if len(text) > maxLength {
		return "", false
	}
	var out strings.Builder
	for _, r := range text {
		if r < firstCode {
			out.WriteRune(r)
		}
	}
	done := out.Len()
	basic := done
	if basic > 0 {
		out.WriteByte('-')
	}
	n, delta, bias := firstCode, 0, firstBias
	for done < len(text) {
		next := maxCode + 1
		for _, r := range text {
			if int(r) >= n {
				next = min(next, int(r))
			}
		}
		delta += (next - n) * (done + 1)
		n = next
		for _, r := range text {
			if int(r) < n {
				delta++
			}
			if int(r) != n {
				continue
			}
			q := delta
			for k := base; ; k += base {
				t := threshold(k, bias)
				if q < t {
					break
				}
				out.WriteByte(letters[t+(q-t)%(base-t)])
				q = (q - t) / (base - t)
			}
			out.WriteByte(letters[q])
			bias = adapt(delta, done+1, done == basic)
			delta = 0
			done++
		}
		delta++
		n++
	}
	return out.String(), true
}
