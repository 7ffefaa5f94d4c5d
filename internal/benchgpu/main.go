// Command benchgpu measures zincrun beside llama.cpp's llama-bench on the same
// files and device, the two by turns in one run, and prints one Markdown table.
//
//	benchgpu -target sm_90 -peer llama-bench -p 36,512 -n 128 -d 0,16384 model.gguf...
//
// It finds zincc and zincrun in the folder of -bin.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

type options struct {
	bin, target, peer, ctx, prompts, gen, depths string
	rounds                                       int
}

func main() {
	var o options
	pflag.StringVar(&o.bin, "bin", "bin", "folder of zincc and zincrun")
	pflag.StringVar(&o.target, "target", "native", "target to compile for")
	pflag.StringVar(&o.peer, "peer", "llama-bench", "the peer's command, split at spaces")
	pflag.StringVar(&o.ctx, "ctx", "8192", "context to compile for")
	pflag.StringVarP(&o.prompts, "prompts", "p", "36,512,2048", "prompt lengths")
	pflag.StringVarP(&o.gen, "gen", "n", "128", "tokens to generate")
	pflag.StringVarP(&o.depths, "depths", "d", "0", "tokens in the context before")
	pflag.IntVarP(&o.rounds, "rounds", "r", 3, "turns of both programs")
	pflag.Parse()
	if err := o.run(pflag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "benchgpu:", err)
		os.Exit(1)
	}
}

// row is the rates of one test of one model, one a round.
type row struct {
	model, test string
	ours, peers []float64
}

func (o *options) run(models []string) error {
	if len(models) == 0 {
		return errors.New("no model given")
	}
	dir, err := os.MkdirTemp("", "benchgpu")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	fmt.Println("| model | test | zincrun t/s | llama-bench t/s | ratio |\n|---|---|---|---|---|")
	for _, m := range models {
		plan := filepath.Join(dir, "plan.bin")
		if _, err := output(filepath.Join(o.bin, "zincc"), "compile", m, "--target", o.target, "--ctx", o.ctx, "-o", plan); err != nil {
			return err
		}
		var rows []*row
		at := func(test string) *row {
			i := slices.IndexFunc(rows, func(r *row) bool { return r.test == test })
			if i < 0 {
				rows = append(rows, &row{model: strings.TrimSuffix(filepath.Base(m), ".gguf"), test: test})
				i = len(rows) - 1
			}
			return rows[i]
		}
		for range o.rounds {
			if err := o.ours(plan, at); err != nil {
				return err
			}
			if err := o.peers(m, at); err != nil {
				return err
			}
		}
		for _, r := range rows {
			ours, peers := mean(r.ours), mean(r.peers)
			fmt.Printf("| %s | %s | %s | %s | %.2f |\n", r.model, r.test, spread(r.ours), spread(r.peers), ours/peers)
		}
	}
	return nil
}

// ours runs zincrun bench once.
func (o *options) ours(plan string, at func(string) *row) error {
	out, err := output(filepath.Join(o.bin, "zincrun"), "bench", plan, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "1", "--json")
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
	cmd := strings.Fields(o.peer)
	out, err := output(cmd[0], append(cmd[1:], "-m", model, "-p", o.prompts, "-n", o.gen, "-d", o.depths, "-r", "1", "-fa", "1", "-o", "json")...)
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
		return fmt.Errorf("%s: %w", cmd[0], err)
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

func output(name string, args ...string) ([]byte, error) {
	var out, problem bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		lines := strings.Split(strings.TrimSpace(problem.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", name, err, lines[len(lines)-1])
	}
	return out.Bytes(), nil
}

func mean(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// spread prints mean and standard deviation.
func spread(x []float64) string {
	m, sq := mean(x), 0.0
	for _, v := range x {
		sq += (v - m) * (v - m)
	}
	digits := 1
	if m >= 1000 {
		digits = 0
	}
	return fmt.Sprintf("%.*f +- %.*f", digits, m, digits, math.Sqrt(sq/math.Max(1, float64(len(x)-1))))
}
