package schema

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
)

// keyword is how a keyword narrows what is valid. base is the alt of the schema's own keywords.
type keyword struct {
	name string
	read func(c *compiler, n *node, v *value, base *alt) error
}

// simple are keywords that hold for values of one type and need no other schema. Those of arrays and objects are in
// containers.go.
var simple = []keyword{
	{"type", readType},
	{"minimum", readMinimum},
	{"maximum", readMaximum},
	{"exclusiveMinimum", readExclusiveMinimum},
	{"exclusiveMaximum", readExclusiveMaximum},
	{"multipleOf", readMultiple},
	{"minLength", readMinLength},
	{"maxLength", readMaxLength},
	{"pattern", readPattern},
	{"format", readFormat},
	{"contentEncoding", readEncoding},
	{"contentMediaType", readMedia},
}

// full is the alt of all values.
func full() *alt { return &alt{types: allType} }

// expand returns the ways to be valid by a schema.
func (c *compiler) expand(n *node) ([]*alt, error) {
	if n.expanded {
		return n.alts, nil
	}
	if n.expanding {
		return nil, n.fail("$ref", "leads back to itself without an object or an array between")
	}
	n.expanding = true
	alts, err := c.expandOnce(n)
	n.expanding = false
	if err != nil {
		return nil, err
	}
	n.alts, n.expanded = alts, true
	return alts, nil
}

func (c *compiler) expandOnce(n *node) ([]*alt, error) {
	switch n.kind {
	case yes:
		return []*alt{full()}, nil
	case no:
		return nil, nil
	case object:
	default:
		return nil, n.fail("", "a schema is an object, true or false")
	}
	if ref := n.get("$ref"); ref != nil && n.draft <= draft7 {
		return c.reference(n, "$ref", ref, []*alt{full()})
	}
	if list := n.refused(); len(list) > 0 {
		return nil, list[0]
	}
	base := full()
	for _, k := range simple {
		if v := n.get(k.name); v != nil {
			*c.at = place{n.path, k.name}
			if err := k.read(c, n, v, base); err != nil {
				return nil, err
			}
		}
	}
	*c.at = place{n.path, "properties"}
	if base.types&isArray != 0 {
		if err := c.readArrays(n, base); err != nil {
			return nil, err
		}
	}
	if base.types&isObject != 0 {
		if err := c.readObjects(n, base); err != nil {
			return nil, err
		}
	}
	alts, err := c.product([]*alt{base}, []*alt{full()}, n, "type")
	if err != nil {
		return nil, err
	}
	for _, in := range applicators {
		v := n.get(in.name)
		if v == nil || n.draft < in.since {
			continue
		}
		*c.at = place{n.path, in.name}
		if alts, err = in.apply(c, n, v, alts); err != nil {
			return nil, err
		}
	}
	return alts, nil
}

// applicator is a keyword that takes the schema's values for values of other schemas, or of a list.
type applicator struct {
	name  string
	since draft
	apply func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error)
}

var applicators []applicator

func init() { // they expand schemas, which reads the table
	applicators = []applicator{
		{"enum", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			if v.kind != array {
				return nil, n.fail("enum", "want an array")
			}
			return c.product(alts, c.constants(n, v.list), n, "enum")
		}},
		{"const", draft6, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.product(alts, c.constants(n, []*value{v}), n, "const")
		}},
		{"$ref", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.reference(n, "$ref", v, alts)
		}},
		{"$dynamicRef", draft2020, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.dynamicReference(n, "$dynamicRef", v, alts)
		}},
		{"$recursiveRef", draft2019, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			if n.draft > draft2019 {
				return alts, nil
			}
			return c.dynamicReference(n, "$recursiveRef", v, alts)
		}},
		{"allOf", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			list, err := c.branches(n, "allOf", v)
			for _, options := range list {
				if err == nil {
					alts, err = c.product(alts, options, n, "allOf")
				}
			}
			return alts, err
		}},
		{"anyOf", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			list, err := c.branches(n, "anyOf", v)
			if err != nil {
				return nil, err
			}
			return c.product(alts, slices.Concat(list...), n, "anyOf")
		}},
		{"oneOf", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			list, err := c.branches(n, "oneOf", v)
			if err != nil {
				return nil, err
			}
			if list, err = c.apart(n, list); err != nil {
				return nil, err
			}
			for i := range list {
				if list[i], err = c.product(alts, list[i], n, "oneOf"); err != nil {
					return nil, err
				}
			}
			c.exclusive = append(c.exclusive, exclusive{n, list})
			return slices.Concat(list...), nil
		}},
		{"not", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			inner, err := c.expand(c.doc.node(v, n, "not"))
			if err != nil {
				return nil, err
			}
			rest, err := c.complement(n, inner, "not")
			if err != nil {
				return nil, err
			}
			return c.product(alts, rest, n, "not")
		}},
		{"if", draft7, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.conditional(n, v, alts)
		}},
		{"dependentSchemas", draft2019, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.dependent(n, "dependentSchemas", v, alts)
		}},
		{"dependencies", 0, func(c *compiler, n *node, v *value, alts []*alt) ([]*alt, error) {
			return c.dependent(n, "dependencies", v, alts)
		}},
	}
}

// branches expands the schemas of a list.
func (c *compiler) branches(n *node, keyword string, v *value) ([][]*alt, error) {
	if v.kind != array || len(v.list) == 0 {
		return nil, n.fail(keyword, "want an array of schemas")
	}
	list := make([][]*alt, len(v.list))
	for i, s := range v.list {
		var err error
		if list[i], err = c.expand(c.doc.node(s, n, keyword+"/"+strconv.Itoa(i))); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (c *compiler) reference(n *node, keyword string, v *value, alts []*alt) ([]*alt, error) {
	if v.kind != str {
		return nil, n.fail(keyword, "want a string")
	}
	to, err := c.doc.follow(n, keyword, v.text)
	if err != nil {
		return nil, err
	}
	return c.refer(n, keyword, to, alts)
}

// refer takes what is valid by a schema that is referred to.
func (c *compiler) refer(n *node, keyword string, to *node, alts []*alt) ([]*alt, error) {
	if to.expanding {
		return nil, n.fail(keyword, "leads back to itself without an object or an array between")
	}
	options, err := c.expand(to)
	if err != nil {
		return nil, err
	}
	return c.product(alts, options, n, keyword)
}

// refusals are the keywords that are not supported: since which draft, and when they mean something.
var refusals = []struct {
	keyword string
	since   draft
	means   func(n *node, v *value) bool
}{
	{"unevaluatedItems", draft2019, notTrivial},
	{"unevaluatedProperties", draft2019, notTrivial},
}

// notTrivial says whether a schema refuses anything.
func notTrivial(_ *node, v *value) bool {
	return v.kind != yes && !(v.kind == object && len(v.members) == 0)
}

// refused returns the keywords of a schema that are not supported.
func (n *node) refused() (list []*Error) {
	if n.kind != object || n.draft <= draft7 && n.get("$ref") != nil {
		return nil
	}
	for _, r := range refusals {
		if v := n.get(r.keyword); v != nil && n.draft >= r.since && r.means(n, v) {
			list = append(list, n.refuse(r.keyword, "is not supported"))
		}
	}
	return list
}

var typeNames = map[string]types{"null": isNull, "boolean": isBool, "number": isNumber, "integer": isNumber,
	"string": isString, "array": isArray, "object": isObject}

func readType(c *compiler, n *node, v *value, base *alt) error {
	list := []*value{v}
	if v.kind == array {
		list = v.list
	}
	var set types
	whole, any := false, false
	for _, t := range list {
		bits, ok := typeNames[t.text]
		if t.kind != str || !ok {
			return n.fail("type", "want the names of types")
		}
		set |= bits
		whole = whole || t.text == "integer"
		any = any || t.text == "number"
	}
	base.types &= set
	if whole && !any {
		base.num = base.num.and(num{mult: big.NewRat(1, 1)})
	}
	return nil
}

// maxExponent bounds those of numbers in schemas.
const maxExponent = 400

// decimal reads a number as it is.
func decimal(text string) (*big.Rat, bool) {
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		if e, err := strconv.Atoi(text[i+1:]); err != nil || e > maxExponent || e < -maxExponent {
			return nil, false
		}
	}
	if len(text) > maxExponent {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

func (n *node) decimal(keyword string, v *value) (*big.Rat, error) {
	if v.kind == number {
		if r, ok := decimal(v.text); ok {
			return r, nil
		}
	}
	return nil, n.fail(keyword, "want a number of at most 400 digits")
}

func readMinimum(c *compiler, n *node, v *value, base *alt) error {
	r, err := n.decimal("minimum", v)
	open := n.get("exclusiveMinimum")
	base.num = base.num.and(num{lo: r, loOpen: open != nil && open.kind == yes})
	return err
}

func readMaximum(c *compiler, n *node, v *value, base *alt) error {
	r, err := n.decimal("maximum", v)
	open := n.get("exclusiveMaximum")
	base.num = base.num.and(num{hi: r, hiOpen: open != nil && open.kind == yes})
	return err
}

func readExclusiveMinimum(c *compiler, n *node, v *value, base *alt) error {
	if v.kind == yes || v.kind == no { // of draft 4: minimum has read it
		return nil
	}
	r, err := n.decimal("exclusiveMinimum", v)
	base.num = base.num.and(num{lo: r, loOpen: true})
	return err
}

func readExclusiveMaximum(c *compiler, n *node, v *value, base *alt) error {
	if v.kind == yes || v.kind == no {
		return nil
	}
	r, err := n.decimal("exclusiveMaximum", v)
	base.num = base.num.and(num{hi: r, hiOpen: true})
	return err
}

func readMultiple(c *compiler, n *node, v *value, base *alt) error {
	r, err := n.decimal("multipleOf", v)
	if err == nil && r.Sign() <= 0 {
		err = n.fail("multipleOf", "want a number above 0")
	}
	base.num = base.num.and(num{mult: r})
	return err
}

// count reads a number of things.
func (n *node) count(keyword string, v *value) (int, error) {
	if v.kind == number {
		if r, ok := decimal(v.text); ok && r.IsInt() && r.Sign() >= 0 {
			if !r.Num().IsInt64() || r.Num().Int64() > 1<<30 {
				return 1 << 30, nil
			}
			return int(r.Num().Int64()), nil
		}
	}
	return 0, n.fail(keyword, "want a whole number, 0 or more")
}

func readMinLength(c *compiler, n *node, v *value, base *alt) error {
	least, err := n.count("minLength", v)
	base.text = append(base.text, c.pool.Repeat(c.pool.Set(lex.All()), least, -1))
	return err
}

func readMaxLength(c *compiler, n *node, v *value, base *alt) error {
	most, err := n.count("maxLength", v)
	base.text = append(base.text, c.pool.Repeat(c.pool.Set(lex.All()), 0, most))
	return c.narrow(n, "maxLength", base, err)
}

func readPattern(c *compiler, n *node, v *value, base *alt) error {
	if v.kind != str {
		return n.fail("pattern", "want a string")
	}
	t, err := c.pattern(n, "pattern", v.text)
	base.text = append(base.text, t)
	return c.narrow(n, "pattern", base, err)
}

// narrow joins what holds of strings, and takes them out if no text is left.
func (c *compiler) narrow(n *node, keyword string, base *alt, err error) error {
	if err != nil {
		return err
	}
	defer n.blame(keyword)
	c.join(base)
	return nil
}

// blame adds where a limit was broken.
func (n *node) blame(keyword string) {
	if r := recover(); r != nil {
		if limit, ok := r.(*lex.LimitError); ok {
			panic(n.fail(keyword, limit.What))
		}
		panic(r)
	}
}

// constants returns the ways to be one of a list of values.
func (c *compiler) constants(n *node, list []*value) []*alt {
	one := &alt{num: num{listed: true}}
	var texts []*lex.Term
	var out []*alt
	for _, v := range list {
		switch v.kind {
		case null:
			one.types |= isNull
		case yes:
			one.types |= isTrue
		case no:
			one.types |= isFalse
		case number:
			if r, ok := decimal(v.text); ok {
				one.types |= isNumber
				one.num.values = append(one.num.values, r)
			} else {
				panic(n.fail("enum", "has a number of more than 400 digits"))
			}
		case str:
			one.types |= isString
			texts = append(texts, c.pool.Text(v.text))
		case array:
			a := &arrays{rest: c.never(n), min: len(v.list), max: len(v.list)}
			for _, e := range v.list {
				a.prefix = append(a.prefix, c.constant(n, e))
			}
			out = append(out, &alt{types: isArray, arr: []*arrays{a}})
		case object:
			o := &objects{props: map[string]*node{}, extra: c.never(n), max: -1}
			for _, m := range v.members {
				o.props[m.name] = c.constant(n, m.value)
				o.required = append(o.required, m.name)
			}
			out = append(out, &alt{types: isObject, obj: []*objects{o}})
		}
	}
	if len(texts) > 0 {
		one.text = []*lex.Term{c.pool.Or(texts...)}
	}
	if one.types != 0 {
		out = append(out, one)
	}
	return out
}

// constant is the schema of one value.
func (c *compiler) constant(n *node, v *value) *node {
	return c.made(n, v, "const")
}

// made returns the schema {keyword: v}. The same v gives the same schema.
func (c *compiler) made(n *node, v *value, keyword string) *node {
	k := madeKey{v, keyword}
	m := c.mades[k]
	if m == nil {
		m = c.doc.add(&value{kind: object, members: []member{{keyword, v}}}, n.path, n.base, draft2020)
		c.mades[k] = m
	}
	return m
}

type madeKey struct {
	v       *value
	keyword string
}

// anything is the schema of all values.
func (c *compiler) anything(n *node) *node {
	if c.everything == nil {
		c.everything = c.doc.add(&value{kind: yes}, n.path, n.base, draft2020)
	}
	return c.everything
}

// never is the schema of nothing.
func (c *compiler) never(n *node) *node {
	if c.nothing == nil {
		c.nothing = c.doc.add(&value{kind: no}, n.path, n.base, draft2020)
	}
	return c.nothing
}
