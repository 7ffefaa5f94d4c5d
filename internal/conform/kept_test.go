package conform

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestKeptOverKill kills a server and starts it again: the prompt goes on from what was kept, and has the same answer;
// so it does behind another kill and with every file cut short, which is dropped. A hybrid goes on where a tail is
// kept.
func TestKeptOverKill(t *testing.T) {
	t.Run("dense", func(t *testing.T) { testKeptOverKill(t, plan, "*-"+strings.Repeat("[0-9a-f]", 32)) })
	t.Run("hybrid", func(t *testing.T) {
		hybrid := filepath.Join(t.TempDir(), "gopher-moe.bin")
		cmd := exec.Command(filepath.Join(filepath.Dir(zincrun), "zincc"), "compile", root+"/testdata/models/gopher-moe-q4_k_m.gguf", "--target", "host", "-o", hybrid)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		testKeptOverKill(t, hybrid, "*.tail")
	})
}

// testKeptOverKill kills servers of a plan when a file whose name has a form is whole.
func testKeptOverKill(t *testing.T, plan, written string) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	dir := filepath.Join(t.TempDir(), "kept")
	body := fmt.Sprintf(`{"prompt": %q, "max_tokens": 4, "temperature": 0}`, strings.Repeat("func main() { } ", 40))
	var text string
	run := func() (cached float64) {
		cmd := exec.Command(zincrun, "serve", "--port", "0", "--device", "host", plan, "--cache-dir", dir)
		stderr, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer cmd.Wait()
		defer cmd.Process.Signal(syscall.SIGKILL)
		var line struct{ Msg, URL string }
		in := bufio.NewScanner(stderr)
		for line.Msg != "load" && in.Scan() {
			json.Unmarshal(in.Bytes(), &line)
		}
		go io.Copy(io.Discard, stderr)
		resp, err := http.Post(line.URL+"/v1/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var reply struct {
			Choices []struct{ Text string }
			Usage   struct {
				Details struct {
					Cached float64 `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.NewDecoder(resp.Body).Decode(&reply); err != nil || len(reply.Choices) != 1 {
			t.Fatal(reply, err)
		}
		if text == "" {
			text = reply.Choices[0].Text
		} else if text != reply.Choices[0].Text {
			t.Errorf("%q, before it was %q", reply.Choices[0].Text, text)
		}
		for end := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) { // written when nobody asks
			files, _ := filepath.Glob(filepath.Join(dir, written))
			if len(files) > 0 {
				return reply.Usage.Details.Cached
			}
			if time.Now().After(end) {
				t.Fatal("nothing is kept")
			}
		}
	}
	if n := run(); n != 0 {
		t.Errorf("%v tokens are found at first", n)
	}
	if n := run(); n == 0 {
		t.Error("nothing is found behind a kill")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if err := os.Truncate(f, 100); err != nil {
			t.Fatal(err)
		}
	}
	if n := run(); n != 0 {
		t.Errorf("%v tokens are found of files that were cut off", n)
	}
}
