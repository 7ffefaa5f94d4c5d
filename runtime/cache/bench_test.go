package cache

import (
	"fmt"
	"testing"
)

// BenchmarkTurn is what the tree takes of a turn behind 100,000 tokens in pieces of 128, as the engine asks it: with
// each of 128 holders at the end of a conversation of its own, or of one that all share but for its end.
func BenchmarkTurn(b *testing.B) {
	const holders, piece, depth = 128, 128, 100000 / 128
	for _, shared := range []bool{false, true} {
		for _, recurrent := range []bool{false, true} {
			b.Run(fmt.Sprintf("shared=%t,recurrent=%t", shared, recurrent), func(b *testing.B) {
				o := Options{Holders: holders, Recurrent: recurrent, StateBytes: 2 * holders}
				for i := range depth + 10 {
					o.Cuts, o.Costs = append(o.Cuts, i*piece), append(o.Costs, float64(i)*1e-2)
				}
				tree := New(o)
				sound := func(int, int) bool { return true }
				prompts := make([][]int32, holders)
				turn := func(holder int) {
					prompt, now := prompts[holder], float64(b.N)
					h := tree.Match("", prompt, -1, sound)
					for i := range holders { // place
						tree.Loss(i, h, now)
						tree.Common(i, h)
					}
					tree.Match("", prompt, holder, sound) // room
					h = tree.Match("", prompt, holder, sound)
					tree.Begin(holder, "", h, now)
					for tree.At(holder)+piece < len(prompt) {
						tree.Extend(holder, prompt, now)
						if recurrent && (tree.At(holder)%(32*piece) == 0 || tree.At(holder)+2*piece >= len(prompt)) && !tree.HasState(holder) {
							tree.Keep(holder, &fakeState{bytes: 1}, now)
						}
					}
				}
				for i := range prompts {
					prompts[i] = make([]int32, depth*piece+1)
					if !shared {
						prompts[i][0] = int32(i)
					}
					prompts[i][(depth-20)*piece] = int32(i)
					turn(i)
				}
				n := 0
				for b.Loop() {
					i := n % holders
					n++
					if prompts[i][(depth-1)*piece]++; n%2 == 0 { // the next one finds all but the last piece
						prompts[i][(depth-3)*piece]++
					}
					turn(i)
				}
			})
		}
	}
}
