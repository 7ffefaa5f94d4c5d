package grammar

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// randomSchema writes a schema of what can lead to dead ends: names that run out, bounds that meet, values that are not
// there.
func randomSchema(r *rand.Rand, depth int) string {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	pattern := func() string {
		return pick("^(foo|x.*)$", "^[ab]$", "^a{0,2}$", "^(a|bc)", "b$", "^f?o+$", "^.$", "^(ab|a[0-9])$", "^\\\\p{Lu}$", "^[^a]", "^(fo|foo|foob)$", "^[\\\\u00e8-\\\\u00ea]$")
	}
	if depth == 0 || r.IntN(4) == 0 {
		return pick(`{"type":"null"}`, `{"type":"boolean"}`, `{"enum":[1,"a"]}`, `{"type":"integer","minimum":8,"maximum":12}`, `false`, `{"const":{"a":1}}`,
			`{"type":"string","maxLength":2}`, fmt.Sprintf(`{"type":"string","pattern":%q,"maxLength":%d}`, strings.ReplaceAll(pattern(), `\\`, `\`), r.IntN(4)),
			`{"type":"string","pattern":"^a+$","not":{"const":"aa"}}`, `{"type":"integer","multipleOf":7,"minimum":1,"maximum":20}`)
	}
	sub := func() string { return randomSchema(r, depth-1) }
	switch r.IntN(10) {
	case 6:
		return fmt.Sprintf(`{"type":"array","items":%s,"uniqueItems":true,"minItems":%d,"maxItems":%d}`, sub(), r.IntN(3), 1+r.IntN(4))
	case 7:
		return fmt.Sprintf(`{"type":"array","contains":%s,"minContains":%d,"items":%s,"maxItems":%d,"prefixItems":[%s]}`, sub(), r.IntN(3), sub(), 1+r.IntN(4), sub())
	case 8:
		return fmt.Sprintf(`{"oneOf":[%s,%s]}`, sub(), sub())
	case 9:
		return fmt.Sprintf(`{"not":%s,"allOf":[%s]}`, sub(), sub())
	case 0:
		return fmt.Sprintf(`{"anyOf":[%s,%s]}`, sub(), sub())
	case 1:
		return fmt.Sprintf(`{"type":"array","items":%s,"minItems":%d,"maxItems":%d}`, sub(), r.IntN(2), 1+r.IntN(3))
	case 2:
		return fmt.Sprintf(`{"allOf":[%s,{"maxProperties":%d}]}`, sub(), r.IntN(4))
	}
	parts := []string{`"type":"object"`}
	add := func(share int, format string, a ...any) {
		if r.IntN(100) < share {
			parts = append(parts, fmt.Sprintf(format, a...))
		}
	}
	name := func() string { return pick("a", "b", "foo", "fo", "ab", "é", "x") }
	add(60, `"properties":{%q:%s,%q:%s}`, name(), sub(), name()+"1", sub())
	add(50, `"patternProperties":{"%s":%s}`, pattern(), sub())
	add(50, `"additionalProperties":%s`, pick("false", "true", sub()))
	add(30, `"propertyNames":{"pattern":"%s"}`, pattern())
	add(20, `"propertyNames":{"maxLength":%d}`, r.IntN(3))
	add(30, `"required":[%q]`, name())
	add(30, `"dependentRequired":{%q:[%q],"a":["b"]}`, name()+"2", name())
	add(40, `"minProperties":%d`, r.IntN(4))
	add(40, `"maxProperties":%d`, r.IntN(5))
	return "{" + strings.Join(dedupe(parts), ",") + "}"
}

// dedupe leaves the first of the parts with one keyword.
func dedupe(parts []string) (out []string) {
	seen := map[string]bool{}
	for _, p := range parts {
		key, _, _ := strings.Cut(p, ":")
		if !seen[key] {
			seen[key] = true
			out = append(out, p)
		}
	}
	return out
}

// fewTokens are few, so that walks come upon what has come before: bytes, and some that begin and end names.
func fewTokens() *Vocabulary {
	var pieces []string
	for b := range 256 {
		pieces = append(pieces, "")
		if b >= 0x80 || strings.IndexByte("{}[]:,\"\\/ \nabfox0123456789-.eutrlnsdcAZ", byte(b)) >= 0 {
			pieces[b] = string([]byte{byte(b)})
		}
	}
	pieces = append(pieces, `":`, `,"`, `,"f`, `{"a`, `{"fo`, "foo", "fo", `o":`, "ab", `a":1,"`, `"}`, `\u00`, "6", `,"\u00e`, "\xc3\xa9", "oo", `foo"`, "\xff<end>")
	return NewVocabulary(pieces, []int32{int32(len(pieces) - 1)})
}

// closers are what brings answers to their end, the best first, in a string and outside; names come in any order.
var closers = map[bool][]string{
	true:  {"name", `":`, `"`, "a", "A", `\n`},
	false: {"}", "]", "null", "true", "7", "14", "8", "10", "1", `"`, `{"`, `,"`, ",", "["},
}

var nameParts = []string{"a", "b", "foo", "fo", "ab", "é", "x", "a1", "b1", "foo1", "fo1", "x1", "b2", "a2", "foo2", "é1", "é2", "ab1", "ab2", "x2", "oo", "o", "c", "A"}

// quotedAt says whether a text ends within a string.
func quotedAt(text []byte) (in bool) {
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '"':
			in = !in
		case in && text[i] == '\\':
			i++
		}
	}
	return in
}

// ends says whether an answer can be brought to its end.
func ends(m *Matcher, v *Vocabulary, r *rand.Rand, schema string, dead *string) bool {
	names := slices.DeleteFunc(slices.Clone(nameParts), func(s string) bool { // a pattern may want one of a character
		return !strings.Contains(schema, s) && utf8.RuneCountInString(s) > 1
	})
	for range 60 {
		c := m.Clone()
		for step := 0; step < 150 && !c.Done(); step++ {
			at := slices.IndexFunc(closers[quotedAt(c.text)], func(text string) bool {
				if text == "name" {
					return slices.ContainsFunc(r.Perm(len(names)), func(i int) bool { return c.AcceptText(names[i] + `":`) })
				}
				return r.IntN(12) > 0 && c.AcceptText(text)
			})
			if at >= 0 {
				continue
			}
			if mask := c.Mask(); mask.Count() == 0 || !c.Accept(draw(r, v, mask)) {
				*dead = c.Text()
				return false
			}
		}
		if c.Done() {
			return true
		}
	}
	return false
}

// TestNoDeadEndsAnywhere walks along masks of random schemas: there is always a token, each one leads to an end, and
// masks are what tokens tried one by one say.
func TestNoDeadEndsAnywhere(t *testing.T) {
	schemas, walks := 20000, 3
	if testing.Short() {
		schemas = 100
	}
	seed := uint64(40)
	v := fewTokens()
	taken, dead := 0, ""
	for n := range schemas {
		r := rand.New(rand.NewPCG(seed, uint64(n)))
		s := randomSchema(r, 2)
		g, _, err := Schema([]byte(s), SchemaOptions{})
		if err != nil {
			if !strings.Contains(err.Error(), NothingValid) && !errors.Is(err, errors.ErrUnsupported) {
				t.Errorf("%s: %v", s, err)
			}
			continue
		}
		taken++
		for range walks {
			m := g.Match(v)
			for step := 0; step < 40 && !m.Over(); step++ {
				mask := m.Mask()
				if mask.Count() == 0 {
					t.Errorf("%d %s: %q leads nowhere: %v", n, s, m.Text(), m.Err())
					break
				}
				for id := range int32(v.Len()) {
					if mask.Has(id) != m.Allows(id) {
						t.Errorf("%d %s: %q and %q: mask %v", n, s, m.Text(), v.Piece(id), mask.Has(id))
					}
				}
				if step%9 == 0 && !ends(m, v, r, s, &dead) {
					t.Errorf("%d %s: %q comes to no end: %q", n, s, m.Text(), dead)
					break
				}
				m.Accept(draw(r, v, mask))
			}
			if t.Failed() {
				break
			}
		}
		if t.Failed() {
			break
		}
	}
	t.Logf("%d of %d schemas", taken, schemas)
}

// TestManyElements: an object that has names of its own choice, and some that it must have, follows one that it must
// differ from, though few of the ways to go on come to an end soon.
func TestManyElements(t *testing.T) {
	const schema = `{"type":"array","items":{"type":"object","patternProperties":{"^a{0,2}$":{"const":{"a":1}}},"required":["é"],
		"dependentRequired":{"a":["b"]}},"uniqueItems":true,"minItems":2}`
	g, _, err := Schema([]byte(schema), SchemaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	m := g.Match(fewTokens())
	if text := `[{"é":null},{"`; !m.AcceptText(text) || m.Mask().Count() == 0 {
		t.Errorf("%s leads nowhere: %v", text, m.Err())
	}
}
