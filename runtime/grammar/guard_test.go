package grammar

import (
	"math/rand/v2"
	"testing"
)

// TestGuards decides documents by formats that have no automaton.
func TestGuards(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{"format":"hostname"}`, []string{`"a.xn--bcher-kva"`, `3`}, []string{`"xn--X"`, `"bücher"`, `""`}},
		{`{"format":"hostname","pattern":"^xn--","maxLength":13}`, []string{`"xn--bcher-kva"`, `1`}, []string{`"xn--bcher-kvaa"`, `"xn--99999999"`, `"a"`}},
		{`{"type":"string","not":{"format":"hostname"}}`, []string{`"xn--X"`, `"a b"`}, []string{`"a"`, `"xn--bcher-kva"`}},
		{`{"format":"idn-hostname","type":"string"}`, []string{`"b\u00fccher.de"`, `"日本"`}, []string{`"BÜCHER"`, `"1א"`}},
		{`{"format":"regex","type":"string"}`, []string{`"^(?=a)[^b]\\1()$"`, `""`}, []string{`"("`, `"a**"`}},
		{`{"propertyNames":{"format":"regex"},"additionalProperties":{"type":"null"}}`, []string{`{"a+":null}`, `{}`}, []string{`{"+":null}`, `{"a+":1}`}},
		{`{"properties":{"(":{}},"propertyNames":{"format":"regex"}}`, []string{`{}`}, []string{`{"(":1}`}},
		{`{"enum":["a","xn--X","xn--bcher-kva"],"format":"hostname"}`, []string{`"a"`, `"xn--bcher-kva"`}, []string{`"xn--X"`}},
		{`{"oneOf":[{"format":"hostname","type":"string"},{"type":"integer"}]}`, []string{`"a"`, `1`}, []string{`"xn--X"`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json"}`, []string{`" {\"a\":[1]}"`, `2`}, []string{`"{:}"`, `""`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base64"}`, []string{`""`, `"AA=="`, `"AAA="`, `"+/09"`}, []string{`"A"`, `"AA"`, `"AB=="`, `"AAAAA==="`, `"=AAA"`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base32"}`, []string{`"MY======"`, `"MZXW6==="`, `"MZXW6YTB"`}, []string{`"MZ======"`, `"MZXW6=="`, `"M"`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base16"}`, []string{`"0AFF"`}, []string{`"0AF"`, `"G0"`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base64","contentMediaType":"application/json"}`, []string{`"eyJhIjoxfQ=="`}, []string{`"ezp9"`, `"e30"`, `"{}"`}},
		{`{"contentEncoding":"base64","contentMediaType":"application/json"}`, []string{`"e30"`}, nil},
	} {
		g, _, err := Schema([]byte(c.schema), SchemaOptions{Documents: true})
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for _, doc := range c.yes {
			if at, ok, err := g.Check([]byte(doc)); !ok || err != nil {
				t.Errorf("%s: %s is refused at %d: %v", c.schema, doc, at, err)
			}
		}
		for _, doc := range c.no {
			if _, ok, _ := g.Check([]byte(doc)); ok {
				t.Errorf("%s: %s is taken", c.schema, doc)
			}
		}
	}
}

// TestGuardedAnswers holds that answers are documents: what they are written within is a part of what is valid.
func TestGuardedAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	v := tiny()
	for _, s := range []string{
		`{"type":"string","format":"hostname"}`, `{"type":"string","format":"idn-hostname"}`, `{"type":"string","format":"regex"}`,
		`{"type":"string","not":{"format":"hostname"},"maxLength":9}`, `{"type":"string","not":{"format":"regex"}}`,
		`{"type":"string","not":{"format":"idn-hostname"},"maxLength":9}`, `{"type":"string","format":"idn-hostname","minLength":3,"pattern":"[а-я]"}`,
		`{"type":"object","propertyNames":{"format":"regex","maxLength":5},"additionalProperties":{"type":"null"},"maxProperties":2}`,
		`{"type":"string","format":"regex","pattern":"^\\^.*\\(","maxLength":9}`, `{"enum":["xn--bcher-kva","xn--X"],"format":"hostname"}`,
		`{"type":"string","$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json"}`,
		`{"type":"string","$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json","contentEncoding":"base64"}`,
		`{"type":"string","$schema":"http://json-schema.org/draft-07/schema#","contentMediaType":"application/json","contentEncoding":"base32"}`,
		`{"type":"string","$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base64url"}`,
	} {
		g, _, err := Schema([]byte(s), SchemaOptions{})
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		judge, _, err := Schema([]byte(s), SchemaOptions{Documents: true})
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		ended := 0
		for range 24 {
			m := g.Match(v)
			for step := 0; step < 400 && !m.Over(); step++ {
				mask := m.Mask()
				if mask.Count() == 0 {
					t.Fatalf("%s: %q leads nowhere: %v", s, m.Text(), m.Err())
				}
				m.Accept(draw(r, v, mask))
			}
			if !m.Over() {
				continue
			}
			ended++
			if at, ok, err := judge.Check([]byte(m.Text())); !ok || err != nil {
				t.Errorf("%s: %s is refused at %d: %v", s, m.Text(), at, err)
			}
		}
		if ended < 6 {
			t.Errorf("%s: %d of 24 end", s, ended)
		}
	}
}
