package main

import (
	"fmt"
	"math"
	"net/http/httptest"
	"strings"
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
	// Others on these processors make some steps longer: a simulation that is wrong is off always.
	var off []string
	for seed := range uint64(8) {
		if off = fleetOfOne(t, c, *steps, seed); off == nil {
			return
		}
		t.Log(strings.Join(off, "; "))
	}
	t.Errorf("eight times: %s", strings.Join(off, "; "))
}

// fleetOfOne says which figures of a simulation are off by more than a third from those measured of a server.
func fleetOfOne(t *testing.T, c *client, steps fleet.Steps, seed uint64) (off []string) {
	p, err := newPrompts(t.Context(), c, seed)
	if err != nil {
		t.Fatal(err)
	}
	before, err := c.loaded(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := load{rate: 6, requests: 8, limit: time.Minute, prompt: 100, answer: 24, sampler: sampler{Temp: 1}, seed: seed}
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
	want, err := fleet.Trace(&steps, fleet.Options{Servers: 1, Router: fleet.Prefix, ITL: 1e-9}, trace)
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
		if !(math.Abs(math.Log(f.ahead/f.measured)) < math.Log(1.35)) {
			off = append(off, fmt.Sprintf("%s: measured %.2f, simulated %.2f", f.name, f.measured, f.ahead))
		}
	}
	return off
}
