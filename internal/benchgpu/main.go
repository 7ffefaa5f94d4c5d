// Command benchgpu measures zincrun beside llama.cpp on the same files and device, the
// two by turns in one run, and prints two Markdown tables: the rates of zincrun bench and
// llama-bench, and what it takes to start (see start.go).
//
//	benchgpu --target sm_90 -p 36,512 -n 128 -d 0,16384 model.gguf...
//
// It finds zincc and zincrun in the folder of --bin.
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
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
)

type options struct {
	bin, target, peer, kv, prompts, gen, depths string
	ctx                                         cli.Positions
	rounds, starts                              int
}

func main() {
	var o options
	pflag.StringVar(&o.bin, "bin", "bin", "folder of zincc and zincrun")
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
	if err := o.run(pflag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "benchgpu:", err)
		os.Exit(1)
	}
}

// row is the rates of one test, one a round.
type row struct {
	test        string
	ours, peers []float64
}

func (o *options) run(models []string) error {
	if len(models) == 0 {
		return errors.New("no model given")
	}
	var err error
	if o.bin, err = filepath.Abs(o.bin); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "benchgpu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var rates, starts strings.Builder
	fmt.Fprint(&rates, "| model | test | zincrun t/s | llama-bench t/s | ratio |\n|---|---|---|---|---|\n")
	fmt.Fprint(&starts, "| model | what | zincrun | llama.cpp |\n|---|---|---|---|\n")
	for _, m := range models {
		plan := filepath.Join(dir, "plan.bin")
		if _, err := output(nil, filepath.Join(o.bin, "zincc"), "compile", m, "--target", o.target, "--ctx", o.ctx.String(), "--kv", o.kv, "--force", "-o", plan); err != nil {
			return err
		}
		if err := o.rates(m, plan, &rates); err != nil {
			return err
		}
		if o.starts > 0 {
			if err := o.start(m, plan, dir, &starts); err != nil {
				return err
			}
		}
	}
	if o.rounds > 0 {
		fmt.Println(rates.String())
	}
	if o.starts > 0 {
		fmt.Print(starts.String())
	}
	return nil
}

func nameOf(model string) string { return strings.TrimSuffix(filepath.Base(model), ".gguf") }

// rates adds a model's rows of the first table.
func (o *options) rates(model, plan string, w io.Writer) error {
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
		if err := o.ours(plan, at); err != nil {
			return err
		}
		if err := o.peers(model, at); err != nil {
			return err
		}
	}
	for _, r := range rows {
		ours, peers := mean(r.ours), mean(r.peers)
		fmt.Fprintf(w, "| %s | %s | %s | %s | %.2f |\n", nameOf(model), r.test, spread(r.ours), spread(r.peers), ours/peers)
	}
	return nil
}

// ours runs zincrun bench once.
func (o *options) ours(plan string, at func(string) *row) error {
	out, err := output(nil, filepath.Join(o.bin, "zincrun"), "bench", plan, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "1", "--json")
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
			x := at(r.Test)
			x.ours = append(x.ours, r.Rate)
		}
	}
	return nil
}

// peers runs the peer once.
func (o *options) peers(model string, at func(string) *row) error {
	cmd := append(strings.Fields(o.peer), "llama-bench", "-m", model, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "1",
		"-fa", "1", "-ctk", o.kv, "-ctv", o.kv, "-o", "json")
	out, err := output(nil, cmd[0], cmd[1:]...)
	if err != nil {
		return err
	}
	var list []struct {
		Prompt int     `json:"n_prompt"`
		Gen    int     `json:"n_gen"`
		Depth  int     `json:"n_depth"`
		Rate   float64 `json:"avg_ts"`
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
		x := at(test)
		x.peers = append(x.peers, r.Rate)
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
