package markdown

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// show renders a text that comes in pieces of that many bytes, for rows of width cells.
func show(text string, piece, width int, o Options) string {
	var b strings.Builder
	o.Width = func() int { return width }
	r := New(&b, o)
	for len(text) > 0 {
		n := min(piece, len(text))
		r.Write([]byte(text[:n]))
		text = text[n:]
	}
	r.Close()
	return b.String()
}

var escapes = regexp.MustCompile("\x1b\\[[0-9;]*m")

// shorthand writes styles as people do: {b} bold, {i} italic, {c} code, {p} pale, {} none.
func shorthand(s string) string {
	for _, r := range [][2]string{
		{"\x1b[0;1;2m", "{bp}"}, {"\x1b[0;2;3m", "{ip}"}, {"\x1b[0;2;36m", "{cp}"}, {"\x1b[0;1m", "{b}"}, {"\x1b[0;3m", "{i}"}, {"\x1b[0;36m", "{c}"},
		{"\x1b[0;2m", "{p}"}, {"\x1b[0m", "{}"}, {"\x1b[34m", "{blue}"}, {"\x1b[32m", "{green}"}, {"\x1b[35m", "{purple}"}, {"\x1b[2m", "{pale}"},
	} {
		s = strings.ReplaceAll(s, r[0], r[1])
	}
	return s
}

func TestRender(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a line", "one two", "one two"},
		{"lines break between words", "one two three four five", "one two three\nfour five"},
		{"line breaks stay", "one\ntwo\n\nthree\n", "one\ntwo\n\nthree\n"},
		{"a long word", "see http://example.com/a/long/path now", "see\nhttp://example.com/a/long/path now"},
		{"wide characters", "日本語 日本語 日本語", "日本語 日本語\n日本語"},
		{"bold", "a **b c** d", "a {p}**{b}b c{bp}** {}d"},
		{"italic", "an *i* or _j_", "an {p}*{i}i{ip}* {}or {p}_{i}j{ip}_{}"},
		{"code", "use `a *b*` now", "use {p}`{c}a *b*{cp}`\n{}now"},
		{"stars that are none", "2 * 3 a*b snake_case", "2 * 3 a*b\nsnake_case"},
		{"not closed", "*a\nb", "{p}*{i}a{}\nb"},
		{"escaped", `\*a\* \`, `\*a\* \`},
		{"a heading", "## Two words\nx", "{b}## Two words{}\nx"},
		{"no heading", "#include", "#include"},
		{"items hang", "- one two three four", "{p}- {}one two\n  three four"},
		{"numbered", "10. one two three", "{p}10. {}one two\n    three"},
		{"a bold line is no item", "**Note** x", "{p}**{b}Note{bp}** {}x"},
		{"a rule", "---\nx", "{p}---{}\nx"},
		{"a quote", "> said one two three", "{p}> {}said one two\n  three"},
		{"a table", "| a | b | cccccc | d |\nx", "{p}| a | b | cccccc | d |{}\nx"},
		{"fenced code", "```go\nfunc f() { return 1 } // a\n```\nx y", "{p}```go{}\n{blue}func{} f() { {blue}return{} {purple}1{} } {pale}// a{}\n{p}```{}\nx y"},
		{"code in no language", "~~~\na  b `c` **d** eeeeeeee ffffff\n~~~", "{p}~~~{}\na  b `c` **d** eeeeeeee ffffff\n{p}~~~{}\n"},
		{"fences of four", "````\n```\n````\n", "{p}````{}\n```\n{p}````{}\n"},
		{"a comment over lines", "```c\nint x; /* a\nb */ int 'c' \"d\\\"\" don't\n```\n", "{p}```c{}\n{blue}int{} x; {pale}/* a{}\n{pale}b */{} {blue}int{} {green}'c'{} {green}\"d\\\"\"{} don{green}'{}t\n{p}```{}\n"},
		{"a raw string over lines", "```go\nx := `a\nb`\n```\n", "{p}```go{}\nx := {green}`a{}\n{green}b`{}\n{p}```{}\n"},
	} {
		for _, piece := range []int{1, 3, 1000} {
			if got := shorthand(show(c.text, piece, 14, Options{Styles: true})); got != c.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", c.name, piece, got, c.want)
			}
		}
	}
}

func TestDim(t *testing.T) {
	if got := shorthand(show("one *two* three\n# four", 1, 10, Options{Styles: true, Dim: true})); got != "{p}one *two*\nthree{}\n{p}# four{}" {
		t.Errorf("%q", got)
	}
}

// TestNothingIsLost checks that only breaks between words change, however the text comes, and that nothing is an escape
// sequence without styles.
func TestNothingIsLost(t *testing.T) {
	parts := []string{"a", "word", " ", "  ", "\n", "\n\n", "*", "**", "_", "`", "```", "```go\n", "# ", "- ", "1. ", "> ", "| ", "---", "日本", "é", "\\", "if x { }", "\"s"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(parts), 0, 40).Draw(t, "text"), "")
		width := rapid.SampledFrom([]int{0, 5, 20}).Draw(t, "width")
		whole := show(text, 1<<20, width, Options{Styles: true})
		if bytewise := show(text, 1, width, Options{Styles: true}); bytewise != whole {
			t.Fatalf("byte by byte %q, at once %q", bytewise, whole)
		}
		plain := show(text, 7, width, Options{})
		if strings.Contains(plain, "\x1b") {
			t.Fatalf("%q", plain)
		}
		for _, got := range []string{plain, escapes.ReplaceAllString(whole, "")} {
			if a, b := strings.Join(strings.Fields(got), " "), strings.Join(strings.Fields(text), " "); a != b {
				t.Fatalf("%q became %q", text, got)
			}
			if width == 0 && strings.TrimRight(got, " \t\n") != strings.TrimRight(text, " \t\n") {
				t.Fatalf("%q became %q", text, got)
			}
		}
	})
}
