package lex

// ControlMark stands in front of the text of a control token; it is no byte of UTF-8.
const ControlMark = 0xff

// Marker writes a text as bytes, or as the control token of that text.
type Marker string

func (m Marker) Step(k Key, b byte) (Key, bool) {
	at := int(k.V)
	if at == 0 && k.Phase == 0 && b == ControlMark {
		return Key{Phase: 1}, true
	}
	return Key{Phase: k.Phase, V: k.V + 1}, at < len(m) && m[at] == b
}

func (m Marker) Accept(k Key) (any, bool) { return nil, int(k.V) == len(m) }
func (m Marker) More(k Key) bool          { return int(k.V) < len(m) }

func (m Marker) Radius(Key, Class) (int, bool) { return 0, false }
func (m Marker) Clip(k Key, _ int) Key         { return k }
