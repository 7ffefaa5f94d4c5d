// Package clitest runs the testscripts of the commands: what they share beyond
// package testscript.
package clitest

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

// Run runs the scripts in testdata of a command's folder, which is two below the
// repository's root. Scripts see the two models of the repository as $GOPHER and
// $MOE. setup, if not nil, prepares every script.
//
// Commands beyond those of testscript:
//
//	fails CODE PATTERN CMD...      exits with CODE, prints one line that matches on stderr
//	interrupt CMD...               a while after it has started to wait or to print, ends at SIGINT within 5 s
//	terminate CMD...               the same with SIGTERM
//	converse CMD...                ends an answer at SIGINT, gives the next one and ends with standard input
//	size FILE BYTES                the file has that many bytes
//	damage FROM TO TENSOR          copies a model, of whose tensor of F32 the first element becomes NaN
//	forge FROM TO WHAT             copies a plan that is said to be of another compiler, or in which a constant or the vocabulary is another
//	truncate FROM TO BYTES         copies the first BYTES bytes; of a negative count, all but those
func Run(t *testing.T, setup func(e *testscript.Env) error) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	driver := os.Getenv("VK_DRIVER_FILES")
	if driver == "" {
		driver = "/usr/share/vulkan/icd.d/lvp_icd.json"
	}
	// Scripts and packages share what Mesa has compiled; all else is kept apart.
	shaders := os.Getenv("MESA_SHADER_CACHE_DIR")
	if caches, err := os.UserCacheDir(); shaders == "" && err == nil {
		shaders = caches
	}
	testscript.Run(t, testscript.Params{
		Dir: "testdata",
		Setup: func(e *testscript.Env) error {
			models := filepath.Join(root, "testdata", "models")
			e.Setenv("GOPHER", filepath.Join(models, "gopher-q4_k_m.gguf"))
			e.Setenv("MOE", filepath.Join(models, "gopher-moe-q4_k_m.gguf"))
			e.Setenv("CHAT", filepath.Join(models, "gopher-chat-q4_k_m.gguf"))
			e.Setenv("VK_DRIVER_FILES", driver)
			e.Setenv("XDG_CACHE_HOME", filepath.Join(e.WorkDir, ".cache"))
			e.Setenv("XDG_CONFIG_HOME", filepath.Join(e.WorkDir, ".config"))
			e.Setenv("MESA_SHADER_CACHE_DIR", shaders)
			e.Setenv("GOGC", os.Getenv("GOGC"))
			e.Setenv("GALLIVM_PERF", os.Getenv("GALLIVM_PERF"))
			if setup == nil {
				return nil
			}
			return setup(e)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"fails": fails, "interrupt": ends(os.Interrupt), "terminate": ends(syscall.SIGTERM), "converse": converse, "size": size, "truncate": truncate, "damage": damage, "forge": forge,
		},
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
	})
}

// CheckHelp holds that testdata/help.txtar asks every command of p for help, and
// that no flag's usage has a backquote, which pflag takes for the value's name.
func CheckHelp(t *testing.T, p *cli.Program) {
	script, err := os.ReadFile("testdata/help.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range p.Commands {
		line := strings.Join(strings.Fields("exec "+p.Name+" "+c.Name+" --help"), " ") + "\n"
		if !strings.Contains(string(script), line) {
			t.Errorf("testdata/help.txtar does not have %q", line)
		}
		flags := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
		c.Setup(flags)
		flags.VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				t.Errorf("%s %s --%s: backquote in %q", p.Name, c.Name, f.Name, f.Usage)
			}
		})
	}
}

// CheckOutput holds that the command in this folder prints through cli.Stdout and cli.Stderr, which
// notice that the disk is full, and give a terminal no control characters of others.
func CheckOutput(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`fmt\.Print|(Fprint\w*|Write\w*|New\w*)\(os\.Std(out|err)\b`)
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if direct.MatchString(line) {
				t.Errorf("%s:%d: not through cli.Stdout or cli.Stderr: %s", name, i+1, strings.TrimSpace(line))
			}
		}
	}
}

func fails(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 3 {
		ts.Fatalf("usage: fails CODE PATTERN CMD...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	re, err := regexp.Compile(args[1])
	ts.Check(err)
	err = ts.Exec(args[2], args[3:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != want {
		ts.Fatalf("%v, want exit code %d", err, want)
	}
	msg := ts.ReadFile("stderr")
	if strings.Count(msg, "\n") != 1 || !strings.HasSuffix(msg, "\n") || !re.MatchString(msg) {
		ts.Fatalf("standard error is not one line that matches %q", args[1])
	}
}

// command is a command of a script, not yet started.
func command(ts *testscript.TestScript, args []string) *exec.Cmd {
	path := ts.MkAbs(args[0])
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		if _, err := os.Stat(filepath.Join(dir, args[0])); err == nil {
			path = filepath.Join(dir, args[0])
			break
		}
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.MkAbs(".")
	for _, name := range []string{"PATH", "VK_DRIVER_FILES", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MESA_SHADER_CACHE_DIR", "GOGC", "GALLIVM_PERF"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

// converse asks the command for an answer, interrupts it, and asks for another.
func converse(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: converse CMD...")
	}
	cmd := command(ts, args)
	stdin, err := cmd.StdinPipe()
	ts.Check(err)
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	kill := time.AfterFunc(30*time.Second, func() { cmd.Process.Kill() })
	defer kill.Stop()
	ask := func() {
		_, err := io.WriteString(stdin, "func\n")
		ts.Check(err)
		if _, err := stdout.Read(make([]byte, 1<<12)); err != nil {
			ts.Fatalf("no answer: %v", err)
		}
	}
	ask()
	ts.Check(cmd.Process.Signal(os.Interrupt))
	notes := bufio.NewScanner(stderr)
	for notes.Scan() && !strings.Contains(notes.Text(), "interrupted") {
	}
	rest := make(chan struct{})
	go func() {
		for notes.Scan() {
		}
		close(rest)
	}()
	ask()
	ts.Check(stdin.Close())
	_, err = io.Copy(io.Discard, stdout)
	ts.Check(err)
	<-rest
	if err := cmd.Wait(); err != nil {
		ts.Fatalf("after an interrupted answer: %v", err)
	}
}

// ends returns the command that sends the signal.
func ends(signal os.Signal) func(ts *testscript.TestScript, neg bool, args []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg || len(args) == 0 {
			ts.Fatalf("usage: interrupt CMD..., terminate CMD...")
		}
		cmd := command(ts, args)
		// Standard input stays open and silent: a reader of it waits.
		stdin, err := cmd.StdinPipe()
		ts.Check(err)
		defer stdin.Close()
		_, err = stdin.Write([]byte("func\n"))
		ts.Check(err)
		stdout, err := cmd.StdoutPipe()
		ts.Check(err)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		ts.Check(cmd.Start())
		printed := make(chan struct{})
		drained := make(chan struct{})
		go func() {
			defer close(drained)
			b := make([]byte, 1<<12)
			n, err := stdout.Read(b)
			if n > 0 {
				close(printed)
			}
			for err == nil {
				_, err = stdout.Read(b)
			}
		}()
		select {
		case <-printed:
			time.Sleep(300 * time.Millisecond) // until it works or waits for input
		case <-drained:
		case <-time.After(2 * time.Second): // nothing to print before the end
		}
		start := time.Now()
		_ = cmd.Process.Signal(signal) // its code tells if it has ended before
		kill := time.AfterFunc(5*time.Second, func() { cmd.Process.Kill() })
		defer kill.Stop()
		<-drained
		err = cmd.Wait()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(stderr.String(), "interrupted") {
			ts.Fatalf("after %s: %v, want exit code 1 and a word of it: %s", time.Since(start), err, stderr.Bytes())
		}
	}
}

func size(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: size FILE BYTES")
	}
	info, err := os.Stat(ts.MkAbs(args[0]))
	ts.Check(err)
	if have := fmt.Sprint(info.Size()); have != args[1] {
		ts.Fatalf("%s has %s bytes, want %s", args[0], have, args[1])
	}
}

func damage(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: damage FROM TO TENSOR")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	f, err := gguf.Open(ts.MkAbs(args[0]))
	ts.Check(err)
	defer f.Close()
	tensor, ok := f.Tensor(args[2])
	if !ok || tensor.Type != ir.F32 {
		ts.Fatalf("%s has no tensor %s of F32", args[0], args[2])
	}
	binary.LittleEndian.PutUint32(data[tensor.Offset:], 0x7fc00000)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data, 0o666))
}

func forge(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: forge FROM TO WHAT")
	}
	p, err := plans.Read(ts.MkAbs(args[0]))
	ts.Check(err)
	switch args[2] {
	case "compiler":
		p.Header.Compiler = "zincc of somebody else"
	case "vocabulary":
		p.Header.Model.Vocab = 3_000_000
	case "constant":
		k := &p.Pipelines[0].Consts[0]
		k.Value += 50_000_000
		for i := range p.Entries {
			for j, d := range p.Entries[i].Dispatches {
				for n := range p.Program.Funcs[i].Groups[j].Call.Consts {
					if c := &p.Program.Funcs[i].Groups[j].Call.Consts[n]; d.Pipeline == 0 && c.Name == k.Name {
						c.Value = k.Value
					}
				}
			}
		}
	default:
		ts.Fatalf("nothing is called %s", args[2])
	}
	_, err = plans.WriteFile(ts.MkAbs(args[1]), p)
	ts.Check(err)
}

func truncate(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: truncate FROM TO BYTES")
	}
	data, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	n, err := strconv.Atoi(args[2])
	ts.Check(err)
	if n < 0 {
		n += len(data)
	}
	if n < 0 || n > len(data) {
		ts.Fatalf("%s has %d bytes", args[0], len(data))
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), data[:n], 0o666))
}
