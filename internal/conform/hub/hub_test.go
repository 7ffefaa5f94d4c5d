// Package hub holds the hub of our own tests against those who know the real one: Hugging Face's client for Node, and
// llama-server. They fetch from it what zincrun pull does, and what they keep is found where it lies.
package hub

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hub"
	"github.com/zincc-dev/zincc/runtime/library"
	"github.com/zincc-dev/zincc/runtime/pull"
)

var llama = flag.String("llama", "llama-server", "command that runs llama-server")

const repo = "acme/Gopher-GGUF"

func start(t *testing.T) (*hub.Server, []byte) {
	t.Helper()
	model, err := os.ReadFile("../../../testdata/models/gopher-chat-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	s := &hub.Server{Files: map[string]map[string][]byte{repo: {
		"gopher-Q4_K_M.gguf": model, "README.md": []byte("# Gopher\n"), "config.json": []byte("{}"), "sub/one.txt": []byte("1"), "sub/two.txt": []byte("2"),
	}}}
	s.Start()
	t.Cleanup(s.Close)
	return s, model
}

// pulled fetches the model as zincrun pull does, and returns its sum.
func pulled(t *testing.T, s *hub.Server) string {
	t.Helper()
	t.Setenv("HF_ENDPOINT", s.URL)
	c, err := pull.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	ref, err := library.ParseRef("hf.co/" + repo)
	if err != nil {
		t.Fatal(err)
	}
	path, err := c.Pull(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}
	return sumOf(t, path)
}

func sumOf(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return hub.SHA256(b)
}

// found holds that the library finds in cache, a cache of Hugging Face's layout, a model of that sum.
func found(t *testing.T, cache, sum string) {
	t.Helper()
	t.Setenv("HF_HUB_CACHE", cache)
	m, err := (&library.Library{Dir: t.TempDir()}).Find("hf.co/" + repo + ":Q4_K_M")
	if err != nil || m.Where != "Hugging Face" || sumOf(t, m.Path) != sum {
		t.Errorf("in the cache: %+v, %v", m, err)
	}
}

func TestNode(t *testing.T) {
	s, model := start(t)
	sum, cache := pulled(t, s), t.TempDir()
	out, err := exec.Command("node", "fetch.mjs", s.URL, repo, cache).Output()
	if err != nil {
		t.Fatalf("%v: %s (make conform-hub installs the client)", err, err.(*exec.ExitError).Stderr)
	}
	got := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(out)), "\n"), func(line string) bool { return strings.HasPrefix(line, "Downloading ") })
	if want := fmt.Sprintf("gopher-Q4_K_M.gguf %d %s", len(model), sum); len(got) != 5 || !slices.Contains(got, want) {
		t.Errorf("fetched\n%s\nwant %s and four others", out, want)
	}
	found(t, cache, sum)
}

func TestLlamaServer(t *testing.T) {
	s, _ := start(t)
	sum, cache := pulled(t, s), t.TempDir()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().(*net.TCPAddr)
	l.Close()
	words := append(strings.Fields(*llama), "-hf", repo+":Q4_K_M", "--host", "127.0.0.1", "--port", fmt.Sprint(address.Port), "--device", "none", "-c", "256", "-t", "1", "--no-warmup")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Env = append(os.Environ(), "HF_ENDPOINT="+s.URL+"/", "MODEL_ENDPOINT="+s.URL+"/", "LLAMA_CACHE="+cache, "HF_HUB_CACHE="+cache, "HF_TOKEN=")
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for healthy := false; !healthy; {
		select {
		case err := <-ended:
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("llama-server ends: %v: %s", err, text)
		case <-ctx.Done():
			cmd.Process.Kill()
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("llama-server is not ready: %s", text)
		case <-time.After(200 * time.Millisecond):
		}
		resp, err := http.Get("http://" + address.String() + "/health")
		if healthy = err == nil && resp.StatusCode == http.StatusOK; err == nil {
			resp.Body.Close()
		}
	}
	cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		cmd.Process.Kill()
	}
	if len(s.Leaked) > 0 {
		t.Errorf("tokens at the CDN: %q", s.Leaked)
	}
	found(t, cache, sum)
}
