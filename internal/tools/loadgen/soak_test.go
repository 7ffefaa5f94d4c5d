package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/spawn"
)

// A soaked server answers as its prompt and seed say; each of the faults is something that a soak must
// find.
type soaked struct {
	wrongUnderLoad bool // answers depend on what else runs
	wrongLater     bool // answers change with time
	keepsSlots     bool // of clients that leave
	leaks          bool // goroutines
	takesAnything  bool // bodies that are no requests
	fails          bool // with 500 on them
	refuses        bool // what comes beside others

	asked, running, slots, leaked atomic.Int64
}

func (f *soaked) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/tokenize":
		io.WriteString(w, `{"tokens":[1,2,3,4,5,6,7]}`)
	case "/health":
	case "/slots":
		var all []string
		for range f.slots.Load() + f.running.Load() {
			all = append(all, `{"is_processing":true}`)
		}
		fmt.Fprintf(w, "[%s]", strings.Join(append(all, `{"is_processing":false}`), ","))
	case "/metrics":
		fmt.Fprintf(w, "# HELP go_goroutines Number of goroutines.\ngo_goroutines %d\nzincrun_requests_running{model_name=\"a\"} %d\nx_bucket{le=\"+Inf\"} 3\n",
			20+f.leaked.Load(), f.running.Load())
	case "/v1/completions":
		f.complete(w, r)
	}
}

func (f *soaked) complete(w http.ResponseWriter, r *http.Request) {
	var q fakeAsk
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err == nil {
		err = json.Unmarshal(body, &q)
	}
	if err != nil || len(q.Prompt) == 0 || len(q.Prompt) > 1000 || q.Max < 1 {
		switch {
		case f.fails:
			w.WriteHeader(http.StatusInternalServerError)
		case f.takesAnything:
		default:
			w.WriteHeader(http.StatusBadRequest)
		}
		io.WriteString(w, `{"error":{"message":"no"}}`)
		return
	}
	n := f.asked.Add(1)
	running := f.running.Add(1)
	defer f.running.Add(-1)
	if f.refuses && running > 1 {
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	if f.leaks && n > 30 {
		f.leaked.Add(1)
	}
	var text strings.Builder
	for i := range q.Max {
		id := int(q.Prompt[i%len(q.Prompt)]) + int(q.Seed) + i
		if f.wrongUnderLoad && running > 4 || f.wrongLater && n > 50 {
			id++
		}
		piece := fmt.Sprintf("%c", 'a'+id%26)
		text.WriteString(piece)
		select {
		case <-r.Context().Done():
			if f.keepsSlots {
				f.slots.Add(1)
			}
			return
		case <-time.After(time.Millisecond):
		}
		if q.Stream {
			fmt.Fprintf(w, "data: {\"choices\":[{\"text\":%q,\"finish_reason\":null}]}\n\n", piece)
			http.NewResponseController(w).Flush()
		}
	}
	if q.Stream {
		fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}],\"usage\":{\"completion_tokens\":%d}}\n\ndata: [DONE]\n\n", q.Max)
	} else {
		fmt.Fprintf(w, `{"choices":[{"text":%q,"finish_reason":"length"}]}`, text.String())
	}
}

func newSoak(t *testing.T, url string, requests int) *soak {
	c, err := newClient(url, "", false)
	if err != nil {
		t.Fatal(err)
	}
	return &soak{client: c, requests: requests, users: 8, distinct: 20, limit: time.Minute, seed: 1, rest: time.Second}
}

func TestSoakFindsFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		server *soaked
		want   string // a part of the verdict
	}{
		{"none", &soaked{}, ""},
		{"answers under load", &soaked{wrongUnderLoad: true}, "and alone it was"},
		{"answers later", &soaked{wrongLater: true}, "and alone it was"},
		{"slots kept", &soaked{keepsSlots: true}, "slots in use: "},
		{"goroutines", &soaked{leaks: true}, "goroutines: "},
		{"malformed bodies taken", &soaked{takesAnything: true}, "200 OK"},
		{"malformed bodies crash", &soaked{fails: true}, "500 Internal Server Error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.server)
			defer server.Close()
			s := newSoak(t, server.URL, 150)
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := s.verdict()
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			sum := 0
			for i, n := range s.counts {
				sum += n.done + n.busy + n.wrong
				if n.done+n.busy+n.wrong == 0 {
					t.Errorf("%s never happened", acts[i].name)
				}
			}
			if sum != 150 {
				t.Errorf("%d requests, want 150", sum)
			}
		})
	}
}

// TestSoakedProcess is the server that TestRounds starts: this program, which ends when it is asked to.
func TestSoakedProcess(t *testing.T) {
	if flag.NArg() != 2 {
		return
	}
	ctx, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	server := &http.Server{Addr: "127.0.0.1:" + flag.Arg(0), Handler: &soaked{wrongLater: flag.Arg(1) == "wrong"}}
	go func() {
		<-ctx.Done()
		server.Close()
	}()
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		t.Error(err)
	}
}

// TestRounds: each answer is asked for once a round, of several servers one after the other, which end in both ways.
func TestRounds(t *testing.T) {
	for _, c := range []struct{ server, want string }{{"right", ""}, {"wrong", "and alone it was"}} {
		t.Run(c.server, func(t *testing.T) {
			t.Parallel()
			server, err := spawn.Start(t.Context(), []string{os.Args[0], "-test.run=^TestSoakedProcess$", "--", "PORT", c.server})
			if err != nil {
				t.Fatal(err)
			}
			s := newSoak(t, server.URL, 0)
			s.server, s.rounds, s.restarts = server, 6, 2
			defer func() { s.server.Stop() }()
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.verdict(); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			sum := 0
			for _, n := range s.counts {
				sum += n.done + n.busy + n.wrong
			}
			if sum != s.rounds*s.distinct {
				t.Errorf("%d answers, want %d", sum, s.rounds*s.distinct)
			}
			var ends []string
			for _, l := range s.lives {
				if ends = append(ends, l.end); l.rounds != 2 {
					t.Errorf("a server had %d rounds, want 2", l.rounds)
				}
			}
			if want := []string{"SIGTERM", "SIGKILL", "still runs"}; !slices.Equal(ends, want) {
				t.Errorf("servers ended by %q, want %q", ends, want)
			}
		})
	}
}

// TestRoundsFindFaults: what is not answered right and what is left over fails a soak in rounds.
func TestRoundsFindFaults(t *testing.T) {
	for _, c := range []struct {
		name   string
		server *soaked
		want   string
	}{
		{"answers under load", &soaked{wrongUnderLoad: true}, "and alone it was"},
		{"goroutines", &soaked{leaks: true}, "server 1: goroutines: "},
		{"refusals", &soaked{refuses: true}, "were refused"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(c.server)
			defer server.Close()
			s := newSoak(t, server.URL, 0)
			s.rounds = 3
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := s.verdict(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
}

// What does not answer in time is no fault of the soak's: it ends, and says so.
func TestSoakEnds(t *testing.T) {
	server := httptest.NewServer(&soaked{})
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := newSoak(t, server.URL, 100).run(ctx); err == nil {
		t.Error("a soak without time has a verdict")
	}
}

func TestWeights(t *testing.T) {
	sum := 0
	for _, a := range acts {
		sum += a.weight
	}
	if sum != 100 {
		t.Errorf("weights sum to %d", sum)
	}
}
