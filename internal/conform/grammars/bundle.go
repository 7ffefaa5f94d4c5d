package main

import (
	"encoding/json"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// library are the schemas of a folder by their URI: what they say that it is, or their place.
type library map[string]*document

// document is a schema, and what it refers to.
type document struct {
	uri     string
	members map[string]json.RawMessage
	refs    []string // URIs of other documents
}

// newLibrary reads all JSON of a folder, or of a file.
func newLibrary(path string) (library, error) {
	var list []schema
	err := filepath.WalkDir(path, func(file string, d fs.DirEntry, err error) error {
		if ext := filepath.Ext(file); err != nil || d.IsDir() || ext != ".json" && ext != ".schema" {
			return err
		}
		data, err := os.ReadFile(file)
		list = append(list, schema{file, data})
		return err
	})
	if err != nil {
		return nil, err
	}
	l := library{}
	for _, s := range list {
		d := &document{}
		if json.Unmarshal(s.text, &d.members) != nil {
			continue
		}
		place, err := filepath.Abs(s.name)
		if err != nil {
			continue
		}
		place = (&url.URL{Scheme: "file", Path: filepath.ToSlash(place)}).String()
		base := place
		for _, key := range []string{"id", "$id"} {
			// An id of a folder and a name is found at its place.
			if id := text(d.members[key]); strings.HasPrefix(id, "/") || strings.Contains(id, ":") {
				base, _, _ = strings.Cut(joined(place, id), "#")
			}
		}
		var v any
		json.Unmarshal(s.text, &v)
		d.refer(v, base)
		l[place], d.uri = d, base
		if l[base] == nil {
			l[base] = d
		}
	}
	return l, nil
}

// refer notes all references.
func (d *document) refer(v any, base string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			d.refer(e, base)
		}
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok && !strings.HasPrefix(ref, "#") {
			uri, _, _ := strings.Cut(joined(base, ref), "#")
			d.refs = append(d.refs, uri)
		}
		for _, e := range v {
			d.refer(e, base)
		}
	}
}

// text is a string of JSON, or nothing.
func text(data json.RawMessage) (s string) {
	json.Unmarshal(data, &s)
	return s
}

func joined(base, ref string) string {
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	u, err := b.Parse(ref)
	if err != nil {
		return ref
	}
	return u.String()
}

// bundle returns a schema as one document with all that it refers to, as those who publish it in parts have it. It is
// the schema itself where it refers to nothing else.
func (l library) bundle(s schema) []byte {
	place, err := filepath.Abs(s.name)
	if err != nil {
		return s.text
	}
	root := l[(&url.URL{Scheme: "file", Path: filepath.ToSlash(place)}).String()]
	if root == nil || len(root.refs) == 0 {
		return s.text
	}
	parts := map[string]map[string]json.RawMessage{}
	var add func(d *document)
	add = func(d *document) {
		if parts[d.uri] != nil {
			return
		}
		part := map[string]json.RawMessage{}
		for k, v := range d.members {
			part[k] = v
		}
		part["$id"], _ = json.Marshal(d.uri)
		if part["id"] != nil {
			part["id"] = part["$id"]
		}
		parts[d.uri] = part
		for _, uri := range d.refs {
			if to := l[uri]; to != nil {
				add(to)
			}
		}
	}
	add(root)
	whole, err := json.Marshal(map[string]any{"$ref": root.uri, "$defs": parts})
	if err != nil {
		return s.text
	}
	return whole
}
