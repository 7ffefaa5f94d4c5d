package main

import (
	"math"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/internal/tools/loadgen/fleet"
	"github.com/zincc-dev/zincc/runtime/api"
)

// TestFleetOfOne: what is simulated of one server from the times of its steps in a run is what the run measures, to a
// factor of 1.35. Step times of another run would differ by what other tests do on the same processors.
func TestFleetOfOne(t *testing.T) {
	server := httptest.NewServer(hosted.Serve(t, "gopher-chat", 256, 4, api.Options{Loopback: true}))
	defer server.Close()
	c, err := newClient(server.URL, "", false)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := measureSteps(t.Context(), c, []int{70}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if steps.Slots != 4 || steps.Ctx != 256 || steps.HostMS <= 0 {
		t.Errorf("%+v", steps)
	}
	before, err := c.loaded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := newPrompts(t.Context(), c, 7)
	if err != nil {
		t.Fatal(err)
	}
	l := load{rate: 6, requests: 8, limit: time.Minute, prompt: 100, answer: 24, sampler: sampler{Temp: 1}, seed: 7}
	r, err := l.run(t.Context(), c, p, func() {})
	if err != nil {
		t.Fatal(err)
	}
	have := measure(r)
	if have.problem != nil || have.requests != l.requests {
		t.Fatal(have.requests, have.problem)
	}
	after, err := c.loaded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sums := stepSums{}
	sums.add(before, after, l.prompt)
	steps.Times = sums.times()
	var trace []fleet.Request
	for i, at := range l.arrivals() {
		trace = append(trace, fleet.Request{At: at.Seconds(), Conversation: string(rune('a' + i)), Prompt: l.prompt, Answer: l.answer})
	}
	want, err := fleet.Trace(steps, fleet.Options{Servers: 1, Router: fleet.Prefix, ITL: 1e-9}, trace)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name            string
		measured, ahead float64
	}{
		{"tokens/s", float64(want.Output) / have.seconds, float64(want.Output) / want.Seconds},
		{"TTFT, mean", have.ttft.mean(), inMS(want.TTFT).mean()},
		{"TPOT, mean", have.tpot.mean(), inMS(want.ITL).mean()},
	} {
		t.Logf("%s: measured %.2f, simulated %.2f", f.name, f.measured, f.ahead)
		if off := math.Abs(math.Log(f.ahead / f.measured)); !(off < math.Log(1.35)) {
			t.Errorf("%s: measured %.2f, simulated %.2f: off by a factor of %.2f", f.name, f.measured, f.ahead, math.Exp(off))
		}
	}
}
