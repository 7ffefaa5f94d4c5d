package lex

// Phases of text in UTF-8. Of a code point of several bytes that has begun, V has the bits so far, and N says how many
// bytes are missing.
const (
	inText uint8 = iota
	inRune2
	inRune3
	inRune4
	afterText // the first phase for what rules add
)

// least is the first code point that needs so many bytes.
var least = [...]rune{inRune2: 0x80, inRune3: 0x800, inRune4: 0x10000}

// stepUTF8 follows a byte of a text.
func stepUTF8(r Runes, k Key, b byte) (Key, bool) {
	if k.Phase == inText {
		switch {
		case b < 0x80:
			p, ok := r.Next(k.P, rune(b))
			return Key{P: p}, ok
		case b&0xe0 == 0xc0:
			k.Phase, k.N, k.V = inRune2, 1, rune(b&0x1f)
		case b&0xf0 == 0xe0:
			k.Phase, k.N, k.V = inRune3, 2, rune(b&0x0f)
		case b&0xf8 == 0xf0:
			k.Phase, k.N, k.V = inRune4, 3, rune(b&0x07)
		default:
			return k, false
		}
	} else {
		if b&0xc0 != 0x80 {
			return k, false
		}
		k.N, k.V = k.N-1, k.V<<6|rune(b&0x3f)
		if k.N == 0 {
			if k.V < least[k.Phase] {
				return k, false
			}
			p, ok := r.Next(k.P, k.V)
			return Key{P: p}, ok
		}
	}
	lo := k.V << (6 * k.N)
	hi := lo + 1<<(6*k.N) - 1
	lo, hi = max(lo, least[k.Phase]), min(hi, MaxRune)
	return k, lo <= hi && r.Any(k.P, lo, hi)
}

// UTF8 writes texts as they are.
type UTF8 struct{ Runes }

// Begin is the state before a text.
func Begin(p any) Key { return Key{P: p} }

func (u UTF8) Step(k Key, b byte) (Key, bool) { return stepUTF8(u.Runes, k, b) }

func (u UTF8) Accept(k Key) (any, bool) {
	if k.Phase != inText {
		return nil, false
	}
	return u.Runes.Accept(k.P)
}

func (u UTF8) More(k Key) bool { return k.Phase != inText || u.Any(k.P, 0, MaxRune) }

func (u UTF8) Radius(k Key, c Class) (int, bool) {
	if k.Phase != inText {
		return 0, false
	}
	return u.Runes.Radius(k.P, c)
}

func (u UTF8) Clip(k Key, n int) Key {
	k.P = u.Runes.Clip(k.P, n)
	return k
}
