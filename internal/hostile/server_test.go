package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/api"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// mute is an engine whose answers are empty: what is attacked lies before it.
type mute struct{ failed chan struct{} }

func (mute) Generate(_ context.Context, r engine.Request) iter.Seq2[engine.Event, error] {
	return func(yield func(engine.Event, error) bool) {
		yield(engine.Event{Done: &engine.Done{Reason: engine.Stopped, Usage: engine.Usage{Prompt: len(r.Prompt)}}}, nil)
	}
}

func (mute) Stats() engine.Stats         { return engine.Stats{Slots: make([]engine.SlotStats, 4)} }
func (m mute) Failed() <-chan struct{}   { return m.failed }
func (mute) Err() error                  { return nil }
func (mute) Drain(context.Context) error { return nil }
func (mute) Close() error                { return nil }

// TestServe is not a test but the server of the others, in a process of its own that may have 300 files and memory for
// a few texts. Its model has a long context, so that long texts get as far as the tokenizer.
func TestServe(t *testing.T) {
	drain, err := time.ParseDuration(os.Getenv("HOSTILE_SERVE"))
	if err != nil {
		t.Skip("the server of other tests")
	}
	for what, most := range map[int]uint64{unix.RLIMIT_NOFILE: 300, unix.RLIMIT_DATA: bodies() * 256} {
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: most, Max: most}); err != nil {
			t.Fatal(err)
		}
	}
	f, err := gguf.Open(modelPath(t, "gopher-chat"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := plans.ReadVocab(f)
	if err != nil {
		t.Fatal(err)
	}
	tok, err := text.New(v)
	if err != nil {
		t.Fatal(err)
	}
	template, err := chat.New(v)
	if err != nil {
		t.Fatal(err)
	}
	m := &api.Model{Header: plans.Header{Ctx: 1 << 20, Slots: 4, Model: plans.Model{Vocab: len(v.Tokens)}}, Hash: "0123", Tokenizer: tok,
		Template: template, Defaults: sample.Defaults(v.Sampling), Engine: mute{make(chan struct{})}}
	s := api.New(api.Options{Served: []*api.Served{{Names: []string{"gopher"}, Open: func(context.Context) (*api.Model, error) { return m, nil }}}})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	asked, stop := signal.NotifyContext(t.Context(), syscall.SIGTERM)
	defer stop()
	web := s.HTTP()
	go web.Serve(l)
	fmt.Println("listens", l.Addr())
	<-asked.Done()
	ctx, cancel := context.WithTimeout(t.Context(), drain)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Error(err)
	}
	web.Close()
}

// server is a process that serves.
type server struct {
	t    *testing.T
	cmd  *exec.Cmd
	addr string
	end  chan error
}

// serve starts a server that has so long to drain.
func serve(t *testing.T, drain time.Duration) *server {
	t.Helper()
	s := &server{t: t, cmd: exec.Command(os.Args[0], "-test.run=^TestServe$", "-test.timeout=5m", fmt.Sprintf("-test.short=%v", testing.Short())), end: make(chan error, 1)}
	s.cmd.Env = append(os.Environ(), "HOSTILE_SERVE="+drain.String(), "GOGC=100")
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(out)
	line, err := r.ReadString('\n')
	addr, ok := strings.CutPrefix(strings.TrimSpace(line), "listens ")
	if err != nil || !ok {
		t.Fatalf("the server says %q, %v", line, err)
	}
	s.addr = addr
	go func() {
		io.Copy(io.Discard, r)
		s.end <- s.cmd.Wait()
	}()
	t.Cleanup(func() { s.cmd.Process.Kill() })
	return s
}

// stop asks the server to end, and returns how long it took.
func (s *server) stop() time.Duration {
	s.t.Helper()
	began := time.Now()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case err := <-s.end:
		if err != nil {
			s.t.Errorf("the server ends with %v", err)
		}
	case <-time.After(time.Minute):
		s.t.Fatal("the server does not end")
	}
	return time.Since(began)
}

// live says whether the server answers.
func (s *server) live() {
	s.t.Helper()
	c := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := c.Get("http://" + s.addr + "/live")
	if err != nil {
		s.t.Fatalf("the server does not answer: %v", err)
	}
	resp.Body.Close()
}

// dial opens a connection and writes a text.
func (s *server) dial(text string) net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.(*net.TCPConn).SetReadBuffer(4 << 10)
	io.WriteString(c, text)
	return c
}

// peak is the memory that the server has had at most, in bytes.
func (s *server) peak() int {
	s.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		s.t.Fatal(err)
	}
	return kb << 10
}

func request(path string, length int, body string) string {
	return fmt.Sprintf("POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", path, length, body)
}

// TestSlowBodies: 400 connections that send slowly do not hold a server of 300 files, nor do they once they have sent
// more.
func TestSlowBodies(t *testing.T) {
	s := serve(t, time.Second)
	var all []net.Conn
	for range 400 {
		all = append(all, s.dial(request("/v1/chat/completions", 1<<20, `{"messages": [`)))
	}
	for range 3 {
		s.live()
		for _, c := range all {
			io.WriteString(c, " ")
		}
	}
	s.stop()
}

// TestUnreadReplies: clients that do not read their replies do not hold the end of a server.
func TestUnreadReplies(t *testing.T) {
	s := serve(t, time.Second)
	body := `{"with_pieces": true, "content": "` + strings.Repeat("a.", 1<<19) + `"}`
	for range 4 {
		s.dial(request("/tokenize", len(body), body))
	}
	s.live()
	time.Sleep(200 * time.Millisecond)
	if took := s.stop(); took > 20*time.Second {
		t.Errorf("a drain of 1s takes %s", took)
	}
}

// bodies is how large the bodies of an attack are, in bytes: as large as they may be, or with -short a quarter of that.
func bodies() uint64 {
	if testing.Short() {
		return 2 << 20
	}
	return 8 << 20
}

// TestLargeBodies: large bodies, more than a server has memory for at once, leave it alive.
func TestLargeBodies(t *testing.T) {
	s := serve(t, time.Second)
	size := int(bodies()) - 256
	var wait sync.WaitGroup
	for i := range 6 {
		wait.Go(func() {
			part := []string{"a", "ab ", "\\n", "é", "<|im_start|>", "x1 "}[i]
			text := strings.Repeat(part, size/len(part))
			path, body := "/tokenize", `{"content": "`+text+`"}`
			if i%2 == 1 {
				path, body = "/v1/chat/completions", `{"messages": [{"role": "user", "content": "`+text+`"}]}`
			}
			resp, err := http.Post("http://"+s.addr+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				return
			}
			defer resp.Body.Close()
			io.Copy(io.Discard, resp.Body)
			if resp.StatusCode != 200 && resp.StatusCode != 400 {
				t.Errorf("%s: %s", path, resp.Status)
			}
		})
	}
	wait.Wait()
	s.live()
	t.Logf("%d MiB of memory at most", s.peak()>>20)
	s.stop()
}
