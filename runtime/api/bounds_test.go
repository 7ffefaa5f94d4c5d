package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// listen serves a fixture as zincrun does, and returns where.
func (x *fixture) listen() string {
	x.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		x.t.Fatal(err)
	}
	web := x.server.HTTP()
	go web.Serve(l)
	x.t.Cleanup(func() { web.Close() })
	return l.Addr().String()
}

// raw opens a connection and writes a text; it is closed with the test.
func (x *fixture) raw(addr, text string) net.Conn {
	x.t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		x.t.Fatal(err)
	}
	return c
}

const slowRequest = "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 100000\r\n\r\n{"

// TestSlowBodies: a body that comes too slowly ends with its time, with a key and without, on every endpoint.
func TestSlowBodies(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.BodyTime, o.Keys = 300*time.Millisecond, []Key{{Key: "right"}} })
	addr := x.listen()
	var wait sync.WaitGroup
	for _, c := range []struct {
		path, key string
		want      int
	}{
		{"/v1/chat/completions", "right", 408}, {"/v1/chat/completions", "wrong", 401}, {"/tokenize", "right", 408}, {"/drain", "right", 403},
		{"/live", "", 405}, {"/nothing", "", 404},
	} {
		conn := x.raw(addr, fmt.Sprintf(slowRequest, c.path, c.key))
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		wait.Go(func() {
			r := bufio.NewReader(conn)
			resp, err := http.ReadResponse(r, nil)
			if err != nil || resp.StatusCode != c.want {
				t.Errorf("%s: %v, %v, want %d", c.path, resp, err, c.want)
				return
			}
			io.Copy(io.Discard, resp.Body)
			if _, err := r.ReadByte(); err != io.EOF {
				t.Errorf("%s: the connection stays open: %v", c.path, err)
			}
		})
	}
	wait.Wait()
	// One that keeps coming is read, however long it takes.
	conn := x.raw(addr, "POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer right\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n")
	part := `{"content": "`
	for range 10 {
		part += strings.Repeat("a ", 4<<10)
		fmt.Fprintf(conn, "%x\r\n%s\r\n", len(part), part)
		time.Sleep(60 * time.Millisecond)
		part = ""
	}
	part = `"}`
	fmt.Fprintf(conn, "%x\r\n%s\r\n0\r\n\r\n", len(part), part)
	if resp, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil || resp.StatusCode != 200 {
		t.Errorf("a body that keeps coming: %v, %v", resp, err)
	}
}

// TestCrowd: more connections than a server takes, all of them waiting for one reason or another, do not keep the next
// one out.
func TestCrowd(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Connections = 20 })
	addr := x.listen()
	opened := atomic.Int64{}
	for i := range 80 {
		conn := x.raw(addr, []string{"", "GET /live HT", fmt.Sprintf(slowRequest, "/tokenize", ""), "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"}[i%4])
		opened.Add(1)
		go func() {
			io.Copy(io.Discard, conn)
			opened.Add(-1)
		}()
	}
	client := &http.Client{Timeout: 5 * time.Second}
	for range 3 {
		resp, err := client.Get("http://" + addr + "/live")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for end := time.Now().Add(5 * time.Second); opened.Load() > 20; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are open", opened.Load())
		}
	}
}

// TestBusyStays: a connection whose request is worked on is not given up for others.
func TestBusyStays(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Connections = 16 })
	x.fake.delay = 2 * time.Millisecond
	x.fake.answers["Hello"] = strings.Repeat("more and ", 100)
	addr := x.listen()
	got := make(chan string)
	go func() {
		resp, err := http.Post("http://"+addr+"/v1/chat/completions", "application/json", strings.NewReader(body("")))
		if err != nil {
			got <- err.Error()
			return
		}
		b, _ := io.ReadAll(resp.Body)
		got <- string(b)
	}()
	for x.fake.asked() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 64 {
		x.raw(addr, "")
	}
	if b := <-got; get(t, b, "choices", 0, "finish_reason") != "stop" {
		t.Error(b)
	}
}

// TestBodiesBudget: what requests hold together is bounded; a place comes free when a body goes.
func TestBodiesBudget(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.MaxBody, o.Bodies = 64<<10, 128<<10 })
	large := `{"content": "` + strings.Repeat("a", 50<<10)
	head := fmt.Sprintf("POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(large)+2)
	addr := x.listen()
	var held []net.Conn
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		held = append(held, x.raw(addr, head+large)) // it is refused where the request below came first
		if status, b := x.do("POST", "/tokenize", large+`"}`); status == 503 && get(t, b, "error", "code") == "overloaded" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no request is refused")
		}
	}
	for _, conn := range held {
		conn.Close()
	}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if status, _ := x.do("POST", "/tokenize", large+`"}`); status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the bodies of those who left are held")
		}
	}
}

// TestLongText: a text that cannot fit is refused for its bytes, before it is cut into tokens.
func TestLongText(t *testing.T) {
	x := newFixture(t, nil)
	long := strings.Repeat("a", 2048*x.tok.Longest()+1)
	for _, c := range []struct{ path, body string }{
		{"/v1/completions", `{"prompt": "` + long + `"}`},
		{"/v1/chat/completions", `{"messages": [{"role": "user", "content": "` + long + `"}]}`},
		{"/v1/messages", `{"max_tokens": 1, "messages": [{"role": "user", "content": "` + long + `"}]}`},
		{"/v1/messages/count_tokens", `{"messages": [{"role": "user", "content": "` + long + `"}]}`},
		{"/v1/chat/completions/render", `{"messages": [{"role": "user", "content": "` + long + `"}]}`},
		{"/v1/completions/render", `{"prompt": "` + long + `"}`},
	} {
		status, b := x.do("POST", c.path, c.body)
		if status != 400 || !matches("maximum context length is 2048 tokens.* at least (2049|2050) tokens|prompt is too long: at least (2049|2050) tokens > 2048 maximum", b) {
			t.Errorf("%s: %d %.300s", c.path, status, b)
		}
	}
	if n := x.fake.asked(); n != 0 {
		t.Errorf("%d requests came to the engine", n)
	}
}

// TestLimitsOfText: endpoints that only work with text count against the limits of a key.
func TestLimitsOfText(t *testing.T) {
	for path, b := range map[string]string{
		"/tokenize": `{"content": "a"}`, "/detokenize": `{"tokens": [1]}`, "/apply-template": body(""), "/v1/messages/count_tokens": body(""),
		"/v1/chat/completions/render": body(""), "/v1/completions/render": `{"prompt": "a"}`,
	} {
		x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", Requests: 2}} })
		for i, want := range []int{200, 200, 429} {
			if status, b := x.do("POST", path, b, "Authorization", "Bearer one"); status != want {
				t.Errorf("%s, request %d: %d %s", path, i+1, status, b)
			}
		}
	}
}

// TestTokensOfMinute: what a key uses is charged in full, whoever asks at once: no more comes through than the limit
// and what was begun within it.
func TestTokensOfMinute(t *testing.T) {
	const limit = 60
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", Tokens: limit}} })
	x.fake.answers["Hello"] = strings.Repeat("more and ", 80)
	ask := func() (status, used int) {
		status, b := x.do("POST", "/v1/chat/completions", body(""), "Authorization", "Bearer one")
		if status == 200 {
			used = int(get(t, b, "usage", "total_tokens").(float64))
		}
		return status, used
	}
	first := time.Now()
	status, used := ask()
	if status != 200 || used < 2*limit {
		t.Fatalf("%d, %d tokens", status, used)
	}
	began := time.Now()
	for time.Since(began) < 300*time.Millisecond {
		if status, more := ask(); status != 429 {
			t.Fatalf("behind %d tokens: %d, %d more", used, status, more)
		}
	}
	left := x.server.users[0].tokens.Tokens()
	if back := limit * time.Since(first).Minutes(); left > limit-float64(used)+back+1 || left < limit-float64(used)-1 {
		t.Errorf("%d tokens of %d are used, %.1f have come back, and %.1f are left", used, limit, back, left)
	}

	// Several at once: prompts are charged before they are read.
	y := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", Tokens: limit}} })
	y.fake.answers["Hello"], y.fake.delay = "Yes.", 20*time.Millisecond
	var wait sync.WaitGroup
	var through, prompts atomic.Int64
	for range 20 {
		wait.Go(func() {
			status, b := y.do("POST", "/v1/chat/completions", body(""), "Authorization", "Bearer one")
			if status == 200 {
				through.Add(1)
				prompts.Store(int64(get(t, b, "usage", "prompt_tokens").(float64)))
			}
		})
	}
	wait.Wait()
	if most := limit/prompts.Load() + 1; through.Load() > most || through.Load() == 0 {
		t.Errorf("%d of 20 requests with prompts of %d tokens come through, at most %d", through.Load(), prompts.Load(), most)
	}

	// A prompt of more than the tokens of a minute is charged in full, too.
	long := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", Tokens: limit}} })
	_, b := long.do("POST", "/v1/completions", `{"prompt": "`+strings.Repeat("a b ", 200)+`"}`, "Authorization", "Bearer one")
	if used, left := get(t, b, "usage", "total_tokens").(float64), long.server.users[0].tokens.Tokens(); used < 3*limit || left > limit-used+20 {
		t.Errorf("%.0f tokens of %d are used, and %.1f left", used, limit, left)
	}

	// The tokens of a prompt count once, however many answers there are, as in usage.
	z := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one", Tokens: 10 * limit}} })
	first = time.Now()
	_, b = z.do("POST", "/v1/chat/completions", body(`, "n": 4`), "Authorization", "Bearer one")
	used, left = int(get(t, b, "usage", "total_tokens").(float64)), z.server.users[0].tokens.Tokens()
	if back := 10 * limit * time.Since(first).Minutes(); left+float64(used) < 10*limit || left+float64(used) > 10*limit+back {
		t.Errorf("%d tokens of %d are used, %.1f have come back, and %.1f are left", used, 10*limit, back, left)
	}
}

// TestOwnersOfRequests: the engine knows whose requests are whose, by key.
func TestOwnersOfRequests(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Keys = []Key{{Key: "one"}, {Key: "two"}} })
	owner := func(path, b, key string) string {
		t.Helper()
		if status, b := x.do("POST", path, b, "Authorization", "Bearer "+key); status != 200 {
			t.Fatalf("%d %s", status, b)
		}
		return x.fake.last().Owner
	}
	complete := `{"prompt": "Hello"}`
	one, two := owner("/v1/chat/completions", body(""), "one"), owner("/v1/chat/completions", body(""), "two")
	if one == two || one == "" || two == "" || owner("/v1/completions", complete, "one") != one || owner("/v1/completions", complete, "two") != two {
		t.Errorf("owners are %x and %x", one, two)
	}
	if strings.Contains(one, "one") {
		t.Error("the engine knows the key")
	}
	y := newFixture(t, nil)
	if y.do("POST", "/v1/completions", complete); y.fake.last().Owner != "" {
		t.Error("without keys there are owners")
	}
}

// unread asks for a reply that fills all buffers, and does not read it.
func (x *fixture) unread(addr, path, b string) net.Conn {
	c := x.raw(addr, "")
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, len(b), b)
	return c
}

// largeReply is a request of which every byte gives many.
var largeReply = `{"with_pieces": true, "content": "` + strings.Repeat("a.", 1<<20) + `"}`

// TestUnreadReply: a client that does not read a whole reply ends with its time, as one of a stream does.
func TestUnreadReply(t *testing.T) {
	x := newFixture(t, func(o *Options) { o.Stall = 200 * time.Millisecond })
	addr := x.listen()
	x.unread(addr, "/tokenize", largeReply)
	x.fake.answers["Hello"] = strings.Repeat("more and ", 400)
	x.unread(addr, "/v1/chat/completions", body(`, "stream": true, "n": 16, "logprobs": true, "top_logprobs": 20`))
	for x.server.inFlight.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	for end := time.Now().Add(time.Minute); x.server.inFlight.Load() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d calls still write", x.server.inFlight.Load())
		}
	}
}

// TestDrainUnread: a drain ends with its time, whoever does not read, does not send, or waits.
func TestDrainUnread(t *testing.T) {
	x := newFixture(t, nil)
	addr := x.listen()
	x.unread(addr, "/tokenize", largeReply)
	x.raw(addr, fmt.Sprintf(slowRequest, "/tokenize", ""))
	x.fake.answers["Hello"] = strings.Repeat("more and ", 400)
	x.unread(addr, "/v1/chat/completions", body(`, "stream": true, "n": 16, "logprobs": true, "top_logprobs": 20`))
	for x.server.inFlight.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := x.server.Drain(ctx); err != nil && !errors.Is(err, errBusy) { // a computer may be busy, too
		t.Error(err)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("a drain of 300 ms takes %s", took)
	}
	for end := time.Now().Add(5 * time.Second); !x.fake.isClosed(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the engine is not closed")
		}
	}
}
