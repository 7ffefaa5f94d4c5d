package engine

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/text"
)

// TestReply compares what comes out piece by piece, at any grouping of the tokens, with the text up to the
// first stop: nothing of a stop comes out, whole code points do, and the tokens are those of the text.
func TestReply(t *testing.T) {
	pieces := []string{"a", "b", "ab", "aba", "Ã", "©", "â", "Ĥ", "¬", "bb"} // é is 2 bytes, € 3
	tok, err := text.New(plans.Vocab{Model: "gpt2", Pre: "qwen2", Tokens: pieces})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		ids := rapid.SliceOfN(rapid.Int32Range(0, int32(len(pieces)-1)), 0, 30).Draw(t, "ids")
		stops := rapid.SliceOfN(rapid.SampledFrom([]string{"abab", "bb", "é", "aé", "€", "ba€", "bab", ""}), 0, 3).Draw(t, "stops")
		all := tok.Decode(ids, false)
		whole := map[int]bool{len(all): true} // where code points begin
		for i := range all {
			whole[i] = true
		}
		r := newReply(tok, &Request{Stops: stops})
		var got strings.Builder
		var tokens []Token
		stopped := false
		for _, id := range ids {
			stopped = r.add(Token{ID: id, Text: tok.Piece(id, false)}, false)
			if stopped {
				break
			}
			if rapid.Bool().Draw(t, "taken") {
				ev := r.take(false)
				got.WriteString(ev.Text)
				tokens = append(tokens, ev.Tokens...)
				if !whole[got.Len()] {
					t.Fatalf("%q of %q is cut", got.String(), all)
				}
			}
		}
		ev := r.take(true)
		got.WriteString(ev.Text)
		tokens = append(tokens, ev.Tokens...)

		first, stop := -1, ""
		for _, s := range stops {
			if i := strings.Index(all, s); s != "" && i >= 0 && (first < 0 || i < first) {
				first, stop = i, s
			}
		}
		want := all
		if first >= 0 {
			want = all[:first]
		}
		// A stop that is seen earlier, in fewer tokens, counts before one that begins earlier.
		if stopped != (first >= 0) {
			t.Fatalf("%q with stops %q: stopped %v", all, stops, stopped)
		}
		if stopped && (r.stop == stop) != (got.String() == want) && !strings.HasPrefix(all, got.String()+r.stop) {
			t.Fatalf("%q with stops %q: %q before %q, want %q before %q", all, stops, got.String(), r.stop, want, stop)
		}
		if !stopped && got.String() != want {
			t.Fatalf("%q with stops %q: %q", all, stops, got.String())
		}
		for i, x := range tokens {
			if x.ID != ids[i] {
				t.Fatalf("token %d is %d, want %d", i, x.ID, ids[i])
			}
		}
		length := 0
		for _, x := range tokens {
			length += len(x.Text)
		}
		if last := len(tokens) - 1; length < len(got.String()) || last >= 0 && stopped && length-len(tokens[last].Text) >= len(got.String()) && tokens[last].Text != "" {
			t.Fatalf("%d tokens of %d bytes for %q", len(tokens), length, got.String())
		}
	})
}

// TestHiddenStops: stops are not looked for in reasoning that nobody sees, in the white space behind it, and
// across its end; they are in what follows, and in reasoning that is a part of the answer.
func TestHiddenStops(t *testing.T) {
	tok, err := text.New(plans.Vocab{Model: "gpt2", Pre: "qwen2", Tokens: []string{"a", "b", "c", "Ċ", "Ċb"}})
	if err != nil {
		t.Fatal(err)
	}
	const a, b, c, line, lineB = 0, 1, 2, 3, 4
	for _, x := range []struct {
		thought, answer []int32
		stops           []string
		hidden          bool
		want, stop      string
	}{
		{[]int32{a, b, c}, []int32{b, a, b, c}, []string{"abc"}, true, "abcb", "abc"},
		{[]int32{a, b, c}, []int32{b, a, b, c}, []string{"abc"}, false, "", "abc"},
		{[]int32{a, b}, []int32{c, a}, []string{"bc"}, true, "abca", ""},
		{[]int32{a}, []int32{line, line, b, line, line, c}, []string{"\n\n"}, true, "a\n\nb", "\n\n"},
		{[]int32{a}, []int32{line, lineB, c}, []string{"\nb", "c"}, true, "a\n\nb", "c"},
		{nil, []int32{line, line, b}, []string{"\n\n"}, true, "", "\n\n"},
	} {
		r := newReply(tok, &Request{Stops: x.stops, Reasoning: &Budget{Hidden: x.hidden}})
		got, stopped := "", false
		for i, id := range append(x.thought, x.answer...) {
			if stopped = r.add(Token{ID: id, Text: tok.Piece(id, false)}, i < len(x.thought)); stopped {
				break
			}
			got += r.take(false).Text
		}
		got += r.take(true).Text
		if got != x.want || stopped != (x.stop != "") || stopped && r.stop != x.stop {
			t.Errorf("%v %v %q: %q before %q, want %q before %q", x.thought, x.answer, x.stops, got, r.stop, x.want, x.stop)
		}
	}
}
