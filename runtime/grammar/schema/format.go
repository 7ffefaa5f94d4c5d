package schema

import (
	"fmt"

	"github.com/zincc-dev/zincc/runtime/grammar/ecma"
	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// formats are the texts of each format that is a condition. Those with "" are built in compiler.format.
var formats = map[string]string{
	"date":                  date,
	"time":                  "",
	"date-time":             "",
	"duration":              `P(?:\d+W|(?:\d+Y(?:\d+M(?:\d+D)?)?|\d+M(?:\d+D)?|\d+D)(?:T` + clock + `)?|T` + clock + `)`,
	"email":                 "",
	"idn-email":             "",
	"ipv4":                  ipv4,
	"ipv6":                  ipv6,
	"uri":                   uri("") + fragment(""),
	"uri-reference":         "(?:" + uri("") + "|" + relative("") + ")" + fragment(""),
	"iri":                   uri(ucs) + fragment(ucs),
	"iri-reference":         "(?:" + uri(ucs) + "|" + relative(ucs) + ")" + fragment(ucs),
	"uuid":                  hex(8) + "-" + hex(4) + "-" + hex(4) + "-" + hex(4) + "-" + hex(12),
	"json-pointer":          pointer,
	"relative-json-pointer": `(?:0|[1-9]\d*)(?:#|` + pointer + ")",
	"uri-template":          template,
}

const (
	days = `(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|02-(?:0[1-9]|1\d|2[0-8]))`
	leap = `(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)`
	date = `(?:\d{4}-` + days + `|` + leap + `-02-29)`

	clock = `(?:\d+H(?:\d+M(?:\d+S)?)?|\d+M(?:\d+S)?|\d+S)`

	// The time of day but for leap seconds.
	timeOfDay = `(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d+)?(?:[zZ]|[+\-](?:[01]\d|2[0-3]):[0-5]\d)`

	octet = `(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)`
	ipv4  = octet + `(?:\.` + octet + `){3}`
	group = `[0-9A-Fa-f]{1,4}`
	low32 = `(?:` + group + `:` + group + `|` + ipv4 + `)`
	ipv6  = `(?:(?:` + group + `:){6}` + low32 +
		`|::(?:` + group + `:){5}` + low32 +
		`|(?:` + group + `)?::(?:` + group + `:){4}` + low32 +
		`|(?:(?:` + group + `:)?` + group + `)?::(?:` + group + `:){3}` + low32 +
		`|(?:(?:` + group + `:){0,2}` + group + `)?::(?:` + group + `:){2}` + low32 +
		`|(?:(?:` + group + `:){0,3}` + group + `)?::` + group + `:` + low32 +
		`|(?:(?:` + group + `:){0,4}` + group + `)?::` + low32 +
		`|(?:(?:` + group + `:){0,5}` + group + `)?::` + group +
		`|(?:(?:` + group + `:){0,6}` + group + `)?::)`

	// Labels without the mark of those that stand for others.
	label        = `[0-9A-Za-z](?:[0-9A-Za-z\-]{0,61}[0-9A-Za-z])?`
	hostname     = label + `(?:\.` + label + `)*`
	wideLabel    = `[0-9A-Za-z\u0080-\u{10ffff}](?:[0-9A-Za-z\-\u0080-\u{10ffff}]{0,61}[0-9A-Za-z\u0080-\u{10ffff}])?`
	wideHostname = wideLabel + `(?:\.` + wideLabel + `)*`

	atom = `0-9A-Za-z!#$%&'*+/=?^_\x60{|}~\-`
	wide = `\u0080-\u{10ffff}`

	pointer  = `(?:/(?:[^/~]|~[01])*)*`
	varchar  = `(?:[0-9A-Za-z_]|%[0-9A-Fa-f]{2})`
	varspec  = varchar + `(?:\.?` + varchar + `)*(?::[1-9]\d{0,3}|\*)?`
	literals = `(?:[!#$&'(-;=?-[\]_a-z~` + ucs + private + `]|%[0-9A-Fa-f]{2})`
	template = `(?:` + literals + `|\{[+#./;?&=,!@|]?` + varspec + `(?:,` + varspec + `)*\})*`

	ucs = `\u00a0-\ud7ff\uf900-\ufdcf\ufdf0-\uffef\u{10000}-\u{1fffd}\u{20000}-\u{2fffd}\u{30000}-\u{3fffd}\u{40000}-\u{4fffd}` +
		`\u{50000}-\u{5fffd}\u{60000}-\u{6fffd}\u{70000}-\u{7fffd}\u{80000}-\u{8fffd}\u{90000}-\u{9fffd}\u{a0000}-\u{afffd}` +
		`\u{b0000}-\u{bfffd}\u{c0000}-\u{cfffd}\u{d0000}-\u{dfffd}\u{e1000}-\u{efffd}`
	private = `\ue000-\uf8ff\u{f0000}-\u{ffffd}\u{100000}-\u{10fffd}`
)

func hex(n int) string { return fmt.Sprintf("[0-9A-Fa-f]{%d}", n) }

func atoms(set string) string { return `[` + set + `]+(?:\.[` + set + `]+)*` }

func quotedText(plain, escaped string) string { return `"(?:` + plain + `|\\` + escaped + `)*"` }

// mailHost is what follows the @: of the address literals of RFC 5321, those whose tags are registered.
func mailHost(name string) string {
	return `(?:` + name + `|\[(?:` + ipv4 + `|IPv6:` + ipv6 + `)\])`
}

// uri is RFC 3986's URI, or with more characters RFC 3987's IRI, but for the fragment.
func uri(more string) string {
	return `[A-Za-z][0-9A-Za-z+.\-]*:(?:` + authority(more) + `|/(?:` + segment(more, ":@", 1) + `(?:/` + segment(more, ":@", 0) + `)*)?|` +
		segment(more, ":@", 1) + `(?:/` + segment(more, ":@", 0) + `)*|)` + query(more)
}

func relative(more string) string {
	return `(?:` + authority(more) + `|/(?:` + segment(more, ":@", 1) + `(?:/` + segment(more, ":@", 0) + `)*)?|` +
		segment(more, "@", 1) + `(?:/` + segment(more, ":@", 0) + `)*|)` + query(more)
}

// authority is what follows the scheme with two slashes, and the path.
func authority(more string) string {
	return `//(?:` + segment(more, ":", 0) + `@)?(?:\[(?:` + ipv6 + `|[vV][0-9A-Fa-f]+\.[0-9A-Za-z\-._~!$&'()*+,;=:]+)\]|` +
		segment(more, "", 0) + `)(?::\d*)?(?:/` + segment(more, ":@", 0) + `)*`
}

// segment is least or more characters, of those that are always allowed and some more.
func segment(more, marks string, least int) string {
	return `(?:[0-9A-Za-z\-._~!$&'()*+,;=` + marks + more + `]|%[0-9A-Fa-f]{2})` + map[int]string{0: "*", 1: "+"}[least]
}

func query(more string) string {
	if more != "" {
		more += private
	}
	return `(?:\?` + segment(more, ":@/?", 0) + `)?`
}

func fragment(more string) string { return `(?:#` + segment(more, ":@/?", 0) + `)?` }

func readFormat(c *compiler, n *node, v *value, base *alt) error {
	if v.kind != str {
		return n.fail("format", "want a string")
	}
	name := v.text
	if c.o.AnyFormat {
		return nil
	}
	if guardedFormats[name] != nil {
		defer n.blame("format")
		base.guards = append(base.guards, guarded{guard: c.guard(name)})
		return c.narrow(n, "format", base, nil)
	}
	if _, known := formats[name]; !known {
		c.remarks = append(c.remarks, Remark{"format", n.path, "no text is refused: " + quote(name) + " is unknown"})
		return nil
	}
	defer n.blame("format")
	base.text = append(base.text, c.format(name))
	return c.narrow(n, "format", base, nil)
}

// format returns the texts of a format.
func (c *compiler) format(name string) *lex.Term {
	key := "\x00" + name
	t := c.terms[key]
	if t == nil {
		p := c.pool
		switch name {
		case "email":
			t = c.mailbox(atoms(atom)+"|"+quotedText(`[ !#-[\]-~]`, `[ -~]`), mailHost(hostname))
		case "idn-email":
			t = c.mailbox(atoms(atom+wide)+"|"+quotedText(`[ !#-[\]-~\u0080-\u{10ffff}]`, `[ -~\u0080-\u{10ffff}]`), mailHost(wideHostname))
		case "time":
			t = c.time()
		case "date-time":
			t = p.Cat(c.regex(date), p.Set(lex.Chars("tT")), c.time())
		default:
			t = c.regex(formats[name])
		}
		c.terms[key] = t
	}
	return t
}

// mailbox is RFC 5321's, with the bounds of its length (4.5.3.1).
func (c *compiler) mailbox(local, host string) *lex.Term {
	p := c.pool
	most := func(n int) *lex.Term { return p.Repeat(p.Set(lex.All()), 0, n) }
	return p.And(p.Cat(p.And(c.regex(local), most(64)), p.Text("@"), c.regex(host)), most(254))
}

// regex returns the texts of a pattern of this file.
func (c *compiler) regex(pattern string) *lex.Term {
	t, err := ecma.Whole(c.pool, pattern)
	if err != nil {
		panic(err)
	}
	return t
}

// time is RFC 3339's full-time. A leap second comes at 23:59:60 in UTC: there are two offsets, one of each sign, with
// which a minute of the day is that one.
func (c *compiler) time() *lex.Term {
	p := c.pool
	fraction := c.regex(`(?:\.\d+)?`)
	list := []*lex.Term{c.regex(timeOfDay), c.regex(`23:59:60(?:\.\d+)?[zZ]`)}
	for hour := range 24 {
		list = append(list, p.Cat(p.Text(fmt.Sprintf("%02d:", hour)), p.Later(func() *lex.Term {
			var minutes []*lex.Term
			for minute := range 60 {
				minutes = append(minutes, p.Cat(p.Text(fmt.Sprintf("%02d:60", minute)), fraction, p.Later(func() *lex.Term {
					ahead := (hour*60 + minute + 1) % 1440
					behind := (1440 - ahead) % 1440
					return p.Or(p.Text(fmt.Sprintf("+%02d:%02d", ahead/60, ahead%60)), p.Text(fmt.Sprintf("-%02d:%02d", behind/60, behind%60)))
				})))
			}
			return p.Or(minutes...)
		})))
	}
	return p.Or(list...)
}

// Formats returns the formats that are conditions.
func Formats() []string {
	var names []string
	for name := range formats {
		names = append(names, name)
	}
	for name := range guardedFormats {
		names = append(names, name)
	}
	return sortedNames(names)
}
