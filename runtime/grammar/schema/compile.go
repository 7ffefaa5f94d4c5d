// Package schema makes grammars of JSON schemas: of drafts 7 and 2020-12, and what drafts 4, 6 and 2019-09 write in the
// same way or otherwise. A schema becomes a union of alts, ways to be valid. What holds of a member or an element is
// the conjunction of all schemas that speak of it.
package schema

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/zincc-dev/zincc/runtime/grammar/ecma"
	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// Options say how a schema is read.
type Options struct {
	// AnyFormat takes format for a remark, as draft 2020-12 has it unless a vocabulary says otherwise.
	AnyFormat bool
	// Documents takes every way to write a value, for documents that others have written. Without it an answer writes
	// integers and constants without exponents, integers without a fraction, \u for no character that needs no escape;
	// digits come only if a number without an exponent can still become of them; and exponents have three digits at
	// most, and are not over 308.
	Documents bool
	// Objects leaves out values that are no objects, and white space in front: as arguments of calls are.
	Objects bool
	// Notation is how values are written.
	Notation Notation
	// Tags are how the members of the outermost object are written, where it is not as JSON.
	Tags *Tags
}

// compiler makes the grammar of a document.
type compiler struct {
	o          Options
	pool       *lex.Pool
	doc        *document
	syntax     *writer
	unions     map[string]*union
	exclusive  []exclusive
	shared     map[*value][][2]int // branches of a oneOf that share values
	again      bool                // such were found
	queue      []*union
	mades      map[madeKey]*node
	nothing    *node
	everything *node
	compares   bool // some elements must differ, or be equal
	open       bool // an object takes names that no schema has
	remarks    []Remark
	terms      map[string]*lex.Term
	at         *place
	matchesAt  map[matchAt]*matchAt
	guards     map[string]*guard
	encodings  map[encodedAt]*lex.Term
}

// exclusive are the branches of a oneOf.
type exclusive struct {
	node *node
	list [][]*alt
}

// place is what is worked on.
type place struct{ path, keyword string }

// Remark is a part of a schema that is no condition of what is written.
type Remark struct{ Keyword, Path, Why string }

// Result is a compiled schema.
type Result struct {
	Root     machine.Item
	Unique   bool // keys that no schema names must not come twice
	Compares bool // elements of arrays must differ, or some be equal
	Remarks  []Remark
	Chooses  string // the keyword at the root that has texts begin in several ways; "" for none
}

// chooses is the first keyword of a schema that is one of several ways to be valid, or leads to such.
func (v *value) chooses() string {
	for _, m := range v.members {
		switch m.name {
		case "anyOf", "oneOf", "allOf", "not", "if", "dependentSchemas", "dependencies", "$ref", "$dynamicRef", "$recursiveRef":
			return m.name
		}
	}
	return ""
}

// NothingValid is the problem of a schema that no value is valid by.
const NothingValid = "nothing is valid by it"

// Compile makes the grammar of a schema. An error is an *Error.
func Compile(pool *lex.Pool, text []byte, o Options) (r *Result, err error) {
	var at place
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Error:
			err = p
		case *lex.LimitError:
			err = &Error{Keyword: at.keyword, Path: at.path, Problem: "is too complex: " + p.What, Refused: true}
		default:
			panic(p)
		}
	}()
	v, err := parse(text)
	if err != nil {
		return nil, err
	}
	shared := map[*value][][2]int{}
	c, root, err := compile(pool, v, o, &at, shared)
	for err == nil && c.again {
		c, root, err = compile(pool, v, o, &at, shared)
	}
	if err != nil {
		return nil, err
	}
	if o.Objects {
		c.must(root)
		root = &union{made: true, arrays: map[*alt]*arrayDef{}, objects: map[*alt]*objectDef{}, alts: onlyObjects(root.alts)}
	}
	if o.Tags != nil {
		for _, a := range root.alts {
			c.object(root, a).tag(o.Tags)
		}
	}
	if o.Notation == Python {
		for _, a := range root.alts {
			c.object(root, a).call()
		}
	}
	if !c.inhabited(root) {
		return nil, c.doc.root.fail("", NothingValid)
	}
	item := c.syntax.document(root)
	switch {
	case o.Notation == Python:
		item = c.keywords(root)
	case o.Tags != nil:
		item = c.tagged(root)
	case o.Objects:
		item = c.syntax.value(root)
	}
	return &Result{Root: item, Unique: c.open, Compares: c.compares, Remarks: c.remarks, Chooses: v.chooses()}, nil
}

// compile reads all schemas of a document.
func compile(pool *lex.Pool, v *value, o Options, at *place, shared map[*value][][2]int) (*compiler, *union, error) {
	doc, err := newDocument(v)
	if err != nil {
		return nil, nil, err
	}
	c := &compiler{o: o, pool: pool, doc: doc, unions: map[string]*union{}, mades: map[madeKey]*node{}, terms: map[string]*lex.Term{}, at: at,
		guards: map[string]*guard{}, encodings: map[encodedAt]*lex.Term{}, shared: shared}
	c.syntax = newWriter(c)
	root := c.union(doc.root)
	c.want(root)
	return c, root, c.all()
}

// union is the conjunction of schemas, as a union of alts.
type union struct {
	nodes   []*node
	alts    []*alt
	made    bool
	queued  bool
	state   inhabitation
	symbol  *machine.Symbol
	arrays  map[*alt]*arrayDef
	objects map[*alt]*objectDef
}

// union returns the conjunction of schemas; none of them: anything.
func (c *compiler) union(nodes ...*node) *union {
	list := slices.Clone(nodes)
	slices.SortFunc(list, func(a, b *node) int { return a.id - b.id })
	list = slices.Compact(list)
	var key []byte
	for _, n := range list {
		key = binary.AppendUvarint(key, uint64(n.id))
	}
	u := c.unions[string(key)]
	if u == nil {
		u = &union{nodes: list, arrays: map[*alt]*arrayDef{}, objects: map[*alt]*objectDef{}}
		c.unions[string(key)] = u
		c.pool.Spend(1)
	}
	return u
}

// make works out the alts of a union.
func (c *compiler) make(u *union) error {
	if u.made {
		return nil
	}
	alts := []*alt{full()}
	for i, n := range u.nodes {
		options, err := c.expand(n)
		if err != nil {
			return err
		}
		if i == 0 {
			alts = options
			continue
		}
		if alts, err = c.product(alts, options, n, "allOf"); err != nil {
			return err
		}
	}
	u.alts, u.made = alts, true
	return nil
}

// must makes a union within a search that cannot return an error.
func (c *compiler) must(u *union) *union {
	if err := c.make(u); err != nil {
		panic(err)
	}
	return u
}

// onlyObjects leaves the objects of alts.
func onlyObjects(alts []*alt) (out []*alt) {
	for _, a := range alts {
		if a.types&isObject != 0 {
			out = append(out, &alt{types: isObject, obj: a.obj})
		}
	}
	return out
}

// want lets all make unions.
func (c *compiler) want(list ...*union) {
	for _, u := range list {
		if !u.queued {
			u.queued = true
			c.queue = append(c.queue, u)
		}
	}
}

// all makes every union that can be reached, so that what is not supported is found before the first token.
func (c *compiler) all() error {
	for len(c.queue) > 0 {
		u := c.queue[0]
		c.queue = c.queue[1:]
		if len(u.nodes) > 0 {
			*c.at = place{u.nodes[0].path, "type"}
		}
		if err := c.make(u); err != nil {
			return err
		}
		for _, a := range u.alts {
			if a.types&isArray != 0 {
				c.want(c.array(u, a).unions()...)
			}
			if a.types&isObject != 0 {
				d := c.object(u, a)
				c.want(d.values...)
				c.want(d.wanted...)
				for _, u := range d.unions {
					c.want(u)
				}
			}
		}
		for _, x := range c.exclusive {
			c.disjoint(x)
		}
		c.exclusive = c.exclusive[:0]
	}
	return nil
}

// pattern returns the texts in which an ECMAScript pattern is found.
func (c *compiler) pattern(n *node, keyword, source string) (*lex.Term, error) {
	if t := c.terms[source]; t != nil {
		return t, nil
	}
	defer n.blame(keyword)
	t, err := ecma.Search(c.pool, source)
	if err != nil {
		e := n.fail(keyword, err.Error())
		if u, ok := err.(*ecma.Error); ok {
			e.Refused = u.Refused
		}
		return nil, e
	}
	c.terms[source] = t
	return t, nil
}

// Refused returns everything in a schema that is not supported by its keyword alone, used or not, in the order of the
// text.
func Refused(text []byte) (list []*Error) {
	v, err := parse(text)
	if err != nil {
		return nil
	}
	doc, err := newDocument(v)
	if err != nil {
		return nil
	}
	nodes := slices.SortedFunc(maps.Values(doc.nodes), func(a, b *node) int { return a.id - b.id })
	for _, n := range nodes {
		list = append(list, n.refused()...)
	}
	return list
}
