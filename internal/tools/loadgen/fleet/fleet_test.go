package fleet

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// tiny is a server whose times are easy to add up: a token takes 1 ms, two at once 1.5, a piece of 10 tokens of a
// prompt 10 ms, up to 4 tokens of it 5 ms.
func tiny(slots int) *Steps {
	return &Steps{Slots: slots, Ctx: 1000, Times: []Time{
		{"decode", 1, 0, 1}, {"decode", 2, 0, 1.5}, {"prefill", 4, 0, 5}, {"prefill", 10, 0, 10},
	}}
}

func near(t *testing.T, what string, have []float64, want ...float64) {
	t.Helper()
	ok := len(have) == len(want)
	for i := 0; ok && i < len(want); i++ {
		ok = math.Abs(have[i]-want[i]/1e3) < 1e-9
	}
	if !ok {
		t.Errorf("%s: %v s, want %v ms", what, have, want)
	}
}

// TestByHand: a conversation of two turns on one server with one slot. The first prompt of 14 tokens takes a step of 10
// ms and one of 5; its token comes at 15 ms, the others at 16 and 17. The second has come at 2 ms and waits for the
// slot until 17. Of its 20 tokens the slot holds 14, a piece of 10 of them counts; the other 10 take 10 ms.
func TestByHand(t *testing.T) {
	r, err := Trace(tiny(1), Options{Servers: 1, Router: Prefix, ITL: .05}, []Request{
		{At: .002, Conversation: "a", Prompt: 20, Answer: 1}, {At: 0, Conversation: "a", Prompt: 14, Answer: 3},
		{At: 3, Conversation: "b", Prompt: 990, Answer: 11},
	})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "TTFT", r.TTFT, 15, 25)
	near(t, "ITL", r.ITL, 1, 1)
	near(t, "seconds", []float64{r.Seconds}, 27)
	if r.Requests != 2 || r.Refused != 1 || r.Prompt != 34 || r.Output != 4 || r.Cached != 10 || r.MostWaiting != 1 {
		t.Errorf("%+v", r)
	}
}

// TestTogether: two sequences decode in one step; a prompt that comes waits for the step under way. a's token comes at
// 10 ms, behind its prompt, and with the step's decoding at 11; b has come at 1 ms. Its piece takes until 21, and both
// have a token at 22.5.
func TestTogether(t *testing.T) {
	both := []Request{{At: 0, Conversation: "a", Prompt: 10, Answer: 4}, {At: .001, Conversation: "b", Prompt: 10, Answer: 2}}
	r, err := Trace(tiny(2), Options{Servers: 1, Router: Prefix, ITL: .05}, both)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "TTFT", r.TTFT, 10, 20)
	near(t, "ITL", r.ITL, 1, 11.5, 1.5, 1)
}

// TestRouter: a router that looks at prefixes sends the second turn where the first is, and the third conversation away
// from those that are busy; one by turns does not.
func TestRouter(t *testing.T) {
	turns := []Request{
		{At: 0, Conversation: "a", Prompt: 40, Answer: 1}, {At: .001, Conversation: "b", Prompt: 40, Answer: 1},
		{At: .5, Conversation: "b", Prompt: 50, Answer: 1}, {At: .6, Conversation: "a", Prompt: 50, Answer: 1},
	}
	for router, want := range map[Router]int{Prefix: 80, RoundRobin: 0} {
		r, err := Trace(tiny(1), Options{Servers: 2, Router: router, ITL: .05}, turns)
		if err != nil {
			t.Fatal(err)
		}
		if r.Cached != want || !slices.Equal(r.Shares, []int{2, 2}) {
			t.Errorf("%s: %d tokens are found, want %d; servers have %d", router, r.Cached, want, r.Shares)
		}
	}
}

// TestSimulate: the same seed gives the same, each request is answered whole, no gap between tokens is shorter than a
// step, and what is found is whole pieces.
func TestSimulate(t *testing.T) {
	found := 0
	rapid.Check(t, func(rt *rapid.T) {
		m := Mix{Conversations: rapid.IntRange(1, 30).Draw(rt, "conversations"), Rate: rapid.Float64Range(.1, 200).Draw(rt, "rate"),
			Turns: rapid.IntRange(1, 5).Draw(rt, "turns"), Think: rapid.Float64Range(0, 2).Draw(rt, "think"),
			Systems: rapid.IntRange(0, 3).Draw(rt, "systems"), SystemTokens: rapid.IntRange(0, 60).Draw(rt, "system"),
			Prompt: rapid.IntRange(1, 40).Draw(rt, "prompt"), Answer: rapid.IntRange(1, 30).Draw(rt, "answer"), Seed: rapid.Uint64().Draw(rt, "seed")}
		o := Options{Servers: rapid.IntRange(1, 4).Draw(rt, "servers"), Router: rapid.SampledFrom([]Router{Prefix, RoundRobin}).Draw(rt, "router"), ITL: .02}
		s := tiny(rapid.IntRange(1, 4).Draw(rt, "slots"))
		r, err := m.Simulate(s, o)
		if err != nil {
			rt.Fatal(err)
		}
		if again, _ := m.Simulate(s, o); !reflect.DeepEqual(r, again) {
			rt.Fatal("the same seed gives something else")
		}
		shares := 0
		for _, n := range r.Shares {
			shares += n
		}
		n := m.Conversations * m.Turns
		if r.Requests != n || r.Refused != 0 || shares != n || r.Output != n*m.Answer || len(r.TTFT) != n || len(r.ITL) != n*(m.Answer-1) || r.Cached%10 != 0 || r.Cached >= r.Prompt {
			rt.Fatalf("%d requests: %+v", n, r)
		}
		for _, gap := range r.ITL {
			if gap < .001-1e-9 {
				rt.Fatalf("a gap of %g s", gap)
			}
		}
		found += r.Cached
	})
	if found == 0 {
		t.Error("nothing is ever found")
	}
}

// TestCurve: times lie on lines between depths, and are never less than at the first.
func TestCurve(t *testing.T) {
	c := (&Steps{Times: []Time{{"decode", 1, 300, 4}, {"decode", 1, 100, 2}, {"decode", 1, 200, 2}}}).curves("decode")[0]
	for depth, want := range map[int]float64{0: 2, 100: 2, 150: 2, 250: 3, 300: 4, 400: 6} {
		if have := c.at(depth) * 1e3; math.Abs(have-want) > 1e-9 {
			t.Errorf("at %d: %g ms, want %g", depth, have, want)
		}
	}
}

// TestRead refuses what steps and traces cannot be.
func TestRead(t *testing.T) {
	good := `{"slots": 1, "ctx": 10, "host_ms": 0, "times": [{"kind": "decode", "rows": 1, "depth": 0, "ms": 1}, {"kind": "prefill", "rows": 8, "depth": 0, "ms": 1}]}`
	if _, err := Read(strings.NewReader(good)); err != nil {
		t.Error(err)
	}
	for _, c := range [][2]string{{`"slots": 1`, `"slots": 0`}, {`"ctx": 10`, `"ctx": 1e12`}, {`"ms": 1`, `"ms": 0`}, {`"ms": 1`, `"ms": -1`}, {`"rows": 8`, `"rows": 11`},
		{`prefill`, `decode`}, {`prefill`, `other`}, {`host_ms": 0`, `host_ms": -1`}, {`"slots"`, `"slot"`}, {`}]}`, `}]`}} {
		if s, err := Read(strings.NewReader(strings.Replace(good, c[0], c[1], 1))); err == nil {
			t.Errorf("%s: %+v", c[1], s)
		}
	}
	all, err := ReadTrace(strings.NewReader("{\"at\": 1, \"conversation\": \"a\", \"prompt\": 3, \"answer\": 1}\n\n"))
	if err != nil || len(all) != 1 || all[0].Prompt != 3 {
		t.Errorf("%+v, %v", all, err)
	}
	for _, bad := range []string{`{"prompt": 0, "answer": 1}`, `{"prompt": 1, "answer": 0}`, `{"at": -1, "prompt": 1, "answer": 1}`, `{"prompt": 1, "answer": 1, "system_tokens": 2}`, `[`} {
		if all, err := ReadTrace(strings.NewReader(bad)); err == nil || !strings.Contains(err.Error(), "line 1") {
			t.Errorf("%s: %+v, %v", bad, all, err)
		}
	}
}
