package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// lines are the commands. MODEL is the model, HOST and DEVICE its plans for the host and for
// llvmpipe, MANY one with all candidates; OUT is a file to write and OUTDIR a folder.
var lines = []string{
	"zincc compile MODEL --target host -o OUT",
	"zincc compile MODEL --target llvmpipe -o OUT",
	"zincc compile MODEL --target llvmpipe --candidates -o OUT",
	"zincc compile MODEL --target host --embed-weights -o OUT",
	"zincc compile MODEL --target llvmpipe --emit-go OUTDIR -o OUT",
	"zincc compile MODEL --target host --stop-after fuse -o OUT",
	"zincc dump MODEL --stage place --target llvmpipe",
	"zincc dump --code DEVICE",
	"zincc inspect DEVICE",
	"zincc inspect DEVICE --html OUT",
	"zincc diff HOST DEVICE",
	"zincc diff DEVICE MANY --html OUT",
	"zincc estimate MODEL --target sm_90",
	"zincc check DEVICE",
	"zincc targets",
	"zincc tune MODEL --target gfx1201 -o OUT",
	"zincrun HOST -p func -n 300",
	"zincrun DEVICE -p func -n 300",
	"zincrun HOST -n 24",
	"zincrun DEVICE -n 24",
	"zincrun HOST -f TEXT -n 100 --temp 1 --json",
	"zincrun logits HOST -f TEXT -o OUT",
	"zincrun logits DEVICE -f TEXT -o OUT",
	"zincrun perplexity HOST -f TEXT --window 64",
	"zincrun perplexity DEVICE -f TEXT --window 64",
	"zincrun tokenize HOST -f TEXT",
	"zincrun profile DEVICE --entry prefill/512 -r 20",
	"zincrun profile DEVICE -r 100 --trace OUT",
	"zincrun tune MANY --entry decode/1 --seconds 1 -o OUT",
	"zincrun verify DEVICE --entry decode/2",
	"zincrun probe --device vulkan:0 --json",
	"zincrun bench HOST -p 64 -n 32 -r 2",
	"zincrun bench DEVICE -p 64 -n 32 -r 2",
}

// longest bounds the time before a signal, and patience that after it.
const (
	longest  = 4 * time.Second
	patience = time.Minute
)

// How a command ended.
const (
	ended = "ended"
	told  = "told"
	early = "early"
)

// bench is where commands are tried.
type bench struct {
	dir, bin, model string
	names           *strings.Replacer
	trials          []trial
}

// trial is a command with how long it takes when it is left alone and what it writes then,
// empty if it writes no file or takes longer than is waited for.
type trial struct {
	line   string
	takes  time.Duration
	output []byte
}

// prepare compiles the plans, and tries every command once.
func (b *bench) prepare(only string) error {
	in := func(name string) string { return filepath.Join(b.dir, name) }
	b.names = strings.NewReplacer("MODEL", b.model, "HOST", in("host.bin"), "DEVICE", in("device.bin"), "MANY", in("many.bin"),
		"TEXT", in("text.txt"), "OUTDIR", "source", "OUT", "out")
	text := strings.Repeat("func main() { if a := b; a < b { return } else { panic(a) } }\n", 16)
	if err := os.WriteFile(in("text.txt"), []byte(text), 0o666); err != nil {
		return err
	}
	for _, line := range []string{
		"zincc compile MODEL --target host -o HOST", "zincc compile MODEL --target llvmpipe -o DEVICE",
		"zincc compile MODEL --target llvmpipe --candidates -o MANY",
	} {
		cmd := b.command(line, b.dir)
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %v: %s", line, err, out)
		}
	}
	for _, line := range lines {
		if !strings.Contains(line, only) {
			continue
		}
		at, err := os.MkdirTemp(b.dir, "trial-")
		if err != nil {
			return err
		}
		cmd, start := b.command(line, at), time.Now()
		stop := time.AfterFunc(longest, func() { cmd.Process.Kill() })
		if out, err := cmd.CombinedOutput(); err != nil && time.Since(start) < longest {
			return fmt.Errorf("%s: %v: %s", line, err, out)
		}
		stop.Stop()
		output, _ := os.ReadFile(filepath.Join(at, "out"))
		b.trials = append(b.trials, trial{line, min(longest, time.Since(start)), output})
		os.RemoveAll(at)
	}
	return nil
}

// command is a line as a process in a folder; two lines are on its standard input.
func (b *bench) command(line, at string) *exec.Cmd {
	words := strings.Fields(line)
	for i := range words {
		words[i] = b.names.Replace(words[i])
	}
	cmd := exec.Command(filepath.Join(b.bin, words[0]), words[1:]...)
	cmd.Dir = at
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(b.dir, "cache"))
	cmd.Stdin = strings.NewReader("func main\nfunc Reverse\n")
	return cmd
}

// interrupt runs a trial, sends it a signal, and says how it ended and what was wrong with that.
func (b *bench) interrupt(t *trial, rng *rand.Rand) (how, problem string) {
	at, err := os.MkdirTemp(b.dir, "trial-")
	if err != nil {
		return "", err.Error()
	}
	defer os.RemoveAll(at)
	signal := syscall.SIGINT
	if rng.IntN(2) == 0 {
		signal = syscall.SIGTERM
	}
	// Every other time the output is there already.
	var before []byte
	if len(t.output) > 0 && rng.IntN(2) == 0 {
		before = t.output
		if err := os.WriteFile(filepath.Join(at, "out"), before, 0o666); err != nil {
			return "", err.Error()
		}
	}
	after := time.Duration(rng.Int64N(int64(t.takes)))
	cmd := b.command(t.line, at)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		return "", err.Error()
	}
	time.Sleep(after)
	_ = cmd.Process.Signal(signal) // it may have ended
	sent := time.Now()
	kill := time.AfterFunc(patience, func() { cmd.Process.Kill() })
	_ = cmd.Wait() // the state says it better
	kill.Stop()
	how, problem = judge(cmd.ProcessState, signal, stderr.String())
	if problem == "" {
		problem = left(at, len(before) > 0, how == ended, t)
	}
	if problem != "" {
		problem = fmt.Sprintf("FAIL %s: %s after %v: %s (%v later): %s", t.line, signal, after.Round(time.Millisecond), cmd.ProcessState, time.Since(sent).Round(time.Millisecond), problem)
	}
	return how, problem
}

// judge says how a process ended that got the signal, and what was wrong with that.
func judge(state *os.ProcessState, signal syscall.Signal, stderr string) (how, problem string) {
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == signal && stderr == "":
		return early, ""
	case state.ExitCode() == 0:
		return ended, ""
	case state.ExitCode() != 1:
		return "", "stderr: " + stderr
	case !saysSo(stderr):
		return told, "want one line that says so on standard error, have: " + stderr
	}
	return told, ""
}

// left says what a process has left in its folder that it should not have. there says that its
// output was there before, whole that it has ended well.
func left(at string, there, whole bool, t *trial) string {
	entries, err := os.ReadDir(at)
	if err != nil {
		return err.Error()
	}
	has := false
	for _, e := range entries {
		switch e.Name() {
		case "out":
			has = true
		case "source":
		default:
			return fmt.Sprintf("leaves %q", e.Name())
		}
	}
	data, err := os.ReadFile(filepath.Join(at, "out"))
	switch {
	case !has && (whole && len(t.output) > 0 || there):
		return "the output is not there"
	case has && (err != nil || len(data) == 0):
		return fmt.Sprintf("the output is empty: %v", err)
	case has && there && !whole && t.fixed() && string(data) != string(t.output):
		return "the output is not what it was"
	}
	return ""
}

// fixed reports whether the command writes the same each time.
func (t *trial) fixed() bool {
	return strings.HasPrefix(t.line, "zincc ") || strings.Contains(t.line, " logits ")
}

// saysSo reports whether the last line says that the program was interrupted, and no line before it is an
// error: of a conversation there may be rates of answers that had ended.
func saysSo(stderr string) bool {
	lines := strings.Split(strings.TrimSuffix(stderr, "\n"), "\n")
	for i, line := range lines {
		said := strings.HasPrefix(line, "zincc: ") || strings.HasPrefix(line, "zincrun: ")
		if said != (i == len(lines)-1) {
			return false
		}
	}
	return strings.HasSuffix(lines[len(lines)-1], "interrupted")
}
