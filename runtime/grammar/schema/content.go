package schema

import (
	"encoding/base32"
	"encoding/base64"
	base16 "encoding/hex"
	"encoding/json"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// encoding writes bytes as digits of so many bits (RFC 4648).
type encoding struct {
	alphabet string
	bits     int
	block    int // to so many digits it is filled up with =
	decode   func(text string) ([]byte, error)
}

// encodings are the values of contentEncoding that are read.
var encodings = map[string]*encoding{
	"base64":    {upper + "abcdefghijklmnopqrstuvwxyz0123456789+/", 6, 4, base64.StdEncoding.Strict().DecodeString},
	"base64url": {upper + "abcdefghijklmnopqrstuvwxyz0123456789-_", 6, 4, base64.URLEncoding.Strict().DecodeString},
	"base32":    {upper + "234567", 5, 8, base32.StdEncoding.DecodeString},
	"base16":    {"0123456789ABCDEF", 4, 2, base16.DecodeString},
}

const upper = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// encodedAt is a place in an encoded text: what may follow of the bytes, and the bits of the next one, n of them.
type encodedAt struct {
	*encoding
	bytes   *lex.Term
	n, left int
}

// goesOn says whether a byte may follow, given its first bits.
func (at encodedAt) goesOn(p *lex.Pool) bool {
	free := 8 - at.n
	return p.AnyOf(at.bytes, rune(at.left<<free), rune((at.left+1)<<free-1))
}

// ends says whether the text may end: of a digit that no byte needs, or of bits that are not 0, it may not.
func (at encodedAt) ends() bool { return at.bytes.Nullable() && at.left == 0 && at.n < at.bits }

// padding is what fills up the last block.
func (at encodedAt) padding() string {
	digits := 0
	for digits*at.bits%8 != at.n {
		digits++
	}
	return strings.Repeat("=", (at.block-digits)%at.block)
}

// encoded returns the texts that stand for the bytes of a language, in which each code point is a byte.
func (c *compiler) encoded(at encodedAt) *lex.Term {
	t := c.encodings[at]
	if t != nil {
		return t
	}
	p := c.pool
	t = p.None()
	if at.goesOn(p) {
		t = p.Later(func() *lex.Term { return c.digits(at) })
	}
	if at.ends() {
		t = p.Or(t, p.Text(at.padding()))
	}
	c.encodings[at] = t
	return t
}

// digits are the texts of encoded that begin with a digit.
func (c *compiler) digits(at encodedAt) *lex.Term {
	var list []*lex.Term
	for d := range at.alphabet {
		next := at
		next.n, next.left = at.n+at.bits, at.left<<at.bits|d
		if next.n >= 8 {
			next.n -= 8
			b, ok := c.pool.Next(at.bytes, rune(next.left>>next.n))
			if !ok {
				continue
			}
			next.bytes, next.left = b, next.left&(1<<next.n-1)
		}
		list = append(list, c.pool.Cat(c.pool.Text(at.alphabet[d:d+1]), c.encoded(next)))
	}
	return c.pool.Or(list...)
}

// readEncoding reads contentEncoding, which draft 7 has as a condition.
func readEncoding(c *compiler, n *node, v *value, base *alt) error {
	if n.draft != draft7 {
		return nil
	}
	if v.kind != str {
		return n.fail("contentEncoding", "want a string")
	}
	e := encodings[v.text]
	if e == nil {
		c.remarks = append(c.remarks, Remark{"contentEncoding", n.path, "no text is refused: " + quote(v.text) + " is unknown"})
		return nil
	}
	base.text = append(base.text, c.encoded(encodedAt{encoding: e, bytes: c.pool.Any()}))
	return c.narrow(n, "contentEncoding", base, nil)
}

// readMedia reads contentMediaType, which draft 7 has as a condition. Of JSON it is one.
func readMedia(c *compiler, n *node, v *value, base *alt) error {
	if n.draft != draft7 {
		return nil
	}
	if v.kind != str {
		return n.fail("contentMediaType", "want a string")
	}
	name, _, _ := strings.Cut(v.text, ";")
	name = strings.ToLower(strings.TrimSpace(name))
	var e *encoding
	code := n.get("contentEncoding")
	if code != nil {
		e = encodings[code.text]
	}
	if name != "application/json" && !strings.HasSuffix(name, "+json") || code != nil && e == nil {
		c.remarks = append(c.remarks, Remark{"contentMediaType", n.path, "no text is refused: " + quote(v.text) + " is not read"})
		return nil
	}
	inner := c.regex(jsonText)
	g := &guard{inner: inner, outer: c.regex(`[ \t\n\r]*[{[\-0-9tfn"][^]*`), holds: func(s string) bool { return json.Valid([]byte(s)) }}
	if e != nil {
		g = &guard{inner: c.encoded(encodedAt{encoding: e, bytes: inner}), outer: c.pool.Any(), holds: func(s string) bool {
			text, err := e.decode(s)
			return err == nil && json.Valid(text)
		}}
	}
	base.guards = append(base.guards, guarded{guard: g})
	return c.narrow(n, "contentMediaType", base, nil)
}

// jsonText is a pattern for JSON of ASCII, with arrays and objects in each other three deep.
var jsonText = func() string {
	const text = `"(?:[ !#-[\]-~]|\\(?:["\\/bfnrt]|u[0-9a-c][0-9a-f]{3}))*"`
	value := text + `|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+\-]?\d+)?|true|false|null`
	for range 3 {
		list := func(one string) string { return `(?:` + one + `(?:, ?` + one + `)*)?` }
		element := `(?:` + value + `)`
		value += `|\[` + list(element) + `\]|\{` + list(text+`: ?`+element) + `\}`
	}
	return value
}()
