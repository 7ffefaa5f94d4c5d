package grammar

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestSchemas decides documents, most of them of the kinds that engines get wrong.
func TestSchemas(t *testing.T) {
	for _, c := range []struct {
		schema  string
		yes, no []string
	}{
		{`{}`, []string{`1`, ` "a"`, `{"a":[null,{}]}`, "[ 1 ,\t2 ]", `-0.5e-10`}, []string{`01`, `{"a":1,}`, `[1 2]`, `"a`, `{"a":1,"a":2}`, "[1,          2]", `+1`, `.5`, `"\ud800"`, "\"\n\""}},
		{`false`, nil, []string{`1`, `null`}},
		{`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`,
			[]string{`{"a":1}`, `{"b":"x","a":1}`, `{"a":1,"b":""}`, `{"\u0061":1}`, "{ \"a\" : 1\n}"},
			[]string{`{}`, `{"b":"x"}`, `{"a":1,"a":2}`, `{"a":1,"c":2}`, `{"a":1.5}`, `{"a":"1"}`, `{"a":1,"\u0061":2}`}},
		{`{"type":"object","additionalProperties":{"type":"integer"},"maxProperties":2,"minProperties":1}`,
			[]string{`{"x":1}`, `{"x":1,"xy":2}`, `{"":1}`}, []string{`{}`, `{"x":1,"x":2}`, `{"x":1,"\u0078":2}`, `{"a":1,"b":2,"c":3}`, `{"a":"b"}`}},
		{`{"patternProperties":{"^a":{"type":"integer"},"z$":{"minimum":10}},"additionalProperties":false}`,
			[]string{`{"ab":1}`, `{"z":"s","bz":10}`, `{"az":10}`}, []string{`{"az":9}`, `{"az":10.5}`, `{"b":1}`}},
		{`{"propertyNames":{"pattern":"^[a-z]+$","maxLength":3},"properties":{"abcd":{}}}`, []string{`{"abc":1}`}, []string{`{"abcd":1}`, `{"A":1}`}},
		{`{"dependentRequired":{"a":["b"],"b":["c"]},"properties":{"c":{"type":"null"}}}`,
			[]string{`{}`, `{"a":1,"b":2,"c":null}`, `{"c":null,"b":1}`}, []string{`{"a":1}`, `{"a":1,"b":1}`, `{"a":1,"b":2,"c":3}`}},
		{`{"dependentRequired":{"a":["b"]},"properties":{"b":false}}`, []string{`{}`, `{"c":1}`}, []string{`{"a":1`, `{"a"`}},
		{`{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}],"items":false,"minItems":1}`,
			[]string{`[1]`, `[1,"a"]`}, []string{`[]`, `["a"]`, `[1,"a",2]`, `[1,2]`}},
		{`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":3}`, []string{`[1,2]`, `[1,2,3]`}, []string{`[1]`, `[1,2,3,4]`}},
		{`{"type":"integer","minimum":-5,"exclusiveMaximum":120}`, []string{`-5`, `0`, `-0`, `119`, `7.0`, `1e1`, `50e-1`}, []string{`-6`, `120`, `1.5`, `1e3`, `999`}},
		{`{"type":"number","multipleOf":0.01,"minimum":0}`, []string{`0.01`, `19.99`, `100`, `0`}, []string{`0.001`, `-0.01`, `1.005`}},
		{`{"type":"integer","multipleOf":7,"minimum":10,"maximum":30}`, []string{`14`, `21`, `28`, `2.8e1`}, []string{`7`, `15`, `35`, `1`, `3`}},
		{`{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, []string{`0.5`, `0.001`, `1e-3`, `9.9e-1`}, []string{`0`, `1`, `1.0`, `0.0`, `10e-1`}},
		{`{"enum":["a","ab",1,2.50,null,[1,{"x":true}],{"k":"v"}]}`,
			[]string{`"a"`, `"ab"`, `1`, `1.0`, `2.5`, `25e-1`, `null`, `[1,{"x":true}]`, `{"k":"v"}`, `"\u0061"`}, []string{`"b"`, `3`, `[1]`, `{"k":"v","l":1}`, `{}`, `true`}},
		{`{"const":{"a":[1,2]}}`, []string{`{"a":[1,2]}`, `{"a": [1.0, 2]}`}, []string{`{"a":[1]}`, `{"a":[2,1]}`}},
		{`{"type":"string","pattern":"^[a-z]+$","minLength":3,"maxLength":5}`, []string{`"abc"`, `"abcde"`, `"\u0061bc"`}, []string{`"ab"`, `"abcdef"`, `"ABC"`}},
		{`{"type":"string","minLength":2,"maxLength":2}`, []string{`"é😀"`, `"\ud83d\ude00a"`, `"\n\""`}, []string{`"😀"`, `"abc"`}},
		{`{"pattern":"b"}`, []string{`"abc"`, `"b"`, `1`}, []string{`"ac"`}},
		{`{"type":"string","format":"date"}`, []string{`"2024-02-29"`, `"1999-12-31"`}, []string{`"2023-02-29"`, `"2024-13-01"`}},
		{`{"type":"string","format":"email"}`, []string{`"a@b.c"`, `"a@[127.0.0.1]"`, `"a@[IPv6:::1]"`}, []string{`"a"`, `"a@[x:y]"`, `"a@[1.2.3]"`}},
		{`{"type":"string","format":"date-time","pattern":"^2024","maxLength":20}`, []string{`"2024-01-01T00:00:00Z"`}, []string{`"2023-01-01T00:00:00Z"`, `"2024-01-01T00:00:00+01:00"`}},
		{`{"allOf":[{"properties":{"a":{"minimum":3}},"required":["a"]},{"properties":{"a":{"type":"integer"}},"maxProperties":1}]}`,
			[]string{`{"a":3}`, `"x"`}, []string{`{"a":2}`, `{"a":3.5}`, `{"a":3,"b":1}`}},
		{`{"anyOf":[{"type":"object","required":["a"]},{"type":"object","properties":{"b":{"const":1}},"required":["b"]}]}`,
			[]string{`{"a":1}`, `{"b":1}`, `{"b":2,"a":0}`}, []string{`{"b":2}`, `{}`}},
		{`{"oneOf":[{"properties":{"k":{"const":"a"},"v":{"type":"integer"}},"required":["k"],"type":"object"},{"properties":{"k":{"const":"b"},"v":{"type":"string"}},"required":["k"],"type":"object"}]}`,
			[]string{`{"k":"a","v":1}`, `{"v":"s","k":"b"}`}, []string{`{"k":"a","v":"s"}`, `{"v":1,"k":"b"}`, `{"k":"c"}`}},
		{`{"oneOf":[{"properties":{"k":{"const":"a"}},"required":["k"]},{"properties":{"k":{"const":"b"}},"required":["k"]}]}`,
			[]string{`{"k":"a"}`, `{"k":"b","v":1}`}, []string{`1`, `"a"`, `null`, `[]`, `{}`, `{"k":"c"}`}},
		{`{"oneOf":[{"required":["a"]},{"required":["b"]},{"maxProperties":0}],"properties":{"a":{"type":"null"}}}`,
			[]string{`{"a":null}`, `{"b":1}`, `{}`, `{"a":null,"c":1}`}, []string{`{"a":null,"b":1}`, `{"c":1}`, `{"a":1}`, `3`, `[]`}},
		{`{"oneOf":[{"type":"string"},{"type":["string","boolean"],"maxLength":3},{"const":true}]}`,
			[]string{`"abcd"`, `false`}, []string{`"abc"`, `true`, `1`}},
		{`{"type":["integer","null","string"],"not":{"enum":[3,"x"]}}`, []string{`2`, `"y"`, `null`, `"xx"`}, []string{`3`, `"x"`, `3.0`}},
		{`{"not":{"required":["a"]}}`, nil, []string{`1`, `{"a":1}`}},
		{`{"type":"object","not":{"properties":{"a":{"const":1}},"required":["a"]}}`, []string{`{}`, `{"a":2}`}, []string{`{"a":1}`}},
		{`{"type":"object","if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["a"]},"else":{"maxProperties":1}}`,
			[]string{`{"k":"a","a":1}`, `{}`, `{"b":1}`, `{"k":"b"}`}, []string{`{"k":"a"}`, `{"k":"a","b":1}`, `{"k":"b","a":1}`, `{"b":1,"a":1}`}},
		{`{"type":["integer","string"],"if":{"type":"number"},"then":{"minimum":3},"else":{"maxLength":1}}`, []string{`3`, `"a"`}, []string{`2`, `"ab"`}},
		{`{"if":{"minLength":2},"else":{"const":"x"},"type":"string"}`, []string{`"ab"`, `"x"`}, []string{`"y"`}},
		{`{"dependentSchemas":{"a":{"required":["b"]},"c":false}}`, []string{`{}`, `1`, `{"a":1,"b":2}`, `{"b":1}`}, []string{`{"a":1}`, `{"c":1}`, `{"a":1,"b":1,"c":1}`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"],"b":{"properties":{"a":{"type":"null"}}}}}`,
			[]string{`{"b":1}`, `{"a":null,"b":1}`}, []string{`{"a":null}`, `{"a":1,"b":1}`}},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"v":{"type":"integer"},"next":{"$ref":"#/$defs/n"}},"required":["v"],"additionalProperties":false}}}`,
			[]string{`{"v":1,"next":{"v":2,"next":{"next":{"v":4},"v":3}}}`}, []string{`{"v":1,"next":{}}`}},
		{`{"$defs":{"t":{"type":"object","properties":{"c":{"$ref":"#/$defs/t"}},"required":["c"]}},"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}`,
			[]string{`null`}, []string{`{"c":`, `{`}},
		{`{"not":{"additionalProperties":{"type":"integer"},"properties":{"a":true}}}`, []string{`{"b":"x"}`, `{"a":1,"b":1,"c":null}`}, []string{`{}`, `{"a":"x"}`, `{"b":1}`, `3`}},
		{`{"not":{"patternProperties":{"^x":{"minimum":3}},"type":"object"}}`, []string{`{"x":2}`, `{"x":3,"xy":1}`, `[]`}, []string{`{}`, `{"x":3}`, `{"y":2}`}},
		{`{"not":{"propertyNames":{"maxLength":2}}}`, []string{`{"abc":1}`, `{"a":1,"abc":1}`}, []string{`{}`, `{"ab":1}`, `1`}},
		{`{"not":{"propertyNames":{"format":"hostname"}}}`, []string{`{"-":1}`, `{"a":1,"xn--x":1}`}, []string{`{}`, `{"a":1,"b.c":1}`, `1`}},
		{`{"not":{"dependentRequired":{"a":["b"]}}}`, []string{`{"a":1}`}, []string{`{}`, `{"a":1,"b":1}`, `{"b":1}`}},
		{`{"not":{"items":{"type":"integer"},"prefixItems":[{"type":"string"}]}}`, []string{`[1]`, `["a","b"]`, `["a",1,"b"]`}, []string{`[]`, `["a"]`, `["a",1,2]`, `{}`}},
		{`{"not":{"multipleOf":3},"type":"integer"}`, []string{`1`, `-2`, `10`, `3.1e1`}, []string{`0`, `3`, `-9`, `0.5`, `3e1`}},
		{`{"type":"number","not":{"type":"integer"}}`, []string{`1.5`, `1e-1`, `-0.25`}, []string{`1`, `1.0`, `1e3`, `150e-1`, `0`}},
		{`{"not":{"uniqueItems":true}}`, []string{`[1,1.0]`, `[1,2,{"a":1},{"a":1}]`}, []string{`[]`, `[1]`, `[1,2]`, `"x"`}},
		{`{"oneOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"array","items":{"type":"null"}}},"additionalProperties":false}]}`,
			[]string{`{"a":"x"}`, `{}`, `{"b":[null]}`, `{"a":"x","b":1}`}, []string{`{"a":1}`, `{"b":[1]}`, `{"c":1}`}},
		{`{"oneOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"string"}}}],"type":"object"}`,
			[]string{`{"a":1}`, `{"a":"x","b":1}`}, []string{`{}`, `{"a":"x","b":"y"}`, `{"a":1,"b":1}`}},
		{`{"oneOf":[{"type":"integer"},{"minimum":2,"type":"number"}]}`, []string{`1`, `2.5`, `-7`}, []string{`2`, `1.5`, `3`}},
		{`{"oneOf":[{"const":{"a":1}},{"type":"integer"},{"const":{"a":1}}]}`, []string{`1`}, []string{`{"a":1}`, `{}`}},
		{`{"not":{"oneOf":[{"const":{"a":1}},{"const":{"a":1}}]},"allOf":[{"type":"object","properties":{"x":{"maximum":12},"foo":{"type":"string","maxLength":2}},"required":["fo"]}]}`,
			[]string{`{"fo":1}`, `{"fo":{"a":1},"x":7}`}, []string{`{"x":7}`}},
		{`{"contains":{"type":"integer","minimum":5},"items":{"type":"integer"}}`, []string{`[5]`, `[1,2,9,3]`, `{}`}, []string{`[]`, `[1,2]`, `[5,"a"]`}},
		{`{"contains":{"const":1},"minContains":2,"maxContains":3}`, []string{`[1,1]`, `[1,2,1,3,1]`}, []string{`[1]`, `[]`, `[1,1,1,1]`, `[2,2]`}},
		{`{"contains":{"const":1},"minContains":0}`, []string{`[]`, `[2]`}, []string{}},
		{`{"not":{"contains":{"type":"string"}}}`, []string{`[]`, `[1,null]`}, []string{`["a"]`, `[1,"b"]`, `3`}},
		{`{"uniqueItems":true,"type":"array"}`, []string{`[]`, `[1,2]`, `[[1,2],[2,1]]`, `[{"a":1},{"a":2}]`, `["a","A"]`, `[0,false,null,"",[],{}]`},
			[]string{`[1,1]`, `[1,1.0]`, `[100,1e2]`, `[{"a":1,"b":2},{"b":2.0,"a":1}]`, `["a","\u0061"]`, `[0,-0]`, `[[[]],[[]]]`}},
		{`{"items":{"uniqueItems":true,"items":{"type":"integer"}}}`, []string{`[[1],[1]]`, `[[1,2],[2,1]]`}, []string{`[[1,1]]`, `[[1],[2,3,2]]`}},
		{`{"anyOf":[{"type":"object","properties":{"a":{"uniqueItems":true}},"required":["k"]},{"type":"object","properties":{"a":true}, "required":["l"]}]}`,
			[]string{`{"a":[1,1],"l":1}`, `{"a":[1,2],"k":1}`}, []string{`{"a":[1,1],"k":1}`, `{"a":[1,2]}`}},
		{`{"pattern":"^(?!-)[a-z-]+(?<!-)$"}`, []string{`"a-b"`, `"a"`}, []string{`"-a"`, `"a-"`, `"-"`}},
		{`{"pattern":"^(?=.*\\d)(?=.*[a-z]).{3,5}$"}`, []string{`"ab1"`, `"1--z"`}, []string{`"abc"`, `"123"`, `"a1"`, `"a12345"`}},
		{`{"pattern":"\\bfoo\\b"}`, []string{`"foo"`, `"a foo-b"`}, []string{`"foobar"`, `"afoo"`, `"fo"`}},
		{`{"pattern":"^(?:(?!ab)[a-z])*$"}`, []string{`""`, `"ba"`, `"aa"`}, []string{`"ab"`, `"xaby"`, `"aab"`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"http://json-schema.org/draft-07/schema#"}`,
			[]string{`{"type":["string","null"],"required":["a"]}`, `true`}, []string{`{"type":"text"}`, `{"required":["a","a"]}`, `{"minLength":-1}`, `1`}},
		{`{"$id":"x:list","$dynamicAnchor":"e","type":["array","integer"],"items":{"$dynamicRef":"#e"}}`, []string{`[1,[2]]`}, []string{`["a"]`, `[[null]]`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"integer"}],"additionalItems":{"type":"string"}}`, []string{`[1,"a"]`, `[]`}, []string{`["a"]`, `[1,2]`}},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"integer"}},"properties":{"x":{"$ref":"#/definitions/a","maximum":3}}}`, []string{`{"x":5}`}, []string{`{"x":"s"}`}},
	} {
		g, _, err := Schema([]byte(c.schema), SchemaOptions{Documents: true})
		if err != nil {
			if len(c.yes) > 0 || !strings.Contains(err.Error(), NothingValid) {
				t.Errorf("%s: %v", c.schema, err)
			}
			continue
		}
		for _, doc := range c.yes {
			if at, ok, err := g.Check([]byte(doc)); !ok || err != nil {
				t.Errorf("%s: %s is refused at %d: %v", c.schema, doc, at, err)
			}
		}
		for _, doc := range c.no {
			if at, ok, _ := g.Check([]byte(doc)); ok || at == len(doc) && strings.HasSuffix(doc, "\"a\":1") {
				t.Errorf("%s: %s is taken", c.schema, doc)
			}
		}
	}
}

// TestNoDeadEnds holds that what cannot be completed is refused at the first byte that leads there.
func TestNoDeadEnds(t *testing.T) {
	for _, c := range []struct{ schema, doc string }{ // the last byte is refused
		{`{"type":"integer","minimum":100,"maximum":199}`, `2`},
		{`{"type":"integer","multipleOf":50,"maximum":199}`, `16`},
		{`{"type":"integer"}`, `4.`}, {`{"type":"integer"}`, `4e`}, {`{"const":2.5}`, `2.6`}, {`{"type":"string"}`, `"\u004`}, {`{}`, `{  `}, {`{"format":"date"}`, `"\`},
		{`{"type":"number","maximum":5}`, `5.1`},
		{`{"type":"string","pattern":"^a[bc]$","maxLength":2}`, `"ad`},
		{`{"type":"string","pattern":"^(foo|bar)$","not":{"const":"foo"}}`, `"f`},
		{`{"type":"string","maxLength":3,"minLength":5}`, `"`},
		{`{"type":"object","properties":{"a":false}}`, `{"`}, {`{"type":"object","properties":{"ab":{}}}`, `{"b`},
		{`{"type":"object","properties":{"ab":false,"ac":{}},"additionalProperties":false}`, `{"ab`},
		{`{"type":"object","maxProperties":1,"required":["ab"]}`, `{"b`},
		{`{"type":"array","items":false}`, `[1`},
		{`{"type":"array","items":{"type":"integer"},"maxItems":1}`, `[1,`},
		{`{"type":"object","propertyNames":{"maxLength":2}}`, `{"abc`},
		{`{"type":"object","propertyNames":{"enum":["foo","bar"]}}`, `{"bar":1,"b`},
		{`{"type":"object","propertyNames":{"enum":["foo","bar"]}}`, `{"bar":1,"foo":2,`},
		{`{"type":"object","patternProperties":{"^(a|bc)$":{},"^x":{}},"additionalProperties":false}`, `{"bc":1,"b`},
		{`{"type":"object","patternProperties":{"^(foo|x.*)$":{}},"additionalProperties":false}`, `{"foo":1,"f`},
		{`{"type":"object","propertyNames":{"maxLength":1}}`, `{"a":1,"a`},
		{`{"type":"object","propertyNames":{"pattern":"^[a-f]?.$"},"patternProperties":{"^.[^x]":false}}`, `{"ax":1,"b":2,"a":3,"a`},
		{`{"anyOf":[{"type":"object","minProperties":3,"maxProperties":1},{"type":"null"}]}`, `{`},
		{`{"type":"array","uniqueItems":true,"items":{"enum":["a","b"]}}`, `["a","b",`},
		{`{"type":"array","uniqueItems":true,"items":{"enum":["a","ab"]}}`, `["a","a"`},
		{`{"type":"array","uniqueItems":true,"items":{"enum":["a","b"]},"minItems":2}`, `["b","b`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"boolean"}}`, `[true,t`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"integer","minimum":9,"maximum":10}}`, `[9,9`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}}`, `[{"a":"x"},{"a":"x"`},
		{`{"type":"array","uniqueItems":true,"items":{"anyOf":[{"type":"string"},{"type":"array","items":{"const":1},"minItems":1,"maxItems":1}]}}`, `[[1],[`},
		{`{"type":"array","uniqueItems":true,"items":{"type":"array","prefixItems":[{"type":"string"},{"const":1}],"minItems":2,"maxItems":2}}`, `[["a",1],["a"`},
		{`{"type":"array","items":{"enum":[1,2]},"contains":{"const":2},"maxItems":2}`, `[1,1`},
		{`{"type":"array","contains":{"const":2},"maxContains":1,"items":{"const":2}}`, `[2,`},
		{`{"type":"object","not":{"patternProperties":{"^a":{"type":"integer"}}},"maxProperties":1,"minProperties":1}`, `{"b`},
		{`{"type":"string","pattern":"^(?!ab)a"}`, `"ab`},
	} {
		g, _, err := Schema([]byte(c.schema), SchemaOptions{})
		if err != nil {
			if !strings.Contains(err.Error(), NothingValid) || !strings.Contains(c.schema, "minLength") {
				t.Errorf("%s: %v", c.schema, err)
			}
			continue
		}
		if at, _, _ := g.Check([]byte(c.doc)); at != len(c.doc)-1 {
			t.Errorf("%s: %s is refused at %d", c.schema, c.doc, at)
		}
	}
}

// TestRefused names what is not supported.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ schema, keyword, path string }{
		{`{"unevaluatedProperties":false}`, "unevaluatedProperties", ""},
		{`{"properties":{"a":{"unevaluatedItems":{"type":"string"}}}}`, "unevaluatedItems", "/properties/a"},
		{`{"$ref":"https://example.com/other.json"}`, "$ref", ""},
		{`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, "$ref", ""},
		{`{"$defs":{"x":{"$id":"x:x","$dynamicAnchor":"a"},"y":{"$id":"x:y","$dynamicAnchor":"a"}},"$ref":"x:x","not":{"$dynamicRef":"x:y#a"}}`, "$dynamicRef", "/not"},
		{`{"not":{"uniqueItems":true,"maxItems":3},"maxItems":4}`, "uniqueItems", ""},
		{`{"uniqueItems":true,"items":{"type":"object","properties":{"a":{"enum":[1,2]}},"additionalProperties":false}}`, "uniqueItems", ""},
		{`{"items":{"pattern":"(?<=ab)b"}}`, "pattern", "/items"},
		{`{"pattern":"(a)\\1"}`, "pattern", ""},
		{`{"patternProperties":{"(?<a>x)\\k<a>":{}}}`, "patternProperties", ""},
		{`{"$schema":"https://example.com/mine"}`, "$schema", ""},
	} {
		_, _, err := Schema([]byte(c.schema), SchemaOptions{})
		var e *SchemaError
		if !errors.As(err, &e) || !errors.Is(err, errors.ErrUnsupported) || e.Keyword != c.keyword || e.Path != c.path {
			t.Errorf("%s: %v", c.schema, err)
		}
	}
	list := Refused([]byte(`{"unevaluatedItems":false,"$defs":{"a":{"unevaluatedProperties":false}}}`))
	if len(list) != 2 || list[0].Keyword != "unevaluatedItems" || list[1].Path != "/$defs/a" {
		t.Errorf("all that is refused: %v", list)
	}
}

// TestWrong are schemas that are none.
func TestWrong(t *testing.T) {
	for _, s := range []string{``, `[`, `3`, `{"type":"text"}`, `{"type":3}`, `{"minimum":"1"}`, `{"minLength":-1}`, `{"pattern":"("}`, `{"pattern":3}`,
		`{"required":"a"}`, `{"enum":1}`, `{"properties":[]}`, `{"$ref":"#/nowhere"}`, `{"$ref":"#"}`, `{"allOf":[{"$ref":"#"}]}`, `{"items":[{}]}`,
		`{"multipleOf":0}`, `{"anyOf":[]}`, `{"anyOf":[1]}`, `{} {}`, `{"minimum":1e99999}`} {
		if _, _, err := Schema([]byte(s), SchemaOptions{}); err == nil || errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", s, err)
		}
	}
}

// TestHostile holds that schemas made to take long do not.
func TestHostile(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 400) + `{}` + strings.Repeat(`}`, 400)
	var refs, union, product, needs, names, nested strings.Builder
	refs.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)
	for i := range 3000 {
		fmt.Fprintf(&refs, `"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	refs.WriteString(`"d3000":{"type":"string"}}}`)
	union.WriteString(`{"anyOf":[`)
	names.WriteString(`{"type":"object","properties":{`)
	needs.WriteString(`{"type":"object","dependentRequired":{`)
	for i := range 1000 {
		fmt.Fprintf(&union, `{"type":"object","properties":{"k":{"pattern":"^x%d.*y%d"}},"required":["a%d"]},`, i, i, i)
		fmt.Fprintf(&names, `"n%d":{"type":"integer"},`, i)
		fmt.Fprintf(&needs, `"n%d":["n%d"],`, i, i+1)
	}
	union.WriteString(`{}]}`)
	names.WriteString(`"z":{}}}`)
	needs.WriteString(`"z":["n0"]},"required":["z"]}`)
	product.WriteString(`{"allOf":[`)
	for i := range 40 {
		fmt.Fprintf(&product, `{"anyOf":[{"minLength":%d},{"maxLength":%d},{"pattern":"a{%d}"}]},`, i, i, i)
	}
	product.WriteString(`{}]}`)
	nested.WriteString(strings.Repeat(`{"anyOf":[{"type":"string"},`, 300) + "{}" + strings.Repeat("]}", 300))
	for name, s := range map[string]string{
		"deep": deep, "refs": refs.String(), "union": union.String(), "product": product.String(), "names": names.String(), "needs": needs.String(), "nested": nested.String(),
		"exponential": `{"type":"string","pattern":"^(([ab]*a[ab]{300})|([ab]*b[ab]{300}))$","minLength":1000}`,
		"counts":      `{"type":"string","pattern":"((a{1,1000}){1,1000}){1,1000}$","maxLength":100000}`,
		"both":        `{"allOf":[{"pattern":"^(.{5}|.{7})*$"},{"pattern":"^(.{11}|.{13})*$"},{"pattern":"^(.{17}|.{19})*$"},{"not":{"pattern":"^(a|b|ab)*$"}}],"minLength":5000}`,
		"large":       `{"enum":["` + strings.Repeat(`a","b`, 100000) + `"]}`,
		"huge":        `{"description":"` + strings.Repeat("x", MaxSource) + `"}`,
		"brackets":    strings.Repeat("[", 100000),
		"multiple":    `{"type":"integer","multipleOf":` + strings.Repeat("7", 390) + `}`,
	} {
		runtime.GC()
		began, before := time.Now(), heap()
		most := before
		stop, sampled := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(sampled)
			for {
				select {
				case <-stop:
					return
				case <-time.After(5 * time.Millisecond):
					most = max(most, heap())
				}
			}
		}()
		g, _, err := Schema([]byte(s), SchemaOptions{})
		if err == nil {
			m := g.Match(tiny())
			m.Mask()
			g.Check([]byte(`{"n1":3,"n2":4,"k":"x1abababababababababy1"}`))
			g.Check([]byte(`"` + strings.Repeat("ab", 2000) + `"`))
		}
		if took := time.Since(began); took > 20*time.Second { // 5 s on a machine that does nothing else
			t.Errorf("%s took %v: %v", name, took, err)
		}
		close(stop)
		<-sampled
		if used := most - before; used > 256<<20 {
			t.Errorf("%s took %d MiB: %v", name, used>>20, err)
		}
		t.Logf("%s: %d MiB: %v: %.150s", name, (most-before)>>20, time.Since(began).Round(time.Millisecond), fmt.Sprint(err))
	}
}

// heap is the memory that is in use, with what is not collected yet.
func heap() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// tiny has a token for every byte, one of two bytes, and one that ends.
func tiny() *Vocabulary {
	var pieces []string
	for b := range 256 {
		pieces = append(pieces, string([]byte{byte(b)}))
	}
	return NewVocabulary(append(pieces, "\":", "\xff<end>"), []int32{257})
}
