package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/table"
)

var runCommand = cli.Command{
	Args:  "URL [flags]",
	Short: "measure one server",
	Long: `
Asks the server for answers of a fixed length to prompts of a fixed length, and prints what a
client sees, by the definitions of vLLM's benchmark: TTFT is the time from the request's last byte to the
first piece of the answer, ITL that between two pieces, TPOT an answer's mean time of a token behind
the first, E2EL the time to the last piece. Prompts are random and differ, also from those of other
runs, so that no cache helps. A run with the seed that a report has asks the same again.

  loadgen http://127.0.0.1:8080 --users 8 --requests 64
  loadgen http://127.0.0.1:8080 --rate 4 --requests 100      # Poisson arrivals, 4 a second
  loadgen http://127.0.0.1:8080 --behind 4000 -p 16 -n 32    # second turns of conversations

With --behind, a first turn of that many tokens is answered first; the latencies are those of
the second turn, and "cached" says how much of its prompt the server still had, the median.
Seconds and rates count both turns. The first requests, one a user, are not measured.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		l := &load{}
		var model, schema string
		var remote, asJSON bool
		var topP, minP float64
		var topK int
		f.IntVarP(&l.users, "users", "u", 1, "closed loop: as many users, each asks again when it has its answer")
		f.Float64Var(&l.rate, "rate", 0, "open loop: requests a second at random times, whatever is under way")
		f.IntVarP(&l.requests, "requests", "r", 16, "requests to measure")
		f.DurationVar(&l.limit, "time", 5*time.Minute, "give up what is not answered by then")
		f.IntVarP(&l.prompt, "prompt", "p", 512, "tokens of a prompt")
		f.IntVarP(&l.answer, "answer", "n", 128, "tokens of an answer")
		f.IntVar(&l.behind, "behind", 0, "tokens of a first turn, before the one measured")
		f.Float64Var(&l.sampler.Temp, "temp", 0, "temperature; 0 takes the likeliest token")
		f.Float64Var(&topP, "top-p", 0, "top_p; default: the server's")
		f.IntVar(&topK, "top-k", 0, "top_k; default: the server's")
		f.Float64Var(&minP, "min-p", 0, "min_p; default: the server's")
		seedFlag(f, &l.seed, "seed of prompts, arrivals and answers")
		f.StringVar(&schema, "schema", "", "file of a JSON schema that answers are held to; they must be as long as --answer says")
		f.StringVar(&model, "model", "", "name of the model, where the server has several")
		f.BoolVar(&remote, "remote", false, "the server may be another computer")
		f.BoolVar(&asJSON, "json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			base, err := cli.OneArg(args, "URL")
			if err != nil {
				return err
			}
			for flag, set := range map[string]func(){
				"top-p": func() { l.sampler.TopP = &topP }, "top-k": func() { l.sampler.TopK = &topK }, "min-p": func() { l.sampler.MinP = &minP },
			} {
				if f.Changed(flag) {
					set()
				}
			}
			if err := l.validate(); err != nil {
				return err
			}
			if schema != "" {
				if l.schema, err = os.ReadFile(schema); err != nil {
					return err
				}
				if !json.Valid(l.schema) {
					return fmt.Errorf("%s: no JSON", schema)
				}
			}
			c, err := newClient(base, model, remote)
			if err != nil {
				return err
			}
			m, err := l.measure(ctx, c)
			if m == nil {
				return err
			}
			write := table.WriteText
			if asJSON {
				write = table.WriteJSON
			}
			if err := write(cli.Stdout, m.tables(l.seed)...); err != nil {
				return err
			}
			if err == nil && m.errors > 0 {
				err = fmt.Errorf("%d of %d requests failed, the first with: %w", m.errors, m.errors+m.requests, m.problem)
			}
			return err
		}
	},
}

func (l load) validate() error {
	finite := func(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
	for _, c := range []struct {
		flag, want string
		ok         bool
	}{
		{"users", "1 to 1024", l.users >= 1 && l.users <= 1024},
		{"rate", "0 to 10000", l.rate >= 0 && l.rate <= 10000},
		{"requests", "1 to 1000000", l.requests >= 1 && l.requests <= 1e6},
		{"time", "more than 0", l.limit > 0},
		{"prompt", "1 to 10000000", l.prompt >= 1 && l.prompt <= 1e7},
		{"answer", "1 to 10000000", l.answer >= 1 && l.answer <= 1e7},
		{"behind", "0 to 10000000", l.behind >= 0 && l.behind <= 1e7},
		{"temp", "a number", finite(l.sampler.Temp)},
		{"top-p", "a number", l.sampler.TopP == nil || finite(*l.sampler.TopP)},
		{"min-p", "a number", l.sampler.MinP == nil || finite(*l.sampler.MinP)},
	} {
		if !c.ok {
			return cli.Usagef("--%s: want %s", c.flag, c.want)
		}
	}
	return nil
}

// measure puts the load on the server once it is warm. If it is interrupted, it measures what was
// done until then.
func (l load) measure(ctx context.Context, c *client) (*measures, error) {
	p, err := newPrompts(ctx, c, l.seed)
	if err != nil {
		return nil, err
	}
	warm := load{users: l.users, requests: l.users, limit: l.limit, prompt: l.prompt, answer: min(l.answer, firstAnswer), sampler: l.sampler, schema: l.schema, question: l.question, seed: ^l.seed}
	r, err := warm.run(ctx, c, &prompts{p.ids, warm.seed}, func() {})
	if err != nil {
		return nil, err
	}
	if m := measure(r); m.requests == 0 && m.errors > 0 {
		return nil, fmt.Errorf("a first request: %w", m.problem)
	}
	progress := cli.NewProgress("load", int64(l.requests))
	r, err = l.run(ctx, c, p, func() { progress.Add(1) })
	progress.Done()
	return measure(r), err
}

// tables are the figures, for people and as JSON.
func (m *measures) tables(seed uint64) []*table.Table {
	load := &table.Table{Title: "load", Columns: []string{"requests", "errors", "unfinished", "seconds", "prompt tok/s", "output tok/s", "cached", "seed"}}
	load.Add(m.requests, m.errors, m.unfinished, m.seconds, m.promptRate, m.outputRate, m.cached, seed)
	times := &table.Table{Title: "latency, ms", Columns: []string{"of", "mean", "median", "p99"}}
	for _, row := range []struct {
		name string
		l    latencies
	}{{"TTFT", m.ttft}, {"TPOT", m.tpot}, {"ITL", m.itl}, {"E2EL", m.e2el}} {
		times.Add(row.name, millis(row.l.mean()), millis(row.l.percentile(50)), millis(row.l.percentile(99)))
	}
	return []*table.Table{load, times}
}

// millis have two digits in text: a token of a small model takes less than 1 ms.
type millis float64

func (m millis) String() string { return fmt.Sprintf("%.2f", float64(m)) }
