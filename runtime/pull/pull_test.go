package pull

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/disk"
	"github.com/zincc-dev/zincc/internal/hub"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/runtime/library"
)

const repo = "acme/Tiny-GGUF"

// model is a GGUF file of about kb KiB.
func model(t *testing.T, kb int, more ...gguf.KV) []byte {
	t.Helper()
	data := make([]byte, kb<<10)
	for i := range data {
		data[i] = byte(rand.N(256))
	}
	var b bytes.Buffer
	meta := append([]gguf.KV{{Key: "general.architecture", Value: "llama"}}, more...)
	if err := gguf.Write(&b, meta, []gguf.TensorData{{Name: fmt.Sprint("t", kb), Type: ir.F32, Shape: []int64{int64(len(data) / 4)}, Data: data}}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// serve starts s, and returns a client of it with small pieces that does not wait long.
func serve(t *testing.T, s *hub.Server) *Client {
	t.Helper()
	s.Start()
	t.Cleanup(s.Close)
	c := client(t)
	c.Hub, c.Registry = s.URL, s.URL
	return c
}

func client(t *testing.T) *Client {
	c := &Client{Dir: t.TempDir()}
	c.setDefaults()
	c.chunk, c.pause, c.stall = 16<<10, time.Millisecond, 5*time.Second
	return c
}

func ref(t *testing.T, s string) library.Ref {
	t.Helper()
	r, err := library.ParseRef(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func pulls(t *testing.T, c *Client, name string, want []byte) string {
	t.Helper()
	path, err := c.Pull(t.Context(), ref(t, name))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
		t.Fatalf("%s has %d bytes, want %d: %v", path, len(got), len(want), err)
	}
	return path
}

func TestPullFromAHub(t *testing.T) {
	small, large := model(t, 100), model(t, 200)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {
		"README.md": []byte("hello"), "tiny-Q8_0.gguf": large, "tiny-Q4_K_M.gguf": small, "mmproj-tiny-F16.gguf": small, "../evil-Q2_K.gguf": small,
	}}}
	c := serve(t, s)
	var said []string
	c.Said = func(line string) { said = append(said, line) }
	var last Progress
	c.Progress = func(p Progress) { last = p }
	path := pulls(t, c, "hf.co/"+repo, small)
	if want := filepath.Join(c.Dir, "hf.co", "acme", "Tiny-GGUF", "tiny-Q4_K_M.gguf"); path != want {
		t.Errorf("at %s, want %s", path, want)
	}
	if len(said) != 1 || !strings.Contains(said[0], "left out: mmproj-tiny-F16.gguf") {
		t.Errorf("said %q", said)
	}
	if last.Done != last.Total || last.Total != int64(len(small)) {
		t.Errorf("progress ends at %+v", last)
	}
	pulls(t, c, "hf.co/"+repo+":q8_0", large)
	pulls(t, c, "hf.co/"+repo+"/tiny-Q8_0.gguf", large)
	before := len(s.Requests())
	pulls(t, c, "hf.co/"+repo+":Q8_0", large)
	if n := len(s.Requests()) - before; n != 0 {
		t.Errorf("a file that is there: %d requests", n)
	}
	if _, err := c.Pull(t.Context(), ref(t, "hf.co/"+repo+":Q5_K_M")); err == nil || err.Error() != "hf.co/acme/Tiny-GGUF:Q5_K_M: it has no Q5_K_M, but Q4_K_M, Q8_0" {
		t.Errorf("error %v", err)
	}
	if files, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*.part.json")); err != nil || files != nil {
		t.Errorf("left %v, %v", files, err)
	}
	l := library.Library{Dir: c.Dir}
	m, err := l.Find("tiny-gguf:q8_0")
	if err != nil || m.Digest != hub.SHA256(large) || m.Problem != "" {
		t.Errorf("%+v, %v", m, err)
	}
}

// TestTokens holds that a token goes to the hub alone.
func TestTokens(t *testing.T) {
	b := model(t, 40)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}, Gated: map[string]bool{repo: true}, Token: "hf_secret"}
	c := serve(t, s)
	for _, step := range []struct {
		token    string
		noAccess bool
		repo     string
		want     string
	}{
		{"", false, repo, `is gated \(401\): ask for access at .*, then set HF_TOKEN`},
		{"", false, "acme/none", `no such repository, or it is private \(401\): for a private one set HF_TOKEN`},
		{"hf_other", false, repo, `does not know the token in HF_TOKEN`},
		{"hf_secret", true, repo, `the account of HF_TOKEN has no access yet \(403\): ask for it at `},
		{"hf_secret", false, "acme/none", `no such repository that HF_TOKEN may see \(404\)`},
		{"hf_secret", false, repo, ""},
	} {
		c.Token, s.NoAccess = step.token, step.noAccess
		_, err := c.Pull(t.Context(), ref(t, "hf.co/"+step.repo))
		if !matches(err, step.want) {
			t.Errorf("token %q, %s: %v, want %s", step.token, step.repo, err, step.want)
		}
	}
	if len(s.Leaked) > 0 {
		t.Errorf("the CDN got %q", s.Leaked)
	}
}

func TestSplitModel(t *testing.T) {
	count, tensors := gguf.KV{Key: "split.count", Value: uint16(2)}, gguf.KV{Key: "split.tensors.count", Value: int32(2)}
	one := model(t, 50, count, tensors, gguf.KV{Key: "split.no", Value: uint16(0)})
	two := model(t, 60, count, gguf.KV{Key: "split.no", Value: uint16(1)})
	s := &hub.Server{Files: map[string]map[string][]byte{
		repo:        {"F16/big-F16-00001-of-00002.gguf": one, "F16/big-F16-00002-of-00002.gguf": two},
		"acme/half": {"big-F16-00001-of-00003.gguf": one, "big-F16-00003-of-00003.gguf": two},
	}}
	c := serve(t, s)
	path := pulls(t, c, "hf.co/"+repo, one)
	if m, err := (&library.Library{Dir: c.Dir}).Find("hf.co/" + repo + ":F16"); err != nil || m.Path != path || len(m.Files) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	_, err := c.Pull(t.Context(), ref(t, "hf.co/acme/half"))
	if !matches(err, `lacks a part of the model: big-F16-00002-of-00003.gguf`) {
		t.Error(err)
	}
	pulls(t, c, s.URL+"/"+repo+"/resolve/main/F16/big-F16-00001-of-00002.gguf", one)
}

// TestTrouble holds that a pull ends well, or says why not, whatever the CDN does.
func TestTrouble(t *testing.T) {
	b := model(t, 100)
	cut := func(w http.ResponseWriter) { // some bytes, and the line is cut
		w.Header().Set("Content-Length", "16384")
		w.WriteHeader(http.StatusPartialContent)
		panic(http.ErrAbortHandler)
	}
	for name, c := range map[string]struct {
		server *hub.Server
		cdn    func(w http.ResponseWriter, r *http.Request, n int) bool
		want   string
	}{
		"busy API":          {server: &hub.Server{Busy: 2}},
		"signatures expire": {server: &hub.Server{MaxUses: 1}},
		"cut lines":         {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { return cutAfter(w, r, n%3 != 0, b, 5000) }},
		"cut at once": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			if n < 3 {
				cut(w)
			}
			return true
		}},
		"cut for good":     {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { cut(w); return false }, want: "the line was cut"},
		"server errors":    {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { return n > 3 || status(w, 503, "") }},
		"busy CDN":         {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { return n > 0 || status(w, 429, "1") }},
		"busy for an hour": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { return status(w, 429, "3600") }, want: "429 too many requests: it asks to wait for 1h0m0s"},
		"no ranges":        {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { w.Write(b); return false }},
		"another range": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			r.Header.Set("Range", "bytes=1-100")
			return true
		}, want: `asked for bytes \d+-\d+ of \d+, the server sends "bytes 1-100/`},
		"another size": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool { return ranged(w, r, append(b, 0)) }, want: `asked for bytes`},
		"a page": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			return ranged(w, r, bytes.Repeat([]byte("<html>"), len(b))[:len(b)])
		}, want: "sends no GGUF file"},
		"wrong bytes": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			return ranged(w, r, append(b[:len(b)-1:len(b)-1], b[len(b)-1]^1))
		}, want: "m-Q4_0.gguf: wrong bytes, thrown away: its SHA-256 is [0-9a-f]{64}, and [0-9a-f]{64} was meant"},
		"to another address": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			http.Redirect(w, r, "http://192.0.2.1/x", http.StatusFound)
			return false
		}, want: "sends elsewhere, which is not safe"},
		"in circles": {cdn: func(w http.ResponseWriter, r *http.Request, n int) bool {
			http.Redirect(w, r, r.URL.String(), http.StatusFound)
			return false
		}, want: "from place to place|403"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := c.server
			if s == nil {
				s = &hub.Server{}
			}
			s.CDN, s.Files = c.cdn, map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}
			client := serve(t, s)
			path, err := client.Pull(t.Context(), ref(t, "hf.co/"+repo))
			if !matches(err, c.want) {
				t.Fatalf("error %v, want %s", err, c.want)
			}
			if got, readErr := os.ReadFile(path); err == nil && (readErr != nil || !bytes.Equal(got, b)) {
				t.Errorf("%d bytes, %v", len(got), readErr)
			}
			if err != nil {
				if _, err := os.Stat(filepath.Join(client.Dir, "hf.co", repo, "m-Q4_0.gguf")); err == nil {
					t.Error("there is a file")
				}
			}
		})
	}
}

// cutAfter sends some bytes of what is asked for, and cuts the line, if it is to.
func cutAfter(w http.ResponseWriter, r *http.Request, cut bool, b []byte, n int) bool {
	if !cut {
		return true
	}
	rec := httptest.NewRecorder()
	http.ServeContent(rec, r, "", time.Time{}, bytes.NewReader(b))
	for k, v := range rec.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(rec.Code)
	w.Write(rec.Body.Bytes()[:min(n, rec.Body.Len())])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func ranged(w http.ResponseWriter, r *http.Request, b []byte) bool {
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
	return false
}

func status(w http.ResponseWriter, code int, after string) bool {
	if after != "" {
		w.Header().Set("Retry-After", after)
	}
	w.WriteHeader(code)
	return false
}

// TestSilence holds that a server that stops to send costs a while, not forever.
func TestSilence(t *testing.T) {
	b := model(t, 40)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}}
	s.CDN = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n == 0 {
			w.Header().Set("Content-Length", "100")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}
		return true
	}
	c := serve(t, s)
	c.stall = 100 * time.Millisecond
	pulls(t, c, "hf.co/"+repo, b)
}

// TestGoingOn holds that what was fetched before an interrupt is not fetched again, nor is it trusted for another file.
func TestGoingOn(t *testing.T) {
	b := model(t, 400)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}}
	ctx, cancel := context.WithCancel(t.Context())
	s.CDN = func(w http.ResponseWriter, r *http.Request, n int) bool {
		if n == 15 {
			cancel()
		}
		return true
	}
	c := serve(t, s)
	if _, err := c.Pull(ctx, ref(t, "hf.co/"+repo)); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if m, err := (&library.Library{Dir: c.Dir}).Find("tiny-gguf:q4_0"); err != nil || m.Problem != library.Unfinished {
		t.Errorf("%+v, %v", m, err)
	}
	first := len(s.Requests())
	pulls(t, c, "hf.co/"+repo, b)
	pieces := (len(b) + int(c.chunk) - 1) / int(c.chunk)
	if rest := len(s.Requests()) - first; first < 15 || rest > pieces-first+workers+1 {
		t.Errorf("%d requests, then %d, of %d pieces", first, rest, pieces)
	}

	// A new version of the file, of the same size, begins anew.
	path := filepath.Join(c.Dir, "hf.co", repo, "m-Q4_0.gguf")
	place := filepath.Join("hf.co", repo, "m-Q4_0.gguf")
	old := newState(item{size: int64(len(b)), sum: sum{"sha256", hub.SHA256(b)}}, c.chunk)
	old.Done[1] = c.chunk
	if err := errors.Join(old.save(path), os.WriteFile(library.PartPath(path), make([]byte, len(b)), 0o666)); err != nil {
		t.Fatal(err)
	}
	for _, it := range []item{
		{place: place, size: old.Size, sum: sum{"sha256", hub.SHA256(nil)}},
		{place: place, size: old.Size + 1, sum: old.Sum},
		{place: place, size: old.Size, sum: old.Sum, etag: "x"},
	} {
		if loadState(path, it, c.chunk) != nil {
			t.Errorf("goes on with another file: %+v", it)
		}
	}
	if s := loadState(path, item{place: place, size: old.Size, sum: old.Sum}, c.chunk); s == nil || s.there() != c.chunk {
		t.Errorf("does not go on: %+v", s)
	}
	old.Done[1]++
	if err := old.save(path); err != nil {
		t.Fatal(err)
	}
	if loadState(path, item{place: place, size: old.Size, sum: old.Sum}, c.chunk) != nil {
		t.Error("believes in more bytes than a piece has")
	}
}

// TestTwoAtATime holds that of two pulls of a file one fetches it, and both have it.
func TestTwoAtATime(t *testing.T) {
	b := model(t, 200)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}}
	s.CDN = func(http.ResponseWriter, *http.Request, int) bool { time.Sleep(10 * time.Millisecond); return true }
	c := serve(t, s)
	var all sync.WaitGroup
	for range 3 {
		all.Go(func() {
			other := client(t)
			other.Dir, other.Hub = c.Dir, s.URL
			if _, err := other.Pull(t.Context(), ref(t, "hf.co/"+repo)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n, pieces := len(s.Requests()), (len(b)+int(c.chunk)-1)/int(c.chunk); n != pieces {
		t.Errorf("%d requests for %d pieces", n, pieces)
	}
}

func TestFullDisk(t *testing.T) {
	b := model(t, 200)
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {"m-Q4_0.gguf": b}}}
	c := serve(t, s)
	c.free = func(string) (int64, error) { return reserve + int64(len(b)) - 1, nil }
	_, err := c.Pull(t.Context(), ref(t, "hf.co/"+repo))
	if !matches(err, `64.\d\d MiB are needed, and the disk has 64.\d\d MiB free`) || len(s.Requests()) > 0 {
		t.Errorf("%d requests, %v", len(s.Requests()), err)
	}
	c.free = disk.Free
	written := 0
	var mu sync.Mutex
	c.writeAt = func(f *os.File, p []byte, off int64) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		if written += len(p); written > 100<<10 {
			return 0, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
		}
		return f.WriteAt(p, off)
	}
	_, err = c.Pull(t.Context(), ref(t, "hf.co/"+repo))
	if !matches(err, `the disk is full; \d\d\.\d\d KiB of 2\d\d.\d\d KiB stay, and the same command goes on`) {
		t.Error(err)
	}
	c.writeAt = (*os.File).WriteAt
	first := len(s.Requests())
	pulls(t, c, "hf.co/"+repo, b)
	if again := len(s.Requests()) - first; again > 9 {
		t.Errorf("%d requests after the disk had room", again)
	}
}

func TestPullFromARegistry(t *testing.T) {
	one, two := model(t, 40), model(t, 50)
	s := &hub.Server{Tags: map[string][]byte{"library/qwen3:8b": one, "library/qwen3:latest": two, "me/own:v1": one}}
	c := serve(t, s)
	if path := pulls(t, c, "qwen3:8b", one); !strings.HasSuffix(filepath.ToSlash(path), "/ollama/library/qwen3/8b.gguf") {
		t.Error(path)
	}
	pulls(t, c, "qwen3", two)
	pulls(t, c, "ollama.com/me/own:v1", one)
	s.Tags["library/qwen3:8b"] = two // tags move
	pulls(t, c, "qwen3:8b", two)
	if _, err := c.Pull(t.Context(), ref(t, "qwen3:9b")); !matches(err, `^qwen3:9b: the registry has no model of this name and tag \(404\)$`) {
		t.Error(err)
	}
	for name, m := range map[string]string{
		"adapter": `{"layers":[{"mediaType":"application/vnd.ollama.image.adapter","digest":"sha256:0","size":1}]}`,
		"none":    `{"layers":[]}`,
		"digest":  `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../x","size":1}]}`,
		"size":    `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + hub.SHA256(one) + `","size":-5}]}`,
		"huge":    `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:` + hub.SHA256(one) + `","size":9000000000000000000}]}`,
		"text":    `<html>`,
	} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, m) }))
		c.Registry = web.URL
		if _, err := c.Pull(t.Context(), ref(t, "x:y")); err == nil {
			t.Errorf("%s: no error", name)
		}
		web.Close()
	}
}

func TestPullFromAURL(t *testing.T) {
	b := model(t, 100)
	etag := `"v1"`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", etag)
		switch r.URL.Path {
		case "/a/b/m.gguf":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b))
		case "/broken.gguf":
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(b[:100]))
		case "/secret.gguf":
			w.WriteHeader(http.StatusUnauthorized)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(web.Close)
	c := client(t)
	path := pulls(t, c, web.URL+"/a/b/m.gguf", b)
	if r, ok := library.ReadRecord(path); !ok || r.SHA256 != hub.SHA256(b) || r.ETag != etag {
		t.Errorf("%+v", r)
	}
	etag, b = `"v2"`, model(t, 100)
	pulls(t, c, web.URL+"/a/b/m.gguf", b)
	for name, want := range map[string]string{"broken": "thrown away", "secret": "401 unauthorized: it wants a login", "none": "404 not found"} {
		_, err := c.Pull(t.Context(), ref(t, web.URL+"/"+name+".gguf"))
		if !matches(err, want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if _, err := os.Stat(filepath.Join(c.Dir, "web")); name == "broken" && err == nil {
			if m, err := (&library.Library{Dir: c.Dir}).Find("broken"); err == nil {
				t.Errorf("it stays: %+v", m)
			}
		}
	}
}

func TestEnvironment(t *testing.T) {
	for value, want := range map[string]string{
		"": defaultHub, "https://hub.example/": "https://hub.example", "hub.example": "https://hub.example", "http://127.0.0.1:1": "http://127.0.0.1:1",
		"http://hub.example": "!", "https://me:pw@hub.example": "!", "ftp://x": "!",
	} {
		t.Setenv("HF_ENDPOINT", value)
		c, err := New("x")
		if (err != nil) != (want == "!") || err == nil && c.Hub != want {
			t.Errorf("HF_ENDPOINT=%q: %+v, %v, want %s", value, c, err, want)
		}
	}
}
