package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/spawn"
	"github.com/zincc-dev/zincc/internal/table"
)

// turnCases are conversations that go on, as agents have them. Sizes are tokens.
var turnCases = []turnCase{
	{name: "system-8k", system: 8000, about: "new conversations behind a system prompt of 8,000 that another has brought"},
	{name: "turn-20k", behind: 20_000, about: "second turns behind 20,000"},
	{name: "turn-100k", behind: 100_000, about: "second turns behind 100,000"},
	{name: "restart-20k", behind: 20_000, restart: true, about: "the same behind a restart (--start, with a folder that keeps prompts)"},
	{name: "agent", behind: 8000, until: 60_000, turns: 40, forks: 8,
		about: "40 turns of an agent, from 8,000 to 60,000, tool results between; every 8 turns it goes back by two"},
}

type turnCase struct {
	name, about string
	system      int // of a system prompt that all conversations have
	behind      int // of the first message
	restart     bool
	// An agent's conversation: it goes on from behind to until in so many turns, and back by two at every so many.
	until, turns, forks int
}

var turnsCommand = cli.Command{
	Name:  "turns",
	Args:  "URL | --start COMMAND [flags]",
	Short: "measure what conversations wait for that go on",
	Long: `
Holds conversations through /v1/chat/completions, and prints how long their turns wait: TTFT is the time from the
request's last byte to the first piece of the answer, so template and tokenizer count. The cases of --cases are

` + turnList() + `
Of each case a first request, which is not measured, brings what comes before. Then come --requests turns, one after
the other, each with a new message of --new tokens behind all that was said, or behind the system prompt; "first" is the
first of them, since some servers know a beginning only once two prompts had it. How much of a prompt is read again
depends on its length: several turns show that. An agent's turns are all counted; "seconds" is what they take together.
Tokens are as the server counts them; "cached" are those of the last prompt that it had in its cache.

  loadgen turns http://127.0.0.1:8080 --cases turn-20k
  loadgen turns --start "zincrun serve m.bin --port PORT --cache-dir /tmp/kept" --json >turns.json
  loadgen turns --start "llama-server -m m.gguf -np 2 -c 140000 -ngl 99 -fa on --port PORT" --cases agent

With --start, PORT is replaced by a free port. A restart ends the server by SIGTERM and starts the same command.
The model needs a chat template, and a context of what the case says and some hundred tokens more.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		o := &turns{}
		var start, model string
		var remote, asJSON bool
		f.StringVar(&start, "start", "", "command that starts the server; split at spaces")
		f.StringSliceVar(&o.cases, "cases", turnNames(), "cases to measure")
		f.IntVarP(&o.requests, "requests", "r", 8, "turns to measure of each case but an agent's")
		f.IntVar(&o.fresh, "new", 64, "tokens of the message that is new in a turn")
		f.IntVarP(&o.answer, "answer", "n", 16, "tokens of an answer; an agent's are four times as long")
		f.DurationVar(&o.limit, "time", 5*time.Minute, "longest time of a case")
		f.Uint64Var(&o.seed, "seed", 1, "seed of the texts")
		f.StringVar(&model, "model", "", "name of the model, where the server has several")
		f.BoolVar(&remote, "remote", false, "the server may be another computer")
		f.BoolVar(&asJSON, "json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			if (start == "") == (len(args) == 0) || len(args) > 1 {
				return cli.Usagef("want the URL of a server, or --start")
			}
			if err := o.validate(f.Changed("cases"), start != ""); err != nil {
				return err
			}
			base := ""
			if start == "" {
				base = args[0]
			} else {
				var err error
				if o.server, err = spawn.Start(ctx, strings.Fields(start)); err != nil {
					return err
				}
				defer func() { o.server.Stop() }()
				base = o.server.URL
			}
			var err error
			if o.client, err = newClient(base, model, remote); err != nil {
				return err
			}
			err = o.run(ctx)
			if len(o.table.Rows) == 0 {
				return err
			}
			write := table.WriteText
			if asJSON {
				write = table.WriteJSON
			}
			return errors.Join(err, write(cli.Stdout, o.table))
		}
	},
}

// turns is a run of the command.
type turns struct {
	client                  *client
	server                  *spawn.Server // nil if somebody else started it
	cases                   []string
	requests, fresh, answer int
	limit                   time.Duration
	seed                    uint64

	texts *texts
	table *table.Table
}

func turnNames() (names []string) {
	for _, c := range turnCases {
		names = append(names, c.name)
	}
	return names
}

func turnList() string {
	var b strings.Builder
	for _, c := range turnCases {
		fmt.Fprintf(&b, "  %-12s %s\n", c.name, c.about)
	}
	return b.String()
}

// validate checks the flags. Cases that nobody named and that want a server of the command's own are left out.
func (o *turns) validate(named, starts bool) error {
	for _, name := range o.cases {
		if !slices.Contains(turnNames(), name) {
			return cli.Usagef("--cases: there is no %q; there are %s", name, strings.Join(turnNames(), ", "))
		}
	}
	for _, c := range turnCases {
		if i := slices.Index(o.cases, c.name); c.restart && i >= 0 && !starts {
			if named {
				return cli.Usagef("--cases: %s wants --start", c.name)
			}
			o.cases = slices.Delete(o.cases, i, i+1)
		}
	}
	if o.requests < 1 || o.requests > 1000 || o.fresh < 1 || o.fresh > 1e6 || o.answer < 1 || o.answer > 1e6 || o.limit <= 0 {
		return cli.Usagef("want 1 to 1000 --requests, 1 to 1000000 for --new and --answer, and --time")
	}
	return nil
}

func (o *turns) run(ctx context.Context) error {
	o.table = &table.Table{Title: "turns", Columns: []string{"case", "turns", "prompt", "cached", "first ms", "median ms", "most ms", "seconds"}}
	var err error
	if o.texts, err = newTexts(ctx, o.client, o.seed); err != nil {
		return err
	}
	for i, c := range turnCases {
		if !slices.Contains(o.cases, c.name) {
			continue
		}
		o.texts.draw = rand.New(rand.NewPCG(o.seed, uint64(i+1)))
		if err := o.measure(ctx, c); err != nil {
			return fmt.Errorf("case %s: %w", c.name, err)
		}
	}
	return nil
}

// measure adds the row of a case.
func (o *turns) measure(ctx context.Context, c turnCase) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLimit)
	defer cancel()
	// The first request of a server may load the model.
	if t := o.client.converse(ctx, []message{{Role: "user", Content: o.texts.of(8)}}, 1); t.err != nil {
		return t.err
	}
	of := o.behind
	if c.turns > 0 {
		of = o.agent
	}
	all, err := of(ctx, c)
	if err != nil {
		return err
	}
	var ttft latencies
	sum := time.Duration(0)
	for _, t := range all {
		ttft.add(t.times[0])
		sum += t.times[len(t.times)-1]
	}
	last := all[len(all)-1]
	row := []any{c.name, len(all), last.prompt, last.cached, millis(ttft[0]), millis(ttft.percentile(50)), millis(slices.Max(ttft)), sum.Seconds()}
	o.table.Add(row...)
	note("%s: %d turns, prompt of %d, %d cached; TTFT first %s, median %s, most %s ms; %.2f s", row...)
	return nil
}

// behind asks for turns behind what a first request has brought: for conversations behind the same system prompt, or
// for turns of one conversation, which goes on with each.
func (o *turns) behind(ctx context.Context, c turnCase) (all []trace, err error) {
	var said []message
	if c.system > 0 {
		said = []message{{Role: "system", Content: o.texts.of(c.system)}}
	}
	before := len(said)
	ask := func(tokens int) (trace, error) {
		if c.behind == 0 {
			said = said[:before]
		}
		said = append(said, message{Role: "user", Content: o.texts.of(tokens)})
		t := o.client.converse(ctx, said, o.answer)
		said = append(said, message{Role: "assistant", Content: t.text})
		return t, t.err
	}
	if _, err := ask(max(c.behind, o.fresh)); err != nil {
		return nil, fmt.Errorf("the first request: %w", err)
	}
	for range o.requests {
		if c.restart {
			if err := o.restart(ctx); err != nil {
				return nil, err
			}
		}
		t, err := ask(o.fresh)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

// restart ends the server and starts another, which answers before it returns.
func (o *turns) restart(ctx context.Context) error {
	if err := o.server.Stop(); err != nil {
		return fmt.Errorf("the server, asked to end: %w", err)
	}
	next, err := spawn.Start(ctx, o.server.Command)
	if err != nil {
		return err
	}
	o.server, o.client.base = next, next.URL
	return o.client.converse(ctx, []message{{Role: "user", Content: o.texts.of(8)}}, 1).err
}

// agent has the conversation of a program that works with tools: each turn has all that was said before, the last
// answer, and what a tool gave, which is as long as it takes to come to the turn's length.
func (o *turns) agent(ctx context.Context, c turnCase) (all []trace, err error) {
	said := []message{{Role: "user", Content: o.texts.of(c.behind)}}
	var ends, sizes []int // behind each answer: messages, tokens
	for i := range c.turns {
		if i > 0 && i%c.forks == 0 && len(ends) > 2 {
			ends, sizes = ends[:len(ends)-2], sizes[:len(sizes)-2]
			said = said[:ends[len(ends)-1]:ends[len(ends)-1]]
		}
		if i > 0 {
			want := c.behind + i*(c.until-c.behind)/(c.turns-1)
			call := said[len(said)-1].Calls[0]
			said = append(said, message{Role: "tool", CallID: call.ID, Content: o.texts.of(max(o.fresh, want-sizes[len(sizes)-1]))})
		}
		t := o.client.converse(ctx, said, 4*o.answer)
		if t.err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, t.err)
		}
		all = append(all, t)
		call := toolCall{ID: fmt.Sprintf("call%05d", i), Type: "function", Function: called{"read", "{}"}}
		said = append(said, message{Role: "assistant", Content: t.text, Calls: []toolCall{call}})
		ends, sizes = append(ends, len(said)), append(sizes, t.prompt+t.completion)
	}
	return all, nil
}

// message is one of a conversation.
type message struct {
	Role    string     `json:"role"`
	Content string     `json:"content"`
	Calls   []toolCall `json:"tool_calls,omitempty"`
	CallID  string     `json:"tool_call_id,omitempty"`
}

type toolCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function called `json:"function"`
}

type called struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// converse asks for the next message of a conversation, the likeliest one, of so many tokens.
func (c *client) converse(ctx context.Context, said []message, answer int) trace {
	q := map[string]any{
		"messages": said, "max_tokens": answer, "temperature": 0, "ignore_eos": true,
		"stream": true, "stream_options": map[string]bool{"include_usage": true},
	}
	if c.model != "" {
		q["model"] = c.model
	}
	body, err := json.Marshal(q)
	if err != nil {
		return trace{err: err}
	}
	return c.stream(ctx, "/v1/chat/completions", body)
}

// texts draws texts of about so many tokens.
type texts struct {
	draw  *rand.Rand
	words float64 // a token
}

// newTexts asks the server's tokenizer how many tokens words have.
func newTexts(ctx context.Context, c *client, seed uint64) (*texts, error) {
	const n = 1000
	t := &texts{draw: rand.New(rand.NewPCG(seed, 0))}
	ids, err := c.tokenize(ctx, words(t.draw, n))
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, errors.New("POST /tokenize: a text has no tokens")
	}
	t.words = n / float64(len(ids))
	return t, nil
}

func (t *texts) of(tokens int) string { return words(t.draw, max(1, int(float64(tokens)*t.words))) }
