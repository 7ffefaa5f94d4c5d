package grammar

import (
	"encoding/json"
	"testing"
)

// follow walks along what a grammar allows.
func follow(t *testing.T, g *Grammar, doc []byte) {
	at, ok, err := g.Check(doc)
	if err != nil {
		return
	}
	if at < 0 || at > len(doc) || ok && at != len(doc) {
		t.Fatalf("%q: %d of %d bytes, %v", doc, at, len(doc), ok)
	}
	m := g.Match(tiny())
	if m.AcceptText(string(doc[:at])) {
		if mask := m.Mask(); mask.Count() == 0 && !m.Over() && m.Err() == nil {
			t.Fatalf("%q leads nowhere", doc[:at])
		}
		m.Forced(64)
	}
}

func FuzzSchema(f *testing.F) {
	for _, s := range []string{`{}`, `false`, `{"type":"integer","minimum":3,"multipleOf":0.5}`, `{"oneOf":[{"const":1},{"enum":["a",[],{}]}]}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"b":{"$ref":"#/$defs/a"}},"required":["b"]}}}`,
		`{"patternProperties":{"^a":{"format":"date-time"}},"propertyNames":{"maxLength":4},"minProperties":2,"dependentRequired":{"a":["b"]}}`,
		`{"allOf":[{"prefixItems":[true,{"pattern":"a|b$"}]},{"not":{"required":["x"]}}],"minItems":1}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"http://x/y","items":[{"$ref":"y#a"}],"definitions":{"q":{"$id":"#a"}}}`} {
		f.Add([]byte(s), []byte(`{"a":[1,"b",null]}`))
	}
	f.Fuzz(func(t *testing.T, text, doc []byte) {
		g, _, err := Schema(text, SchemaOptions{})
		Refused(text)
		if err != nil {
			return
		}
		if at, ok, _ := g.Check(doc); ok && !json.Valid(doc) {
			t.Fatalf("%q is taken, %d bytes, and no JSON", doc, at)
		}
		follow(t, g, doc)
	})
}

func FuzzGBNF(f *testing.F) {
	f.Add(jsonGBNF, []byte(`{"a":1}`))
	for _, s := range []string{`root ::= "a" root | [^b-d]{2,} # x`, "root ::= (a | <x>)+\na ::= .", `root ::= root`, `root ::= ("a"?)* "\x41"`} {
		f.Add(s, []byte("abc"))
	}
	f.Fuzz(func(t *testing.T, text string, doc []byte) {
		if g, err := GBNF(text); err == nil {
			follow(t, g, doc)
		}
	})
}

func FuzzRegex(f *testing.F) {
	for _, s := range []string{`a|b*`, `^(a|^b)$`, `[^\d-z]{1,3}?`, `\p{Lu}\u{1f600}\cA`, `(?<n>x)+$`, `(a?){3,}`} {
		f.Add(s, []byte("abc"))
	}
	f.Fuzz(func(t *testing.T, pattern string, doc []byte) {
		if g, err := Regex(pattern); err == nil {
			follow(t, g, doc)
		}
	})
}
