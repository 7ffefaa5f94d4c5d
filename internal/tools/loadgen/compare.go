package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/spawn"
	"github.com/zincc-dev/zincc/internal/table"
)

// cases are the loads that servers are compared under. Prompts have 512 tokens and answers 128, but
// for those behind others.
var cases = []struct {
	name  string
	load  load
	about string
}{
	{"1", load{users: 1, requests: 4}, "a user alone, greedy, as all that do not say otherwise"},
	{"1-schema", load{users: 1, requests: 4, schema: people}, "the same with answers held to a JSON schema, of a list of people"},
	{"1-asked", load{users: 1, requests: 4, question: listPeople}, "a user who asks for the list, through the chat template"},
	{"1-asked-schema", load{users: 1, requests: 4, question: listPeople, schema: people}, "the same with answers held to the schema"},
	{"4", load{users: 4, requests: 16}, "4 users"},
	{"8", load{users: 8, requests: 32}, "8 users"},
	{"8-schema", load{users: 8, requests: 32, schema: people}, "8 users and the schema"},
	{"8-asked", load{users: 8, requests: 32, question: listPeople}, "8 users who ask for the list"},
	{"8-asked-schema", load{users: 8, requests: 32, question: listPeople, schema: people}, "8 users who ask for it, and the schema"},
	{"8-sampled", load{users: 8, requests: 32, sampler: drawn(40)}, "8 users, temperature 0.7, top_k 40, top_p 0.95"},
	{"8-top-p", load{users: 8, requests: 32, sampler: drawn(0)}, "the same without top_k: random weights leave most of a vocabulary to top_p"},
	{"arrivals", load{users: 1, rate: 6, requests: 48}, "6 requests a second at random times: prompts come while others are answered"},
	{"turn-2", load{users: 1, requests: 4, prompt: 16, answer: 16, behind: 4000}, "second turns of 16 tokens behind 4,000 and 16"},
}

// people is a schema of answers longer than those of the cases; llama-server counts no farther than 2,000.
var people = json.RawMessage(`{"type": "array", "minItems": 200, "items": {"type": "object", "properties": {
	"name": {"type": "string", "minLength": 1, "maxLength": 24}, "age": {"type": "integer", "minimum": 0, "maximum": 130},
	"role": {"type": "string", "enum": ["admin", "author", "reader"]}, "active": {"type": "boolean"}},
	"required": ["name", "age", "role", "active"], "additionalProperties": false}}`)

// listPeople asks for what people describes; %d makes questions differ.
const listPeople = "List the users of system %d as a JSON array. Each is an object with name, age in years, role " +
	"(admin, author or reader) and active (true or false). Write nothing but the JSON."

// drawn is a sampler that leaves no stage to a server's defaults.
func drawn(topK int) sampler {
	topP, minP := 0.95, 0.0
	return sampler{Temp: 0.7, TopP: &topP, TopK: &topK, MinP: &minP}
}

type comparison struct {
	bin, target, peer string
	cases             []string
	rounds, slots     int
	ctx               cli.Positions
	limit             time.Duration
	json              bool
	table             *table.Table
}

var compareCommand = cli.Command{
	Name:  "compare",
	Args:  "MODEL.gguf... [flags]",
	Short: "measure zincrun serve and llama-server by turns",
	Long: `
Compiles each model, serves it with zincrun and then with llama-server, on the same file and with as
many slots and positions, and measures both under the cases of --cases, which are

` + caseList() + `
A line on standard error says what was measured as soon as it was; the table comes at the end,
also of what was done until ^C. One server runs at a time. Latencies are median/p99.

  loadgen compare qwen3-8b.gguf --target sm_90 --rounds 2
  loadgen compare qwen35-35b-a3b.gguf --cases 8,arrivals,turn-2 --json >35b.json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		o := &comparison{ctx: 8192}
		f.StringVar(&o.bin, "bin", "bin", "folder of zincc and zincrun")
		f.StringVar(&o.target, "target", "native", "target to compile for")
		f.StringVar(&o.peer, "peer", "", "what llama-server is run with, such as env A=b; split at spaces")
		f.StringSliceVar(&o.cases, "cases", caseNames(), "cases to measure")
		f.IntVarP(&o.rounds, "rounds", "r", 1, "turns of both servers")
		f.IntVar(&o.slots, "slots", 8, "sequences that a server has at a time")
		f.Var(&o.ctx, "ctx", "positions of a sequence")
		f.DurationVar(&o.limit, "time", time.Minute, "longest time of a case")
		f.BoolVar(&o.json, "json", false, "print JSON")
		return o.run
	},
}

func caseNames() (names []string) {
	for _, c := range cases {
		names = append(names, c.name)
	}
	return names
}

func caseList() string {
	var b strings.Builder
	for _, c := range cases {
		fmt.Fprintf(&b, "  %-14s %s\n", c.name, c.about)
	}
	return b.String()
}

func (o *comparison) run(ctx context.Context, models []string) error {
	switch {
	case len(models) == 0:
		return cli.Usagef("no model given")
	case o.rounds < 1 || o.slots < 1 || o.limit <= 0:
		return cli.Usagef("--rounds, --slots and --time: want more than 0")
	}
	for _, name := range o.cases {
		if !slices.Contains(caseNames(), name) {
			return cli.Usagef("--cases: there is no %q; there are %s", name, strings.Join(caseNames(), ", "))
		}
	}
	dir, err := os.MkdirTemp("", "loadgen-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	o.table = comparisonTable()
	for _, model := range models {
		if err = o.model(ctx, model, filepath.Join(dir, "plan.bin")); err != nil {
			break
		}
	}
	if len(o.table.Rows) == 0 {
		return err
	}
	write := table.WriteText
	if o.json {
		write = table.WriteJSON
	}
	if werr := write(cli.Stdout, o.table); werr != nil {
		return werr
	}
	return err
}

// model measures both servers with a model.
func (o *comparison) model(ctx context.Context, model, plan string) error {
	model, err := filepath.Abs(model)
	if err != nil {
		return err
	}
	start := time.Now()
	if err := spawn.Run(ctx, filepath.Join(o.bin, "zincc"), "compile", model, "--target", o.target, "--ctx", o.ctx.String(),
		"--slots", strconv.Itoa(o.slots), "--force", "-o", plan); err != nil {
		return err
	}
	note("%s compiled in %.1f s", filepath.Base(model), time.Since(start).Seconds())
	all := strconv.Itoa(o.slots * int(o.ctx))
	servers := []struct {
		name    string
		command []string
	}{
		{"zincrun", []string{filepath.Join(o.bin, "zincrun"), "serve", plan, "--port", "PORT"}},
		{"llama-server", append(strings.Fields(o.peer), "llama-server", "-m", model, "-np", strconv.Itoa(o.slots), "-c", all,
			"-ngl", "99", "-fa", "on", "--host", "127.0.0.1", "--port", "PORT")},
	}
	for range o.rounds {
		for _, s := range servers {
			if err := o.server(ctx, strings.TrimSuffix(filepath.Base(model), ".gguf"), s.name, s.command); err != nil {
				return err
			}
		}
	}
	return nil
}

// server measures one server under all cases.
func (o *comparison) server(ctx context.Context, model, name string, command []string) error {
	start := time.Now()
	s, err := spawn.Start(ctx, command)
	if err != nil {
		return err
	}
	defer s.Stop()
	note("%s ready in %.1f s", name, time.Since(start).Seconds())
	c, err := newClient(s.URL, "", false)
	if err != nil {
		return err
	}
	for i, ca := range cases {
		if !slices.Contains(o.cases, ca.name) {
			continue
		}
		l := ca.load
		l.limit, l.seed = o.limit, uint64(i+1)
		if l.prompt == 0 {
			l.prompt, l.answer = 512, 128
		}
		m, err := l.measure(ctx, c)
		if err != nil {
			return fmt.Errorf("%s, case %s: %w", name, ca.name, err)
		}
		if m.problem != nil {
			note("%s, case %s: %v", name, ca.name, m.problem)
		}
		row := cells(model, ca.name, name, m)
		o.table.Add(row...)
		note("%s %s %s: %.1f tok/s, TTFT %s, TPOT %s, ITL %s, E2EL %s ms, %d cached; %d done, %d not", row...)
	}
	return nil
}

func comparisonTable() *table.Table {
	return &table.Table{Title: "servers", Columns: []string{"model", "case", "server", "tok/s", "TTFT ms", "TPOT ms", "ITL ms", "E2EL ms", "cached", "done", "not"}}
}

// cells are a row of the table.
func cells(model, name, server string, m *measures) []any {
	return []any{model, name, server, m.outputRate, pair(m.ttft), pair(m.tpot), pair(m.itl), pair(m.e2el), int(m.cached), m.requests, m.errors + m.unfinished}
}

func note(format string, args ...any) { fmt.Fprintf(os.Stderr, "loadgen: "+format+"\n", args...) }

// spread is the median and the 99th percentile of latencies, an object in JSON.
type spread struct {
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
}

func pair(l latencies) spread { return spread{l.percentile(50), l.percentile(99)} }

func (s spread) String() string {
	return fmt.Sprintf("%.*f/%.*f", digits(s.Median), s.Median, digits(s.P99), s.P99)
}

// digits behind the point for three or so to be told.
func digits(x float64) int {
	switch {
	case x < 10:
		return 2
	case x < 100:
		return 1
	}
	return 0
}
