// Package agents runs coding agents, as npm has them, against the server: each is given a task for which it
// must call a tool of its own, and must tell what the tool said.
package agents

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/internal/hosted"
	"github.com/zincc-dev/zincc/runtime/api"
)

const (
	task = "Run the command `echo answer-$((40+2))` in a shell, and tell me what it printed."
	want = "answer-42"
	// said is what the model says when it has read what the tool printed.
	said = "The command printed answer-42."
)

// An agent is a row of the table of agents.
type agent struct {
	name  string
	shell string // its tool that runs a command
	param string // of the tool
	args  []string
	env   []string
	files map[string]string // in its home, by path
}

// agents returns the table for a server at url. MODEL is what they call the model.
func agents(url string) []agent {
	return []agent{
		{
			name: "claude", shell: "Bash", param: "command",
			args: []string{"-p", task, "--model", "scripted", "--allowedTools", "Bash", "--output-format", "text"},
			env:  []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		},
		{
			name: "codex", shell: "exec_command", param: "cmd",
			args: []string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "scripted", task},
			files: map[string]string{".codex/config.toml": fmt.Sprintf(`model_provider = "zincrun"
[model_providers.zincrun]
name = "zincrun"
base_url = "%s/v1"
wire_api = "responses"
`, url)},
		},
		{
			name: "opencode", shell: "bash", param: "command",
			args: []string{"run", "-m", "zincrun/scripted", task},
			env:  []string{"OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1"},
			files: map[string]string{".config/opencode/opencode.json": fmt.Sprintf(`{"$schema": "https://opencode.ai/config.json", "autoupdate": false, "permission": {"bash": "allow"}, "provider": {"zincrun": {
"npm": "@ai-sdk/openai-compatible", "name": "zincrun", "options": {"baseURL": "%s/v1"}, "models": {"scripted": {"name": "scripted"}}}}}`, url)},
		},
		{
			name: "qwen", shell: "run_shell_command", param: "command",
			args: []string{"-p", task, "--yolo", "--auth-type", "openai", "--model", "scripted"},
			env:  []string{"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=none", "OPENAI_MODEL=scripted"},
			// It would wait at its end for a service that there is not.
			files: map[string]string{".qwen/settings.json": `{"privacy": {"usageStatisticsEnabled": false}, "general": {"enableAutoUpdate": false}}`},
		},
	}
}

// answer is the model: it calls the shell of whoever asks, and then says what that printed.
func answer(prompt string) string {
	turn := prompt[strings.LastIndex(prompt, "<|im_start|>user"):]
	switch {
	case strings.Contains(turn, "<tool_response>") && strings.Contains(turn, want):
		return "<think>\nThe tool has answered.\n</think>\n\n" + said
	case strings.Contains(turn, "<tool_response>"):
		return "The tool failed."
	}
	for _, a := range agents("") {
		if strings.Contains(prompt, `"name": "`+a.shell+`"`) {
			return fmt.Sprintf("<think>\nI run it.\n</think>\n\nI run the command.\n<tool_call>\n{\"name\": %q, \"arguments\": {%q: \"echo answer-$((40+2))\", \"description\": \"Adds.\"}}\n</tool_call>", a.shell, a.param)
		}
	}
	return "A sum in the shell" // a title
}

func TestAgents(t *testing.T) {
	if os.Getenv(insideVar) == "" {
		if _, err := os.Stat("node_modules"); err != nil {
			t.Fatal("run npm ci in internal/conform/agents, or make conform-agents")
		}
		if err := alone("TestAgents").Run(); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := loopback(); err != nil {
		t.Fatal(err)
	}
	if _, err := net.DialTimeout("tcp", "192.0.2.1:80", time.Second); err == nil {
		t.Fatal("this is no network of its own")
	}
	var log logged
	server := api.New(api.Options{Served: []*api.Served{hosted.Scripted(t, "scripted", 1<<18, 2, answer)}, Loopback: true, Log: slog.New(slog.NewJSONHandler(&log, nil))})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: server}
	go web.Serve(listener)
	defer web.Close()
	for _, a := range agents("http://" + listener.Addr().String()) {
		t.Run(a.name, func(t *testing.T) { a.run(t, &log) })
	}
}

func (a agent) run(t *testing.T, log *logged) {
	home, work := t.TempDir(), t.TempDir()
	for path, text := range a.files {
		path = filepath.Join(home, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program, err := filepath.Abs(filepath.Join("node_modules/.bin", a.name))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, a.args...)
	cmd.Dir = work
	cmd.Env = append([]string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=dumb", "NO_COLOR=1", "CI=1"}, a.env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	begun := time.Now()
	err = cmd.Run()
	requests := log.take()
	if err != nil || !strings.Contains(out.String(), said) {
		t.Fatalf("%v after %.1f s, %.1f s of them computing\n%s\n%s\n%s", err, time.Since(begun).Seconds(), cmd.ProcessState.UserTime().Seconds(), out.String(), errs.String(), requests)
	}
	for line := range strings.Lines(requests) {
		if !strings.Contains(line, `"status":200`) && strings.Contains(line, `"msg":"request"`) {
			t.Errorf("a request failed: %s", line)
		}
	}
	t.Logf("%s in %.1f s, %d requests", a.name, time.Since(begun).Seconds(), strings.Count(requests, `"msg":"request"`))
}

// logged is what the server logged.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.buf.Reset()
	return l.buf.String()
}
