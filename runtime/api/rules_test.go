package api

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestAtOnce: a key has as many requests at once as it may have, and not one more; one that ends makes room.
func TestAtOnce(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", AtOnce: 2}} })
	x.fake.answers["Hello"], x.fake.delay = strings.Repeat("more and ", 1000), 20*time.Millisecond
	var open []*http.Response
	ask := func() int {
		t.Helper()
		r, err := http.NewRequest("POST", x.http.URL+"/v1/chat/completions", strings.NewReader(body(`, "stream": true`)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer one")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, resp)
		return resp.StatusCode
	}
	for i, want := range []int{200, 200, 429} {
		if got := ask(); got != want {
			t.Errorf("request %d at once: %d, want %d", i+1, got, want)
		}
	}
	open[0].Body.Close()
	for end := time.Now().Add(10 * time.Second); ask() != 200; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("one has ended, and there is no room")
		}
	}
	for _, resp := range open {
		resp.Body.Close()
	}
	x.settled()
}

// TestOrigins: what may not use the server is refused by its form, and caches are told that replies depend on the
// origin.
func TestOrigins(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Loopback, o.Origins = true, []string{"https://page.example"} })
	for _, c := range []struct {
		header, value string
		want          int
	}{
		{"Origin", "null", 403}, {"Origin", "file://", 403}, {"Origin", "", 200},
		{"Host", "evillocalhost", 403}, {"Host", "localhost.evil", 403}, {"Host", "a.localhost:80", 200}, {"Host", "LOCALHOST.", 200},
	} {
		if status, b := x.do("POST", "/tokenize", `{"content": "a"}`, c.header, c.value); status != c.want {
			t.Errorf("%s %q: %d %s, want %d", c.header, c.value, status, b, c.want)
		}
	}
	for _, origin := range []string{"https://page.example", "https://other.example"} {
		r, err := http.NewRequest("GET", x.http.URL+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Origin", origin)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.Header.Get("Vary") != "Origin" {
			t.Errorf("%s: Vary is %q", origin, resp.Header.Get("Vary"))
		}
	}
}

// TestSlowReader: a client that reads slowly, but reads, gets all of a stream that takes longer than it may leave a
// part unread.
func TestSlowReader(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Stall = 500 * time.Millisecond })
	x.fake.answers["Hello"], x.fake.delay = strings.Repeat("more and ", 50), 10*time.Millisecond
	resp, err := http.Post(x.http.URL+"/v1/chat/completions", "application/json", strings.NewReader(body(`, "stream": true`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	began, last := time.Now(), ""
	r := bufio.NewScanner(resp.Body)
	for r.Scan() {
		if r.Text() != "" {
			last = r.Text()
		}
	}
	if took := time.Since(began); last != "data: [DONE]" || took < x.server.o.Stall {
		t.Errorf("the stream ends with %q after %s", last, took)
	}
	io.Copy(io.Discard, resp.Body)
}
