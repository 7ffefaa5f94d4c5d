package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// value is JSON as it was written: members keep their order, numbers their digits.
type value struct {
	kind    kind
	text    string // of a string or a number
	list    []*value
	members []member
}

type member struct {
	name string
	*value
}

type kind uint8

const (
	null kind = iota
	yes
	no
	number
	str
	array
	object
)

// maxNesting bounds how deep a schema is.
const maxNesting = 500

// parse reads a JSON text.
func parse(text []byte) (*value, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	v, err := read(d, 0)
	if err == nil {
		if _, end := d.Token(); end != io.EOF {
			return nil, &Error{Problem: "more than one JSON value"}
		}
		return v, nil
	}
	if e, ok := err.(*Error); ok {
		return nil, e
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return nil, &Error{Problem: fmt.Sprintf("no JSON: %v", err)}
}

func read(d *json.Decoder, depth int) (*value, error) {
	if depth > maxNesting {
		return nil, &Error{Problem: fmt.Sprintf("nested more than %d deep", maxNesting)}
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case nil:
		return &value{kind: null}, nil
	case bool:
		if t {
			return &value{kind: yes}, nil
		}
		return &value{kind: no}, nil
	case json.Number:
		return &value{kind: number, text: string(t)}, nil
	case string:
		return &value{kind: str, text: t}, nil
	case json.Delim:
		if t == '[' {
			v := &value{kind: array}
			for d.More() {
				e, err := read(d, depth+1)
				if err != nil {
					return nil, err
				}
				v.list = append(v.list, e)
			}
			_, err := d.Token()
			return v, err
		}
		v := &value{kind: object}
		at := map[string]int{}
		for d.More() {
			name, err := d.Token()
			if err != nil {
				return nil, err
			}
			e, err := read(d, depth+1)
			if err != nil {
				return nil, err
			}
			key := name.(string)
			if i, ok := at[key]; ok { // the last one counts
				v.members[i].value = e
				continue
			}
			at[key] = len(v.members)
			v.members = append(v.members, member{key, e})
		}
		_, err := d.Token()
		return v, err
	}
	return nil, io.ErrUnexpectedEOF
}

// get returns the member of an object with a name, nil if there is none.
func (v *value) get(name string) *value {
	for i := range v.members {
		if v.members[i].name == name {
			return v.members[i].value
		}
	}
	return nil
}
