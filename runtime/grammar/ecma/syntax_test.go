package ecma

import "testing"

// TestValid holds what is a pattern, with what is not supported in one.
func TestValid(t *testing.T) {
	for _, s := range []string{
		``, `([abc])+\s+$`, `^a|b$`, `(?=a)b(?!c)`, `(?<=a)(?<!b)c`, `\bword\B`, `(a)\1`, `\1(a)`, `(?<n>a)\k<n>`, `\k<n>(?<n>a)`,
		`[\]\-a-z]`, `[^]`, `[]`, `a{2}`, `a{2,}`, `a{2,3}?`, `\p{L}\P{Script=Greek}`, `\p{sc=Grek}`, `\p{scx=Greek}`, `\p{Emoji}`,
		`\p{Lowercase_Letter}`, `\u{1f600}\ud83d\ude00\x41\cA\0`, `(?:a(b(c)))`, `\/\.`, `(?<$π>a)`,
	} {
		if !Valid(s) {
			t.Errorf("%s is refused", s)
		}
	}
	for _, s := range []string{
		`^(abc]`, `a)`, `(`, `[`, `[a`, `]`, `{`, `a{`, `a{1`, `}`, `*`, `a**`, `+a`, `a{3,2}`, `\`, `\a`, `\Z`, `\-`, `[z-a]`, `[\d-z]`, `(?a)`, `\2(a)`,
		`\k<n>`, `\k`, `(?<n>a)(?<n>b)`, `(?<1>a)`, `(?=a)*`, `(?<=a)+`, `\b+`, `^*`, `\p{Nothing}`, `\p{sc=None}`, `\pL`, `\01`, `\u{110000}`, `\u12`,
		`\c1`, `(?<n`,
	} {
		if Valid(s) {
			t.Errorf("%s is taken", s)
		}
	}
}
