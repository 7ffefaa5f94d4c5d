package schema

import (
	"iter"
	"net/url"
	"strconv"
	"strings"
)

// draft is the version of JSON schema that a part of a document is written in.
type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
)

// drafts are the values of $schema.
var drafts = map[string]draft{
	"json-schema.org/draft-04/schema":      draft4,
	"json-schema.org/draft-06/schema":      draft6,
	"json-schema.org/draft-07/schema":      draft7,
	"json-schema.org/draft/2019-09/schema": draft2019,
	"json-schema.org/draft/2020-12/schema": draft2020,
	"json-schema.org/schema":               draft7, // the newest one, when that was still in use
}

// node is a schema: a place in a document.
type node struct {
	*value
	id    int
	path  string // JSON pointer
	base  string // against which references are resolved
	draft draft

	alts      []*alt // once expanded
	expanded  bool
	expanding bool
}

// fail is an error about a keyword of the node.
func (n *node) fail(keyword, problem string) *Error {
	return &Error{Keyword: keyword, Path: n.path, Problem: problem}
}

// refuse says that a keyword is not supported.
func (n *node) refuse(keyword, why string) *Error {
	return &Error{Keyword: keyword, Path: n.path, Problem: why, Refused: true}
}

// document finds the schemas of a text.
type document struct {
	root    *node
	nodes   map[*value]*node
	count   int
	ids     map[string]*value            // documents within by their URI, without fragment
	anchors map[string]*value            // by URI and name
	dynamic map[string]map[string]*value // of $dynamicAnchor, by name and URI; $recursiveAnchor is one without a name
}

// Where schemas stand in a schema.
var (
	oneSchema = []string{"additionalItems", "additionalProperties", "contains", "else", "if", "then", "not", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "contentSchema", "items"}
	manySchemas = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	named       = []string{"properties", "patternProperties", "definitions", "$defs", "dependentSchemas", "dependencies"}
)

func newDocument(v *value) (*document, error) {
	d := &document{nodes: map[*value]*node{}, ids: map[string]*value{}, anchors: map[string]*value{}, dynamic: map[string]map[string]*value{}}
	if v.kind != object && v.kind != yes && v.kind != no {
		return nil, &Error{Problem: "want an object, true or false"}
	}
	d.ids[""] = v
	if err := d.enter(v, "", "", draft2020, nil); err != nil {
		return nil, err
	}
	d.root = d.nodes[v]
	return d, nil
}

// add makes a node.
func (d *document) add(v *value, path, base string, version draft) *node {
	n := &node{value: v, id: d.count, path: path, base: base, draft: version}
	d.count++
	d.nodes[v] = n
	return n
}

// enter notes a schema and those within.
func (d *document) enter(v *value, path, base string, version draft, parent *node) error {
	if d.nodes[v] != nil {
		return nil
	}
	if v.kind != object {
		d.add(v, path, base, version)
		return nil
	}
	version, err := draftOf(v, path, version, parent == nil)
	if err != nil {
		return err
	}
	base = d.identify(v, base, version, parent == nil)
	d.anchor(v, base, version)
	n := d.add(v, path, base, version)
	for key, c := range schemasIn(v) {
		if err := d.enter(c, path+"/"+key, base, version, n); err != nil {
			return err
		}
	}
	return nil
}

// draftOf is the draft that v states, else that of what is around it. A root must state a known one, if any.
func draftOf(v *value, path string, around draft, root bool) (draft, error) {
	s := v.get("$schema")
	if s == nil || s.kind != str {
		return around, nil
	}
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(s.text, "https://"), "http://"), "#")
	known, ok := drafts[name]
	switch {
	case ok:
		return known, nil
	case root:
		return around, (&node{path: path}).refuse("$schema", "is none of drafts 4, 6, 7, 2019-09 and 2020-12: "+quote(s.text))
	}
	return around, nil
}

// identify notes the id of v, by which others refer to it, and returns the base of what is in v.
func (d *document) identify(v *value, base string, version draft, root bool) string {
	idName := "$id"
	if version == draft4 {
		idName = "id"
	}
	old := version <= draft7
	id := v.get(idName)
	if old && v.get("$ref") != nil {
		id = nil
	}
	if id == nil || id.kind != str {
		return base
	}
	if old && strings.HasPrefix(id.text, "#") {
		d.anchors[base+id.text] = v
		return base
	}
	name, fragment, _ := strings.Cut(resolve(base, id.text), "#")
	if name != base || root {
		d.ids[name] = v
		base = name
	}
	if old && fragment != "" {
		d.anchors[name+"#"+fragment] = v
	}
	return base
}

// anchor notes the anchors of v.
func (d *document) anchor(v *value, base string, version draft) {
	for _, key := range []string{"$anchor", "$dynamicAnchor"} {
		if a := v.get(key); version > draft7 && a != nil && a.kind == str {
			d.anchors[base+"#"+a.text] = v
			if key == "$dynamicAnchor" && version >= draft2020 {
				d.note(a.text, base, v)
			}
		}
	}
	if a := v.get("$recursiveAnchor"); a != nil && a.kind == yes && version == draft2019 {
		d.note("", base, v)
	}
}

// schemasIn goes through the schemas right in v, by their paths from there.
func schemasIn(v *value) iter.Seq2[string, *value] {
	of := func(key string, kind kind) *value {
		if c := v.get(key); c != nil && c.kind == kind {
			return c
		}
		return &value{}
	}
	return func(yield func(string, *value) bool) {
		for _, key := range oneSchema {
			if c := of(key, object); c.kind == object && !yield(key, c) {
				return
			}
		}
		for _, key := range manySchemas {
			for i, s := range of(key, array).list {
				if !yield(key+"/"+strconv.Itoa(i), s) {
					return
				}
			}
		}
		for _, key := range named {
			for _, m := range of(key, object).members {
				if !yield(key+"/"+escapePointer(m.name), m.value) {
					return
				}
			}
		}
	}
}

// node returns the node of a schema within another one, at a place of it.
func (d *document) node(v *value, within *node, place string) *node {
	if n := d.nodes[v]; n != nil {
		return n
	}
	return d.add(v, within.path+"/"+place, within.base, within.draft)
}

func resolve(base, ref string) string {
	u, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	b, err := url.Parse(base)
	if err != nil || base == "" {
		return u.String()
	}
	if b.Opaque != "" { // as of urn:
		if strings.HasPrefix(ref, "#") {
			return base + ref
		}
		return ref
	}
	return b.ResolveReference(u).String()
}

// follow returns the schema that a reference names.
func (d *document) follow(from *node, keyword, ref string) (*node, error) {
	uri, fragment, _ := strings.Cut(resolve(from.base, ref), "#")
	if strings.HasPrefix(ref, "#") {
		uri = from.base
	}
	root := d.ids[uri]
	if root == nil {
		var err error
		if root, err = d.known(uri); err != nil {
			return nil, err
		}
	}
	if root == nil {
		return nil, from.refuse(keyword, "refers to another document: "+quote(ref))
	}
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	if fragment == "" {
		return d.nodes[root], nil
	}
	if fragment[0] != '/' {
		if v := d.anchors[uri+"#"+fragment]; v != nil {
			return d.nodes[v], nil
		}
		return nil, from.fail(keyword, "there is no "+quote(ref))
	}
	v, within := root, d.nodes[root]
	path := within.path
	for _, part := range strings.Split(fragment[1:], "/") {
		name := strings.NewReplacer("~1", "/", "~0", "~").Replace(part)
		var next *value
		switch v.kind {
		case object:
			next = v.get(name)
		case array:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.list) {
				next = v.list[i]
			}
		}
		if next == nil {
			return nil, from.fail(keyword, "there is no "+quote(ref))
		}
		v, path = next, path+"/"+part
		if n := d.nodes[v]; n != nil {
			within = n
		}
	}
	if n := d.nodes[v]; n != nil {
		return n, nil
	}
	if v.kind != object && v.kind != yes && v.kind != no {
		return nil, from.fail(keyword, "is no schema: "+quote(ref))
	}
	if err := d.enter(v, path, within.base, within.draft, within); err != nil {
		return nil, err
	}
	return d.nodes[v], nil
}

func quote(s string) string {
	const most = 80
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + ".."
	}
	return strconv.Quote(s)
}
