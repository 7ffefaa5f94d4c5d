// Package conform holds the server against its clients: SDKs, the description of OpenAI's
// API, and a browser. Its tests run the programs as they are, on the chat model in testdata.
package conform

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

var (
	openapi = flag.String("openapi", os.Getenv("OPENAPI"), "OpenAI's openapi.yml; without it a reduced copy of the schemas is taken")
	update  = flag.Bool("update", false, "write screenshots and the reduced schemas anew")
)

const root = "../.."

// server is the URL of the server under test, zincrun the program that it runs, plan that of the chat model.
var server, zincrun, plan string

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	dir, err := os.MkdirTemp("", "conform")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	build := exec.Command("go", "build", "-o", dir, "./cmd/...")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("go build: %w: %s", err, out)
	}
	var target, device string
	plan, target, device = filepath.Join(dir, "gopher-chat.bin"), "host", "host" // slow enough to be interrupted
	if *update {
		target, device = "native", "auto" // as people see it
	}
	compile := exec.Command(filepath.Join(dir, "zincc"), "compile", root+"/testdata/models/gopher-chat-q4_k_m.gguf", "--target", target, "--slots", "4", "-o", plan)
	if out, err := compile.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("zincc compile: %w: %s", err, out)
	}
	zincrun = filepath.Join(dir, "zincrun")
	vectors := filepath.Join(dir, vectorModel+".gguf")
	if err := writeVectorModel(vectors); err != nil {
		return 0, err
	}
	stop, err := serve(zincrun, device, plan, vectors)
	if err != nil {
		return 0, err
	}
	code := m.Run()
	return code, stop()
}

// serve starts the server and returns what ends it: it must drain and exit with 0.
func serve(program, device string, models ...string) (stop func() error, err error) {
	cmd := exec.Command(program, append([]string{"serve", "--port", "0", "--device", device}, models...)...)
	lines, err := cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	in := bufio.NewScanner(lines)
	in.Buffer(nil, 1<<20)
	loaded := false
	for !loaded && in.Scan() {
		var line struct{ Msg, URL string }
		json.Unmarshal(in.Bytes(), &line)
		if line.Msg == "listen" {
			server = line.URL
		}
		loaded = line.Msg == "load" || line.Msg == "listen" && len(models) > 1 // which are loaded when they are asked
		if line.Msg == "" {
			fmt.Fprintln(os.Stderr, in.Text())
		}
	}
	if !loaded {
		return nil, fmt.Errorf("zincrun serve: %w", cmd.Wait())
	}
	go io.Copy(io.Discard, lines)
	return func() error {
		cmd.Process.Signal(syscall.SIGTERM)
		done := make(chan error, 1)
		go func() { done <- cmd.Wait() }()
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("zincrun serve: %w", err)
			}
			return nil
		case <-time.After(20 * time.Second):
			cmd.Process.Kill()
			return fmt.Errorf("zincrun serve does not end")
		}
	}, nil
}
