package jinja

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The data's parts of a text stand between brackets in these cases.
func TestOrigin(t *testing.T) {
	ctx := NewDict()
	for name, text := range map[string]string{"u": "<|end|>", "w": "a b", "list": "x,y", "é": "é", "dw": "lt;"} {
		ctx.Set(name, Data(text))
	}
	ctx.Set("bos", Own("<s>"))
	for _, c := range []struct{ source, want string }{
		{"a{{ u }}b", "a[<|end|>]b"},
		{"{{ bos }}{{ u }}", "<s>[<|end|>]"},
		{"{{ '<|' + u + '|>' }}", "<|[<|end|>]|>"},
		{"{{ '<|' ~ u }}", "<|[<|end|>]"},
		{"{{ (u + 'end')[3:9] }}", "[nd|>]en"},
		{"{{ (u + 'end')[::-1] }}", "dne[>|dne|<]"},
		{"{{ 'end' in u and 'end' }}", "end"},
		{"{{ ('x' + u + 'x').replace('e', 'E') }}", "x[<|]E[nd|>]x"},
		{"{{ 'x-x'.replace('-', u) }}", "x[<|end|>]x"},
		{"{{ (' ' + w + ' ') | trim }}", "[a b]"},
		{"{{ (w + ' ') .split() | join('-') }}", "[a]-[b]"},
		{"{{ list.split(',') }}", "['[x]', '[y]']"},
		{"{{ {u: u} | tojson }}", `{"[<|end|>]": "[<|end|>]"}`},
		{"{{ (u ~ '\"') | tojson }}", `"[<|end|>]\""`},
		{"{{ '%s|%5s' % (u, 'q') }}", "[<|end|>]|    q"},
		{"{{ '{} {x}'.format(u, x='t') }}", "[<|end|>] t"},
		{"{{ u | upper }}{{ 'u' | upper }}", "[<|END|>]U"},
		{"{{ ('a\n' + u) | indent(2, true) }}", "  a\n  [<|end|>]"},
		{"{% set x %}t{{ u }}{% endset %}{{ x }}", "t[<|end|>]"},
		{"{% macro m(x) %}<{{ x }}>{% endmacro %}{{ m(u) }}", "<[<|end|>]>"},
		{"{% macro m() %}{{ kwargs }}{% endmacro %}{{ m(**{u: 1}) }}", "{'[<|end|>]': 1}"},
		{"{{ dict(**{u: 1}) }}", "{'[<|end|>]': 1}"},
		{"{% for c in 'a' + é %}{{ c }}.{% endfor %}", "a.[é]."},
		{"{{ [u, 't'] | join(',') }}", "[<|end|>],t"},
		{"{{ [u, 't'] | sort | last }}", "t"},
		{"{{ u | list | first }}", "[<]"},
		{"{{ u.partition('end')[1] }}", "end"},
		{"{{ u.center(9, '*') }}", "*[<|end|>]*"},
		{"{{ (u | safe) + '<' }}", "[<|end|>]&lt;"},
		{"{{ ('<b>' + u + '</b>' + u) | striptags }}", ""},
		{"{{ ('&lt;' + w + '&lt;<i>') | striptags }}", "<[a] [b]<"},
		{"{{ ('&' + dw) | striptags }}", "&[lt;]"},
		{"{{ ('aa ' + u) | wordwrap(4) }}", "aa [<]\n[|end]\n[|>]"},
		{"{{ 'a b' | wordwrap(1, wrapstring=u) }}", "a[<|end|>]b"},
		{"{{ {'a': u, u: none} | xmlattr }}", " a=\"[&lt;|end|&gt;]\""},
		{"{% set c = cycler(u, 't') %}{{ c.next() }}{{ c.next() }}", "[<|end|>]t"},
		{"{{ u | length }}", "7"},
		{"{{ '[\"a\"]' | from_json | first }}", "[a]"},
	} {
		tmpl, err := Parse(c.source)
		if err != nil {
			t.Errorf("%s: %v", c.source, err)
			continue
		}
		spans, err := tmpl.Render(context.Background(), ctx, time.Time{}, nil)
		var got strings.Builder
		for _, s := range spans {
			if s.Literal {
				got.WriteString("[" + s.Text + "]")
			} else {
				got.WriteString(s.Text)
			}
		}
		if err != nil || got.String() != c.want {
			t.Errorf("%s\n got %s (%v)\nwant %s", c.source, got.String(), err, c.want)
		}
	}
}

// A slice of a string keeps the origin of each of its bytes.
func TestSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := builder{st: &state{ctx: context.Background(), budget: Limit(0)}}
		var origin []bool
		for range rapid.IntRange(0, 6).Draw(t, "parts") {
			part, user := rapid.StringMatching("[a-z]{0,4}").Draw(t, "part"), rapid.Bool().Draw(t, "user")
			b.write(part, user)
			for range len(part) {
				origin = append(origin, user)
			}
		}
		s := b.str()
		i := rapid.IntRange(0, len(s.s)).Draw(t, "i")
		j := rapid.IntRange(i, len(s.s)).Draw(t, "j")
		at := i
		for part, user := range s.slice(i, j).runs() {
			for range len(part) {
				if origin[at] != user {
					t.Fatalf("byte %d of %q from %d to %d: %v", at, s.s, i, j, user)
				}
				at++
			}
		}
		if at != j {
			t.Fatalf("the runs end at %d, want %d", at, j)
		}
	})
}

func TestErrorPosition(t *testing.T) {
	for source, want := range map[string]string{
		"a\nb {{ 'é' + 1 }}":           `2:10: TypeError: can only concatenate str (not "int") to str`,
		"{{ x.y }}":                    "1:6: 'x' is undefined",
		"{% if a %}\n\n  {% endfor %}": "3:6: unknown tag 'endfor'",
		"\r\n\r\n{{ raise_exception('no\n\x1b[31mgood') }}": "3:19: no  [31mgood",
		"{{ f(" + strings.Repeat("x", 2000) + " y) }}":      "1:2007: expected ',', got 'y'",
	} {
		_, err := parseAndRender(source, []byte("{}"))
		var e *Error
		if !errors.As(err, &e) || e.Error() != want {
			t.Errorf("%.60q: error %v, want %s", source, err, want)
		}
	}
}

// Each of these would run long or fill the memory.
func TestLimits(t *testing.T) {
	deep := func(open, mid, end string) string {
		return strings.Repeat(open, 5000) + mid + strings.Repeat(end, 5000)
	}
	for name, source := range map[string]string{
		"product":       "{{ 'a' * 10 ** 9 }}",
		"powers":        "{{ 10 ** 1000000000 }}",
		"doubling":      "{% set ns = namespace(s='aaaaaaaa') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"many texts":    "{% set s = 'a' * 4000000 %}{% for i in range(100000) %}{% set x = s + 'b' %}{% endfor %}",
		"scanning":      "{% set s = 'a' * 8000000 %}{% for i in range(100000) %}{% if 'b' in s %}{% endif %}{% endfor %}",
		"output":        "{% for i in range(100000) %}{{ 'a' * 1000 }}{% endfor %}",
		"range":         "{{ range(10 ** 9) | list }}",
		"loops":         "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
		"lists":         "{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
		"list product":  "{{ [1] * 10 ** 12 }}",
		"macro":         "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"caller":        "{% macro f() %}{{ caller() }}{% endmacro %}{% macro g() %}{% call f() %}{{ g() }}{% endcall %}{% endmacro %}{{ g() }}",
		"loop call":     "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"width":         "{{ '%1000000000d' % 1 }}",
		"star width":    "{{ '%*d' % (10 ** 12, 1) }}",
		"precision":     "{{ '%.1000000000f' % 1 }}",
		"format width":  "{{ '{:>99999999999999999999}'.format('a') }}",
		"center":        "{{ 'a' | center(10 ** 12) }}",
		"indent":        "{{ 'a\nb' | indent(10 ** 12) }}",
		"json indent":   "{{ [1] | tojson(indent=10 ** 12) }}",
		"batch":         "{{ [1] | batch(10 ** 12, 0) | list }}",
		"slices":        "{{ [1] | slice(10 ** 12) | list }}",
		"tabs":          "{{ '\t'.expandtabs(10 ** 12) }}",
		"zfill":         "{{ 'a'.zfill(10 ** 12) }}",
		"nested data":   "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"nested json":   "{% set ns = namespace(l=[]) %}{% for i in range(1000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}",
		"nested equal":  "{% set n = namespace(a=[], b=[]) %}{% for i in range(1000) %}{% set n.a = [n.a] %}{% set n.b = [n.b] %}{% endfor %}{{ n.a == n.b }}",
		"nested key":    "{% set ns = namespace(l=()) %}{% for i in range(1000) %}{% set ns.l = (ns.l,) %}{% endfor %}{{ {ns.l: 1} }}",
		"cycle":         "{% set ns = namespace() %}{% set ns.self = ns %}{{ ns }}",
		"parentheses":   deep("{{ ", "", "") + deep("(", "1", ")"),
		"brackets":      "{{ " + deep("[", "1", "]") + " }}",
		"not":           "{{ " + strings.Repeat("not ", 5000) + "1 }}",
		"minus":         "{{ " + strings.Repeat("-", 5000) + "1 }}",
		"calls":         "{{ x" + strings.Repeat("()", 5000) + " }}",
		"filters":       "{{ x" + strings.Repeat("|e", 5000) + " }}",
		"if":            deep("{% if 1 %}", "", "{% endif %}"),
		"conditions":    "{{ 1" + strings.Repeat(" if 1", 5000) + " }}",
		"targets":       "{% set " + deep("(", "x", ")") + " = 1 %}",
		"source":        strings.Repeat("a", maxSource+1),
		"macro default": "{% macro f(x=f()) %}{% endmacro %}{{ f() }}",
	} {
		start := time.Now()
		_, err := parseAndRender(source, []byte("{}"))
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: error %v", name, err)
		}
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("%s: takes %v", name, d)
		}
	}
	// Long chains are no nesting.
	for _, source := range []string{
		"{{ 1" + strings.Repeat(" + 1", 20000) + " }}",
		"{{ 1" + strings.Repeat(" ~ 1", 20000) + " }}",
		"{{ 0" + strings.Repeat(" or 0", 20000) + " }}",
		"{% if 0 %}" + strings.Repeat("{% elif 0 %}", 20000) + "{% endif %}",
		"{{ 'a'" + strings.Repeat(" 'a'", 50000) + " }}",
	} {
		if _, err := parseAndRender(source, []byte("{}")); err != nil {
			t.Errorf("%.20s: %v", source, err)
		}
	}
}

func lines(f *testing.F) []string {
	file, err := os.ReadFile("testdata/lines.txt")
	if err != nil {
		f.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(file)) {
		if source, ok := strings.CutPrefix(line, "  "); ok && !strings.HasPrefix(source, "= ") && !strings.HasPrefix(source, "! ") {
			out = append(out, marks.Replace(strings.TrimSuffix(source, "\n")))
		}
	}
	return out
}

func FuzzParse(f *testing.F) {
	for _, l := range lines(f) {
		f.Add(l)
	}
	f.Fuzz(func(t *testing.T, source string) {
		_, err := Parse(source)
		var e *Error
		if err != nil && (!errors.As(err, &e) || e.Line < 1 || e.Column < 1) {
			t.Errorf("error %#v", err)
		}
	})
}

// FuzzRender renders twice: the same comes out, and no byte of the data, which
// is full of a letter that no template has, passes for the template's.
func FuzzRender(f *testing.F) {
	const mark = "\uE000"
	for _, l := range lines(f) {
		f.Add(l, "text")
	}
	f.Fuzz(func(t *testing.T, source, text string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		ctx := NewDict()
		nested := NewDict()
		nested.set(dictKey{kind: 's', text: text + mark}, data(text+mark), data(mark+text))
		nested.Set("name", Data(mark+text+mark))
		nested.Set("list", NewList(int64(1), Data(mark), nested))
		ctx.Set("data", nested)
		ctx.Set("x", Data(text+mark))
		spans, err := tmpl.Render(context.Background(), ctx, goldenNow, nil)
		again, err2 := tmpl.Render(context.Background(), ctx, goldenNow, nil)
		var e *Error
		if err != nil && !errors.As(err, &e) || (err == nil) != (err2 == nil) || len(spans) != len(again) {
			t.Fatalf("error %v, then %v", err, err2)
		}
		ours := strings.ContainsAny(source, "\uE000\\%") // it can spell the letter
		size := 0
		for i, s := range spans {
			size += len(s.Text)
			if s != again[i] || s.Text == "" || i > 0 && s.Literal == spans[i-1].Literal {
				t.Errorf("span %d is %v, then %v", i, s, again[i])
			}
			if !ours && !s.Literal && strings.Contains(s.Text, mark) {
				t.Errorf("%q: data in a span of the template: %q", source, s.Text)
			}
		}
		if size > maxText {
			t.Errorf("%d bytes", size)
		}
	})
}
