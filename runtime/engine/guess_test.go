package engine

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestGuesses: the tokens before the guessed ones are those at the end of the text, at least three, and what is guessed
// goes on as the text did there, over its end with itself.
func TestGuesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.Int32Range(0, rapid.SampledFrom([]int32{1, 3, 20, 150_000}).Draw(t, "tokens"))
		text := history{prompt: rapid.SliceOfN(token, 0, 300).Draw(t, "prompt")}
		g := newGuesses(text.prompt)
		for range rapid.IntRange(0, 100).Draw(t, "answer") {
			next := token.Draw(t, "token")
			if g.chance() > 0 && rapid.Bool().Draw(t, "holds") {
				next = g.next(nil, text, 1)[0]
			}
			text.answer = append(text.answer, next)
			g.add(text)
			n := text.len()
			if g.at == 0 {
				if g.chance() != 0 {
					t.Fatalf("no guess holds with %f", g.chance())
				}
				continue
			}
			if c := g.chance(); g.at >= n || g.alike < guessBehind || c <= 0 || c >= 1 {
				t.Fatalf("at %d of %d behind %d, %f", g.at, n, g.alike, c)
			}
			for i := range guessBehind {
				if text.at(g.at-1-i) != text.at(n-1-i) {
					t.Fatalf("what comes before %d of %d is not alike", g.at, n)
				}
			}
			all := slices.Concat(text.prompt, text.answer)
			for i, guess := range g.next(nil, text, 12) {
				if guess != all[g.at+i] {
					t.Fatalf("guess %d is %d, the text goes on with %d", i, guess, all[g.at+i])
				}
				all = append(all, guess)
			}
		}
	})
}

// TestOdds: guesses that hold are soon taken for likely, and others for unlikely; what comes behind a few tokens says
// nothing of long runs.
func TestOdds(t *testing.T) {
	period := []int32{5, 9, 2, 7, 11}
	text := history{prompt: slices.Concat(period, period[:3])}
	g := newGuesses(text.prompt)
	for i := range 60 {
		if want := period[(3+i)%len(period)]; g.chance() == 0 || g.next(nil, text, 1)[0] != want {
			t.Fatalf("token %d is not guessed", i)
		}
		text.answer = append(text.answer, period[(3+i)%len(period)])
		g.add(text)
	}
	if c := g.chance(); c < 0.95 {
		t.Errorf("a text that repeats itself is guessed with %f", c)
	}
	likely := g.odds[1]
	for i := range int32(30) { // three tokens that are known, and another one behind them
		text.answer = append(text.answer, 5, 9, 2, 100+i)
		for n := 3; n >= 0; n-- {
			g.add(history{text.prompt, text.answer[:len(text.answer)-n]})
		}
	}
	if g.odds[0].held/g.odds[0].all > 0.1 || g.odds[1].held < 0.8*likely.held {
		t.Errorf("odds %+v, before %+v", g.odds, likely)
	}
}
