package main

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// TestWalk has another library validate what random walks along masks write.
func TestWalk(t *testing.T) {
	var pieces []string
	for b := range 256 {
		pieces = append(pieces, string([]byte{byte(b)}))
	}
	pieces = append(pieces, `",`, `":`, `"}`, `{"`, `[]`, "12", "ab", "\xff<end>")
	v := grammar.NewVocabulary(pieces, []int32{int32(len(pieces) - 1)})
	r := rand.New(rand.NewPCG(5, 5))
	for _, s := range []string{
		`{"type":"object","properties":{"a":{"type":"integer","minimum":-3,"maximum":1200},"b":{"type":"string","maxLength":4},"c":{"enum":[1,"x",null,{"k":[2]}]}},"required":["a","c"],"additionalProperties":false}`,
		`{"type":"object","additionalProperties":{"type":"boolean"},"propertyNames":{"maxLength":2},"minProperties":1,"maxProperties":3}`,
		`{"type":"object","patternProperties":{"^a":{"type":"null"},"b$":{"type":["null","boolean"]}},"additionalProperties":false,"propertyNames":{"maxLength":3},"maxProperties":4}`,
		`{"type":"array","prefixItems":[{"type":"number","multipleOf":0.5,"minimum":0,"maximum":9},{"const":"yes"}],"items":{"type":"boolean"},"minItems":2,"maxItems":5}`,
		`{"type":"string","pattern":"^[a-f]{2,6}-\\d+$","maxLength":8}`,
		`{"type":"string","minLength":2,"maxLength":5,"not":{"const":"abc"}}`,
		`{"anyOf":[{"type":"object","properties":{"n":{"$ref":"#"}},"required":["n"],"additionalProperties":false},{"type":"integer","exclusiveMinimum":4,"maximum":11,"multipleOf":3}]}`,
		`{"allOf":[{"required":["a"],"dependentRequired":{"a":["b"]}},{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"null"},"c":{"type":"null"}},"additionalProperties":false,"maxProperties":2}]}`,
		`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"v":{"type":"null"}},"required":["k","v"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"],"additionalProperties":false}]}`,
	} {
		g, _, err := grammar.Schema([]byte(s), grammar.SchemaOptions{})
		if err != nil {
			t.Fatalf("%s: %v", s, err)
		}
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(s))
		if err != nil {
			t.Fatal(err)
		}
		c := jsonschema.NewCompiler()
		if err := c.AddResource("file:///s.json", doc); err != nil {
			t.Fatal(err)
		}
		judge, err := c.Compile("file:///s.json")
		if err != nil {
			t.Fatal(err)
		}
		ended := 0
		for range 150 {
			m := g.Match(v)
			for step := 0; step < 600 && !m.Over(); step++ {
				id, ok := pick(r, v, m.Mask())
				if !ok || !m.Accept(id) {
					t.Fatalf("%s: %q: nothing follows", s, m.Text())
				}
			}
			if !m.Over() {
				continue
			}
			ended++
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(m.Text())))
			if err == nil {
				err = judge.Validate(v)
			}
			if err != nil {
				t.Errorf("%s: %q: %v", s, m.Text(), err)
			}
		}
		if ended < 50 {
			t.Errorf("%s: %d of 150 walks end", s, ended)
		}
	}
}
