package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/pflag"
	"pgregory.net/rapid"
)

// A fakeServer answers after first, with a token each gap; its tokenizer makes a token of each byte.
type fakeServer struct {
	first, gap time.Duration
	fail       func(i int) bool // of requests that fail, counted from 0
	ids        bool             // it tells the ids of tokens

	mu      sync.Mutex
	bodies  []fakeAsk
	times   []time.Duration // of requests
	running int
	most    int // at the same time
	start   time.Time
}

type fakeAsk struct {
	Prompt    []int32  `json:"prompt"`
	Max       int      `json:"max_tokens"`
	IgnoreEOS bool     `json:"ignore_eos"`
	Temp      *float64 `json:"temperature"`
	TopP      *float64 `json:"top_p"`
	TopK      *int     `json:"top_k"`
	Seed      uint64   `json:"seed"`
	Stream    bool     `json:"stream"`
	Return    bool     `json:"return_tokens"`
}

func (f *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/tokenize" {
		var q struct{ Content string }
		json.NewDecoder(r.Body).Decode(&q)
		ids := []int{}
		for _, b := range []byte(q.Content) {
			ids = append(ids, int(b))
		}
		json.NewEncoder(w).Encode(map[string]any{"tokens": ids})
		return
	}
	var q fakeAsk
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	f.mu.Lock()
	n := len(f.bodies)
	f.bodies = append(f.bodies, q)
	f.times = append(f.times, time.Since(f.start))
	f.running++
	f.most = max(f.most, f.running)
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running--
		f.mu.Unlock()
	}()
	if f.fail != nil && f.fail(n) {
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":{"message":"the queue is full"}}`)
		return
	}
	send := func(v string) {
		io.WriteString(w, "data: "+v+"\n\n")
		http.NewResponseController(w).Flush()
	}
	for i := range q.Max {
		wait := f.gap
		if i == 0 {
			wait = f.first
		}
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
		ids := ""
		if f.ids && q.Return {
			ids = fmt.Sprintf(`,"token_ids":[%d]`, 1000+i)
		}
		send(fmt.Sprintf(`{"choices":[{"text":"%c","finish_reason":null%s}]}`, 'a'+i%26, ids))
	}
	send(`{"choices":[{"text":"","finish_reason":"length"}]}`)
	send(fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d}}}`,
		len(q.Prompt), q.Max, len(q.Prompt)/2))
	send("[DONE]")
}

// pipes is a listener of connections that exist only in memory, so that a test's clock stands
// still while they work.
type pipes chan net.Conn

func (p pipes) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipes) Close() error   { return nil }
func (p pipes) Addr() net.Addr { return &net.TCPAddr{} }

// serveFake calls test, on a clock of its own, with a client of the server.
func serveFake(t *testing.T, f *fakeServer, test func(t *testing.T, c *client)) {
	synctest.Test(t, func(t *testing.T) {
		p := make(pipes)
		f.start = time.Now()
		s := &http.Server{Handler: f}
		go s.Serve(p)
		c, err := newClient("http://127.0.0.1:1", "", false)
		if err != nil {
			t.Fatal(err)
		}
		transport := c.http.Transport.(*http.Transport)
		transport.DialContext = func(context.Context, string, string) (net.Conn, error) {
			a, b := net.Pipe()
			p <- b
			return a, nil
		}
		test(t, c)
		transport.CloseIdleConnections()
		close(p)
		s.Close()
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*math.Max(1, math.Abs(b)) }

func TestMeasures(t *testing.T) {
	f := &fakeServer{first: 40 * time.Millisecond, gap: 5 * time.Millisecond}
	serveFake(t, f, func(t *testing.T, c *client) {
		l := load{users: 3, requests: 6, limit: time.Hour, prompt: 20, answer: 9, seed: 7}
		m, err := l.measure(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		// Two rounds of 40 + 8 * 5 ms.
		for _, x := range []struct {
			what      string
			got, want float64
		}{
			{"requests", float64(m.requests), 6}, {"errors", float64(m.errors), 0}, {"seconds", m.seconds, 0.160},
			{"prompt rate", m.promptRate, 6 * 20 / 0.160}, {"output rate", m.outputRate, 6 * 9 / 0.160}, {"cached", m.cached, 10},
			{"TTFT", m.ttft.percentile(50), 40}, {"TPOT", m.tpot.percentile(99), 5}, {"ITL", m.itl.mean(), 5}, {"ITLs", float64(len(m.itl)), 6 * 8},
			{"E2EL", m.e2el.percentile(50), 80},
		} {
			if !near(x.got, x.want) {
				t.Errorf("%s: %v, want %v", x.what, x.got, x.want)
			}
		}
	})
	if f.most != 3 || len(f.bodies) != 3+6 {
		t.Errorf("%d requests, %d at a time", len(f.bodies), f.most)
	}
	seen := map[string]bool{}
	for i, q := range f.bodies {
		seen[fmt.Sprint(q.Prompt)] = true
		if len(q.Prompt) != 20 || q.Max != 9 || !q.IgnoreEOS || !q.Stream || *q.Temp != 0 || q.TopP != nil || q.TopK != nil {
			t.Errorf("request %d: %+v", i, q)
		}
	}
	if len(seen) != len(f.bodies) {
		t.Errorf("%d prompts for %d requests", len(seen), len(f.bodies))
	}
}

func TestErrorsAreCounted(t *testing.T) {
	f := &fakeServer{first: time.Millisecond, gap: time.Millisecond, fail: func(i int) bool { return i >= 2 && i%2 == 0 }}
	serveFake(t, f, func(t *testing.T, c *client) {
		m, err := load{users: 1, requests: 8, limit: time.Hour, prompt: 3, answer: 4}.measure(t.Context(), c)
		if err != nil || m.requests != 4 || m.errors != 4 || len(m.ttft) != 4 {
			t.Fatalf("%+v, %v", m, err)
		}
		if want := "429 Too Many Requests: the queue is full"; m.problem.Error() != want {
			t.Errorf("%v, want %s", m.problem, want)
		}
	})
}

// What is under way at the limit counts as unfinished, and nothing is asked any more.
func TestLimit(t *testing.T) {
	f := &fakeServer{first: time.Second, gap: time.Second}
	serveFake(t, f, func(t *testing.T, c *client) {
		l := load{users: 2, requests: 100, limit: 7 * time.Second, prompt: 3, answer: 3}
		r, err := l.run(t.Context(), c, &prompts{ids: []int32{1, 2}}, func() {})
		if err != nil || len(r.traces) != 4 || r.unfinished != 2 || r.wall != 7*time.Second {
			t.Errorf("%d done, %d not, %s, %v", len(r.traces), r.unfinished, r.wall, err)
		}
	})
}

func TestInterrupt(t *testing.T) {
	f := &fakeServer{first: time.Second, gap: time.Second}
	serveFake(t, f, func(t *testing.T, c *client) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), 7*time.Second, context.Canceled)
		defer cancel()
		for _, l := range []load{{users: 2}, {rate: 0.5}} {
			l.requests, l.limit, l.prompt, l.answer = 100, time.Hour, 3, 3
			r, err := l.run(ctx, c, &prompts{ids: []int32{1, 2}}, func() {})
			if !errors.Is(err, context.Canceled) || r == nil {
				t.Errorf("%v", err)
			}
		}
	})
}

func TestOpenLoop(t *testing.T) {
	f := &fakeServer{first: 10 * time.Second, gap: time.Second}
	l := load{rate: 4, requests: 40, limit: time.Hour, prompt: 3, answer: 2, seed: 3}
	serveFake(t, f, func(t *testing.T, c *client) {
		r, err := l.run(t.Context(), c, &prompts{ids: []int32{1, 2}}, func() {})
		if err != nil || len(r.traces) != 40 {
			t.Fatalf("%d done, %v", len(r.traces), err)
		}
	})
	// Requests came when they were due although no answer was there.
	if want := l.arrivals(); !slices.Equal(f.times, want) {
		t.Errorf("requests at %v, want %v", f.times, want)
	}
}

// TestSeedIsDrawn: runs ask for different prompts unless they are given a seed.
func TestSeedIsDrawn(t *testing.T) {
	first := func(args ...string) string {
		f := pflag.NewFlagSet("loadgen", pflag.ContinueOnError)
		var seed uint64
		if seedFlag(f, &seed, "seed of prompts"); !strings.Contains(f.FlagUsages(), "(default drawn)") {
			t.Errorf("the help says %q", f.FlagUsages())
		}
		if err := f.Parse(args); err != nil {
			t.Fatal(err)
		}
		p := prompts{[]int32{1, 2, 3, 4, 5, 6, 7, 8}, seed}
		return fmt.Sprint(p.of(0, 64))
	}
	if a, b := first(), first(); a == b {
		t.Error("a second run has the prompts of the first")
	}
	if first("--seed", "7") != first("--seed=7") {
		t.Error("runs of one seed have different prompts")
	}
}

// Gaps have the mean and the standard deviation of an exponential distribution, 1/rate both.
func TestArrivals(t *testing.T) {
	l := load{rate: 5, requests: 100_000, seed: 1}
	all := l.arrivals()
	sum, squares := 0.0, 0.0
	for i := range all[1:] {
		gap := (all[i+1] - all[i]).Seconds()
		sum += gap
		squares += gap * gap
	}
	n := float64(len(all) - 1)
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean-0.2) > 0.003 || math.Abs(deviation-0.2) > 0.003 || all[0] != 0 {
		t.Errorf("from %v, mean %v, deviation %v", all[0], mean, deviation)
	}
	if l.seed = 2; slices.Equal(l.arrivals(), all) {
		t.Error("another seed gives the same times")
	}
}

// A second turn is the first one's prompt, its answer and a prompt; the latencies are its own.
func TestSecondTurn(t *testing.T) {
	for _, ids := range []bool{true, false} {
		f := &fakeServer{first: 10 * time.Millisecond, gap: time.Millisecond, ids: ids}
		serveFake(t, f, func(t *testing.T, c *client) {
			l := load{users: 1, requests: 3, limit: time.Hour, prompt: 5, answer: 4, behind: 50}
			p, err := newPrompts(t.Context(), c, 1)
			if err != nil {
				t.Fatal(err)
			}
			r, err := l.run(t.Context(), c, p, func() {})
			m := measure(r)
			if err != nil || m.requests != 3 || !near(m.ttft.percentile(50), 10) || !near(m.e2el.percentile(50), 13) || !near(m.cached, 35) {
				t.Errorf("%+v, %v", m, err)
			}
			if want := 3 * (firstAnswer + 4) / m.seconds; !near(m.outputRate, want) {
				t.Errorf("%v tokens/s, want %v", m.outputRate, want)
			}
			var questions []string
			for i := range 3 {
				first, second := f.bodies[2*i].Prompt, f.bodies[2*i+1].Prompt
				if len(first) != 50 || len(second) != 50+firstAnswer+5 || !slices.Equal(first, second[:50]) {
					t.Fatalf("turns of %d and %d tokens", len(first), len(second))
				}
				for j, id := range second[50 : 50+firstAnswer] {
					want := int32('a' + j)
					if ids {
						want = int32(1000 + j)
					}
					if id != want {
						t.Fatalf("token %d of the answer is %d, want %d", j, id, want)
					}
				}
				questions = append(questions, fmt.Sprint(second[50+firstAnswer:]))
			}
			if slices.Sort(questions); len(slices.Compact(questions)) != 3 {
				t.Error("questions are the same")
			}
		})
	}
}

// What a server must not get away with.
func TestBadStreams(t *testing.T) {
	const good = `data: {"choices":[{"text":"a","finish_reason":"length"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n\n"
	for _, c := range []struct{ name, stream, want string }{
		{"whole", good + "data: [DONE]\n\n", ""},
		{"cut off", good, "unexpected EOF"},
		{"no JSON", "data: {\n\n", "an event of the stream: unexpected end of JSON input"},
		{"an error", `data: {"error":{"message":"out of memory"}}` + "\n\n", "out of memory"},
		{"no reason", `data: {"choices":[{"text":"a"}],"usage":{"completion_tokens":1}}` + "\n\ndata: [DONE]\n\n", "the stream ended without a finish_reason"},
		{"no usage", `data: {"choices":[{"text":"a","finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n", "the stream has no tokens, or does not count them (usage)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			client, err := newClient("http://localhost:1", "", false)
			if err != nil {
				t.Fatal(err)
			}
			client.http.Transport = roundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(c.stream))}, nil
			})
			got := ""
			if err := client.generate(t.Context(), ask{prompt: []int32{1}, answer: 1}).err; err != nil {
				got = err.Error()
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestOnlyThisComputer(t *testing.T) {
	for url, ok := range map[string]bool{
		"http://127.0.0.1:8080": true, "http://localhost/": true, "http://[::1]:1": true, "https://127.8.9.1": true,
		"http://example.org": false, "http://10.0.0.1": false, "http://localhost.example.org": false, "http://0.0.0.0:1": false,
		"ftp://127.0.0.1": false, "127.0.0.1:8080": false, "": false, "http://": false,
	} {
		if _, err := newClient(url, "", false); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := newClient("http://10.0.0.1", "", true); err != nil {
		t.Error(err)
	}
}

// numpy.percentile([15, 20, 35, 40, 50], [0, 25, 50, 99, 100]) and of one and of none.
func TestPercentile(t *testing.T) {
	l := latencies{50, 15, 40, 20, 35}
	for p, want := range map[float64]float64{0: 15, 25: 20, 50: 35, 99: 49.6, 100: 50} {
		if got := l.percentile(p); !near(got, want) {
			t.Errorf("percentile %v: %v, want %v", p, got, want)
		}
	}
	if got := (latencies{3}).percentile(99); got != 3 {
		t.Error(got)
	}
	if got := (latencies{}).percentile(50); got != 0 {
		t.Error(got)
	}
	rapid.Check(t, func(t *rapid.T) {
		l := latencies(rapid.SliceOfN(rapid.Float64Range(0, 1e6), 1, 50).Draw(t, "latencies"))
		p := rapid.Float64Range(0, 100).Draw(t, "p")
		got, below := l.percentile(p), 0
		for _, x := range l {
			if x <= got+1e-6 {
				below++
			}
		}
		if got < slices.Min(l) || got > slices.Max(l) || float64(below) < math.Floor(p/100*float64(len(l)-1)) {
			t.Errorf("percentile %v of %v: %v", p, l, got)
		}
	})
}

// TestSchema holds that a case with a schema asks for answers of it, and that others do not.
func TestSchema(t *testing.T) {
	if body := string(ask{schema: people}.body("")); !strings.Contains(body, `"json_schema":{"type":"array"`) {
		t.Error(body)
	}
	if body := string(ask{}.body("")); strings.Contains(body, "schema") {
		t.Error(body)
	}
	n := 0
	for _, c := range cases {
		if c.load.schema != nil {
			n++
		}
	}
	if n != 4 {
		t.Errorf("%d cases have a schema", n)
	}
}
