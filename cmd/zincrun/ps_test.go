package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPs: a model that is not loaded yet has its stage in place of its state.
func TestPs(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"models": [{"model": "a", "status": "loading", "stage": "compiling, 45 %, building kernels", "progress": 0.45},
			{"model": "b", "status": "loaded", "device": "cpu (2 threads)", "ctx": 2048, "memory": {"weights": 1048576}}, {"model": "c", "status": "unloaded"}]}`)
	}))
	defer server.Close()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "zincrun")
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(name, "ps", "--url", server.URL).CombinedOutput()
	lines := strings.Split(string(out), "\n")
	if err != nil || len(lines) != 5 || !strings.HasPrefix(lines[2], "  a      compiling, 45 %, building kernels") || !strings.HasPrefix(lines[3], "  b      loaded ") {
		t.Errorf("%v: %s", err, out)
	}
}
