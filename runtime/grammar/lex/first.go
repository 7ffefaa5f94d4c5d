package lex

// First is a set that has all code points that may lead on, and perhaps others.
type First struct {
	ascii [2]uint64
	more  bool // others than ASCII
}

var everything = First{[2]uint64{^uint64(0), ^uint64(0)}, true}

// Add adds the code points that lead on from a term.
func (f *First) Add(p *Pool, t *Term) {
	for _, e := range p.derive(t) {
		f.more = f.more || e.Hi > 0x7f
		for r := e.Lo; r <= min(e.Hi, 0x7f); r++ {
			f.AddRune(r)
		}
	}
}

// AddRune adds a code point.
func (f *First) AddRune(r rune) {
	if r > 0x7f {
		f.more = true
		return
	}
	f.ascii[r>>6] |= 1 << (r & 63)
}

// dead marks bytes that begin no code point of the set, but for those of keep.
func (f First) dead(next *[256]int32, keep string) {
	for b := range next {
		if b < 0x80 && f.ascii[b>>6]>>(b&63)&1 == 0 || b >= 0x80 && !f.more {
			next[b] = -1
		}
	}
	for _, b := range []byte(keep) {
		next[b] = 0
	}
}

func (u UTF8) dead(k Key, next *[256]int32) {
	if k.Phase == inText {
		u.First(k.P).dead(next, "")
	}
}

func (j JSONString) dead(k Key, next *[256]int32) {
	if k.Phase == inText {
		j.First(k.P).dead(next, string(j.quote())+"\\")
	}
}
