package grammar

import (
	"strings"
	"testing"
)

const jsonGBNF = `
root   ::= object
value  ::= object | array | string | number | ("true" | "false" | "null") ws

object ::=
  "{" ws (
            string ":" ws value
    ("," ws string ":" ws value)*
  )? "}" ws

array  ::=
  "[" ws (
            value
    ("," ws value)*
  )? "]" ws

string ::=
  "\"" (
    [^"\\\x7F\x00-\x1F] |
    "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) # escapes
  )* "\"" ws

number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws

# Optional space: by convention, applied in this grammar after literal chars when allowed
ws ::= | " " | "\n" [ \t]{0,20}
`

func TestGBNF(t *testing.T) {
	for _, c := range []struct {
		grammar    string
		yes, no    []string
		unfinished []string
	}{
		{jsonGBNF, []string{`{}`, `{"a": [1, -2.5e3, {"b": null}], "c": "d\u00e9\n"}`}, []string{`[]`, `{"a" }`}, []string{`{"a": [`}},
		{`root ::= "a"*`, []string{"", "a", "aaaa"}, []string{"b", "ab"}, nil},
		{`root ::= ("ab" | "cd"){2,3} "!"?`, []string{"abcd", "ababab!", "cdab!"}, []string{"abababab"}, []string{"ab"}},
		{"root ::= a | # comment\n  b\na ::= \"x\" a \"y\" | \"\"\nb ::= [^a-w]+", []string{"", "xy", "xxyy", "x", "zz"}, []string{"a", "xxyya"}, nil},
		{`root ::= "(" root ")" root | ""`, []string{"", "()", "(())()"}, []string{")"}, []string{"(("}},
		{`root ::= . [\u4e00-\u4e02] "\U0001F600"`, []string{"é一😀"}, []string{"é丁a", "ab"}, []string{"é丁"}},
		{`root ::= (x y){2}` + "\nx ::= \"a\" x | \"b\"\ny ::= \"c\" y | \"d\"", []string{"bdbd", "abcdbd"}, []string{"bb"}, []string{"bd"}},
		{`root ::= <think> [a-z]* </think> "."`, []string{"<think>abc</think>.", "\xff<think>\xff</think>."}, []string{"<thinks>"}, nil},
	} {
		g, err := GBNF(c.grammar)
		if err != nil {
			t.Errorf("%s: %v", c.grammar, err)
			continue
		}
		for _, s := range c.yes {
			if at, ok, err := g.Check([]byte(s)); !ok || err != nil {
				t.Errorf("%s: %q is refused at %d: %v", c.grammar, s, at, err)
			}
		}
		for _, s := range c.no {
			if at, ok, _ := g.Check([]byte(s)); ok || at == len(s) {
				t.Errorf("%s: %q is taken", c.grammar, s)
			}
		}
		for _, s := range c.unfinished {
			if at, ok, _ := g.Check([]byte(s)); ok || at != len(s) {
				t.Errorf("%s: %q: taken %v, %d bytes", c.grammar, s, ok, at)
			}
		}
	}
}

func TestGBNFErrors(t *testing.T) {
	for _, c := range []struct{ grammar, want string }{
		{"", "no rule root"},
		{"rot ::= \"a\"", "no rule root"},
		{"root ::= a", "no rule a"},
		{"root ::= root \"a\" | \"b\"", "left-recursive"},
		{"root ::= a \"x\"\na ::= \"y\"? root | \"z\"", "left-recursive"},
		{"root ::= a\na ::= \"x\" a", "no text"},
		{"root ::= (a?)*\na ::= \"x\" a | \"y\"", "repeats without end"},
		{"root ::= \"a", "without an end"},
		{"root ::= [b-a]", "more to less"},
		{"root ::= \"a\"{3,2}", "more to less"},
		{"root ::= \"a\"{3000}", "at most 2000"},
		{"root ::= (\"a\"", "without a )"},
		{"root ::= \"\\q\"", "unknown escape"},
		{"root ::= <[12]>", "by number"},
		{"root ::= !<think>", "not supported"},
		{"root ::= \"a\" )", "not expected"},
		{"root = \"a\"", "::="},
		{"root ::= " + strings.Repeat("(", 1000), "groups"},
		{"root ::= \"\xff\"", "UTF-8"},
	} {
		_, err := GBNF(c.grammar)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, want %s", c.grammar, err, c.want)
		}
	}
}
