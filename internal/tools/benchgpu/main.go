// Command benchgpu measures zincrun beside llama.cpp, or beside another build of zincc and zincrun, on the same models
// and device, the two by turns in one run. It prints two Markdown tables: the rates of zincrun bench and llama-bench, a
// row as soon as it is known, and what it takes to start (see start.go).
//
//	benchgpu --target sm_90 -p 36,512 -n 128 -d 0,16384 model.gguf...
//	benchgpu --target sm_90-cuda -p 2048 -d 0 -r 2 -s 0 gpt-oss-20b llama-8b:IQ3_S
//	benchgpu --target sm_90 --old ../before/bin -s 0 qwen3-0.6b qwen35-35b-a3b:8
//
// A model is a file, or a published shape, SHAPE[:TYPE][:LAYERS], whose file of random weights is written and removed
// again (`go run ./internal/synth/write` lists them).
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/synth"
)

type options struct {
	bin, old, target, peer, kv, prompts, gen, depths string
	ctx                                              cli.Positions
	rounds, starts                                   int
	stop                                             chan os.Signal
}

func main() {
	var o options
	pflag.StringVar(&o.bin, "bin", "bin", "folder of zincc and zincrun")
	pflag.StringVar(&o.old, "old", "", "folder of another zincc and zincrun, to measure those instead of llama.cpp")
	pflag.StringVar(&o.target, "target", "native", "target to compile for")
	pflag.StringVar(&o.peer, "peer", "", "what llama.cpp's tools are run with, such as env A=b; split at spaces")
	o.ctx = 8192
	pflag.Var(&o.ctx, "ctx", "context to compile for")
	pflag.StringVar(&o.kv, "kv", "f16", "type of both KV caches")
	pflag.StringVarP(&o.prompts, "prompts", "p", "36,512,2048", "prompt lengths")
	pflag.StringVarP(&o.gen, "gen", "n", "128", "tokens to generate")
	pflag.StringVarP(&o.depths, "depths", "d", "0", "tokens in the context before")
	pflag.IntVarP(&o.rounds, "rounds", "r", 3, "turns of both programs for the rates")
	pflag.IntVarP(&o.starts, "starts", "s", 3, "turns for the starts")
	pflag.Parse()
	o.stop = make(chan os.Signal, 1)
	signal.Notify(o.stop, os.Interrupt) // ends the programs that run; files of theirs and ours are removed
	if err := o.run(pflag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "benchgpu:", err)
		os.Exit(1)
	}
}

// row is the rates of one test, one a round.
type row struct {
	test         string
	ours, theirs []float64
}

func (o *options) run(models []string) (err error) {
	if len(models) == 0 {
		return errors.New("no model given")
	}
	for _, m := range models { // before the first is measured
		if _, err := synth.Parse(m); err != nil && !isFile(m) {
			return err
		}
	}
	for _, bin := range []*string{&o.bin, &o.old} {
		if *bin != "" {
			if *bin, err = filepath.Abs(*bin); err != nil {
				return err
			}
		}
	}
	dir, err := os.MkdirTemp("", "benchgpu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.rounds > 0 {
		fmt.Printf("| model | test | zincrun t/s | %s t/s | ratio |\n|---|---|---|---|---|\n", o.rival("llama-bench"))
	}
	var starts strings.Builder
	var failed []error // one model that one of the two refuses does not end the others
	for _, m := range models {
		measure := o.measureShape
		if isFile(m) {
			measure = o.measure
		}
		if err := measure(m, dir, &starts); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", m, err))
		}
		if len(o.stop) > 0 {
			return errors.New("interrupted")
		}
	}
	if o.starts > 0 {
		fmt.Printf("\n| model | what | zincrun | %s |\n|---|---|---|---|\n%s", o.rival("llama.cpp"), starts.String())
	}
	return errors.Join(failed...)
}

// rival is what stands beside zincrun: a program of llama.cpp, or the old zincrun.
func (o *options) rival(peer string) string {
	if o.old != "" {
		return "old"
	}
	return peer
}

// isFile reports whether a model is a file, and not a shape.
func isFile(model string) bool { return strings.HasSuffix(model, ".gguf") }

// measureShape measures a model of random weights.
func (o *options) measureShape(name, dir string, starts io.Writer) error {
	s, err := synth.Parse(name)
	if err != nil {
		return err
	}
	m, err := synth.New(s)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, strings.ReplaceAll(name, ":", "-")+".gguf")
	defer os.Remove(path)
	if err := m.Write(path); err != nil || len(o.stop) > 0 {
		return err
	}
	return o.measure(path, dir, starts)
}

// measure prints a model's rows of the first table, and adds those of the second.
func (o *options) measure(model, dir string, starts io.Writer) error {
	plan, err := o.compile(o.bin, model, filepath.Join(dir, "plan.bin"))
	if err != nil {
		return err
	}
	defer os.Remove(plan)
	theirs := func(at func(string) *row) error { return o.peers(model, at) }
	programs := []program{o.zincrun("zincrun", o.bin, model, plan), o.completion(model)}
	if o.old != "" {
		old, err := o.compile(o.old, model, filepath.Join(dir, "old.bin"))
		if err != nil {
			return err
		}
		defer os.Remove(old)
		programs[1] = o.zincrun("old", o.old, model, old)
		theirs = func(at func(string) *row) error {
			return o.bench(o.old, old, func(test string, rate float64) { at(test).theirs = append(at(test).theirs, rate) })
		}
	}
	if err := o.rates(model, plan, theirs); err != nil || o.starts == 0 {
		return err
	}
	return o.start(model, programs, dir, starts)
}

// compile makes a plan with the zincc in a folder.
func (o *options) compile(bin, model, plan string) (string, error) {
	_, err := output(nil, filepath.Join(bin, "zincc"), "compile", model, "--target", o.target, "--ctx", o.ctx.String(), "--kv", o.kv, "-o", plan)
	return plan, err
}

func nameOf(model string) string { return strings.TrimSuffix(filepath.Base(model), ".gguf") }

// rates prints a model's rows of the first table.
func (o *options) rates(model, plan string, theirs func(at func(string) *row) error) error {
	var rows []*row
	at := func(test string) *row {
		i := slices.IndexFunc(rows, func(r *row) bool { return r.test == test })
		if i < 0 {
			rows = append(rows, &row{test: test})
			i = len(rows) - 1
		}
		return rows[i]
	}
	for range o.rounds {
		if err := o.bench(o.bin, plan, func(test string, rate float64) { at(test).ours = append(at(test).ours, rate) }); err != nil {
			return err
		}
		if err := theirs(at); err != nil {
			return err
		}
	}
	for _, r := range rows {
		fmt.Printf("| %s | %s | %s | %s | %.2f |\n", nameOf(model), r.test, spread(r.ours), spread(r.theirs), mean(r.ours)/mean(r.theirs))
	}
	return nil
}

// bench runs the zincrun bench in a folder once, and gives add what it measured.
func (o *options) bench(bin, plan string, add func(test string, rate float64)) error {
	out, err := output(nil, filepath.Join(bin, "zincrun"), "bench", plan, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "1", "--json")
	if err != nil {
		return err
	}
	var tables map[string][]struct {
		Test string  `json:"test"`
		Rate float64 `json:"t/s"`
	}
	if err := json.Unmarshal(out, &tables); err != nil {
		return fmt.Errorf("zincrun bench: %w", err)
	}
	for _, t := range tables {
		for _, r := range t {
			add(r.Test, r.Rate)
		}
	}
	return nil
}

// peers runs the peer once. It warms up with one run of each test, zincrun for half a second: so it makes two more, of
// which the last counts.
func (o *options) peers(model string, at func(string) *row) error {
	cmd := append(strings.Fields(o.peer), "llama-bench", "-m", model, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "2",
		"-fa", "1", "-ctk", o.kv, "-ctv", o.kv, "-o", "json")
	out, err := output(nil, cmd[0], cmd[1:]...)
	if err != nil {
		return err
	}
	var list []struct {
		Prompt int       `json:"n_prompt"`
		Gen    int       `json:"n_gen"`
		Depth  int       `json:"n_depth"`
		Rates  []float64 `json:"samples_ts"`
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return fmt.Errorf("llama-bench: %w", err)
	}
	for _, r := range list {
		test := "pp" + strconv.Itoa(r.Prompt)
		if r.Gen > 0 {
			test = "tg" + strconv.Itoa(r.Gen)
		}
		if r.Depth > 0 {
			test += " @ d" + strconv.Itoa(r.Depth)
		}
		if len(r.Rates) == 0 {
			return fmt.Errorf("llama-bench: %s has no rate", test)
		}
		x := at(test)
		x.theirs = append(x.theirs, r.Rates[len(r.Rates)-1])
	}
	return nil
}

// output runs a program, with more environment, and returns what it prints.
func output(env []string, name string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := run(&out, env, name, args...)
	return out.Bytes(), err
}

// run runs a program, with more environment. The last line of its standard error is the
// error's.
func run(out io.Writer, env []string, name string, args ...string) error {
	var problem bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = out, &problem
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(problem.String()), "\n")
		return fmt.Errorf("%s: %w: %s", strings.Join(append([]string{name}, args...), " "), err, lines[len(lines)-1])
	}
	return nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// deviation is the standard deviation.
func deviation(x []float64) float64 {
	m, sq := mean(x), 0.0
	for _, v := range x {
		sq += (v - m) * (v - m)
	}
	return math.Sqrt(sq / math.Max(1, float64(len(x)-1)))
}

// spread prints mean and standard deviation of rates.
func spread(x []float64) string {
	digits := 1
	if mean(x) >= 1000 {
		digits = 0
	}
	return fmt.Sprintf("%.*f +- %.*f", digits, mean(x), digits, deviation(x))
}
