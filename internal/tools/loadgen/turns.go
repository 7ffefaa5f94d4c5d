package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
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
	{name: "switch-8k", behind: 8000, talks: 6, about: "6 conversations behind 8,000 each that take turns, half a second between: more than few slots hold"},
	{name: "restart-20k", behind: 20_000, restart: true, about: "the same behind a restart (--start, with a folder that keeps prompts)"},
	{name: "agent", behind: 8000, until: 60_000, turns: 40, forks: 8,
		about: "40 turns of an agent, from 8,000 to 60,000, tool results between; every 8 turns it goes back by two"},
}

type turnCase struct {
	name, about string
	system      int // of a system prompt that all conversations have
	behind      int // of the first message
	restart     bool
	talks       int // conversations that take turns
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
Before each case a text of up to 8,000 tokens is read, which may have the driver compile. Of each case but an agent's a
first request, which is not measured, brings what comes before. Then come --requests turns, one after the other, each
with --new tokens behind the prompt before, or behind the system prompt; "first" is the first of them, since some
servers know a beginning only once two prompts had it. How much of a prompt is read again depends on its length: several
turns show that. An agent's turns are all counted; "seconds" is what they take together. Tokens are as the server counts
them: "cached" are those of the last prompt that it had in its cache, "new" the median of those that a prompt has more
than the one it goes on from. Of an answer, a turn brings as many tokens back as were generated.

  loadgen turns http://127.0.0.1:8080 --cases turn-20k
  loadgen turns --start "zincrun serve m.bin --port PORT --cache-dir /tmp/kept" --json >turns.json
  loadgen turns --cases agent --start "zincrun serve m.bin --port PORT" \
    --start "llama-server -m m.gguf -np 2 -c 140000 -ngl 99 -fa on --port PORT"

With --start, PORT is replaced by a free port; one server runs at a time. A restart ends the server by SIGTERM and
starts the same command. The model needs a chat template, and a context of what the case says and some hundred tokens
more.`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		o := &turns{pause: 500 * time.Millisecond}
		var starts []string
		var remote, asJSON bool
		f.StringArrayVar(&starts, "start", nil, "command that starts the server; split at spaces; several are measured one after the other")
		f.StringSliceVar(&o.cases, "cases", turnNames(), "cases to measure")
		f.IntVarP(&o.requests, "requests", "r", 8, "turns to measure of each case but an agent's")
		f.IntVar(&o.fresh, "new", 64, "tokens that are new in a turn: the last answer, a message, and the template's")
		f.IntVarP(&o.answer, "answer", "n", 16, "tokens of an answer; an agent's are four times as long")
		f.DurationVar(&o.limit, "time", 5*time.Minute, "longest time of a case")
		seedFlag(f, &o.seed, "seed of the texts")
		f.StringVar(&o.model, "model", "", "name of the model, where the server has several")
		f.BoolVar(&remote, "remote", false, "the server may be another computer")
		f.BoolVar(&asJSON, "json", false, "print JSON")
		return func(ctx context.Context, args []string) error {
			if (len(starts) == 0) == (len(args) == 0) || len(args) > 1 {
				return cli.Usagef("want the URL of a server, or --start")
			}
			if err := o.validate(f.Changed("cases"), len(starts) > 0); err != nil {
				return err
			}
			o.table = turnTable()
			var err error
			for _, base := range args {
				err = o.run(ctx, base, remote)
			}
			for _, start := range starts {
				if err == nil {
					err = o.started(ctx, strings.Fields(start))
				}
			}
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
	model                   string
	pause                   time.Duration // before requests of conversations that take turns

	texts *texts
	table *table.Table
}

func turnTable() *table.Table {
	return &table.Table{Title: "turns", Columns: []string{"server", "case", "turns", "prompt", "cached", "new", "first ms", "median ms", "most ms", "seconds", "seed"}}
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

// started measures a server that it starts and ends.
func (o *turns) started(ctx context.Context, command []string) (err error) {
	if o.server, err = spawn.Start(ctx, command); err != nil {
		return err
	}
	defer func() { o.server.Stop() }()
	return o.run(ctx, o.server.URL, false)
}

// run measures the server at a URL.
func (o *turns) run(ctx context.Context, base string, remote bool) (err error) {
	if o.client, err = newClient(base, o.model, remote); err != nil {
		return err
	}
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

// name is the server's: its program's, or its address.
func (o *turns) name() string {
	if o.server == nil {
		return strings.TrimPrefix(o.client.base, "http://")
	}
	for _, word := range o.server.Command {
		if word != "env" && !strings.Contains(word, "=") {
			return filepath.Base(word)
		}
	}
	return o.client.base
}

// turn is what came of a turn.
type turn struct {
	trace
	fresh int // tokens of its prompt behind those of the prompt that it goes on from
}

// measure adds the row of a case.
func (o *turns) measure(ctx context.Context, c turnCase) error {
	ctx, cancel := context.WithTimeoutCause(ctx, o.limit, errLimit)
	defer cancel()
	if err := o.warm(ctx, min(8000, max(c.behind, c.system))); err != nil {
		return err
	}
	of := o.behind
	switch {
	case c.turns > 0:
		of = o.agent
	case c.system > 0:
		of = o.conversations
	}
	all, err := of(ctx, c)
	if err != nil {
		return err
	}
	var ttft, fresh latencies
	sum := time.Duration(0)
	for _, t := range all {
		ttft.add(t.times[0])
		fresh = append(fresh, float64(t.fresh))
		sum += t.times[len(t.times)-1]
	}
	last := all[len(all)-1]
	row := []any{o.name(), c.name, len(all), last.prompt, last.cached, int(fresh.percentile(50)), millis(ttft[0]), millis(ttft.percentile(50)), millis(slices.Max(ttft)), sum.Seconds(), o.seed}
	o.table.Add(row...)
	note("%s, %s: %d turns, prompt of %d, %d cached, %d new; TTFT first %s, median %s, most %s ms; %.2f s; seed %d", row...)
	return nil
}

// conversations begins new ones behind a system prompt that a first one has brought.
func (o *turns) conversations(ctx context.Context, c turnCase) (all []turn, err error) {
	said := func(system, text string) []message {
		return []message{{Role: "system", Content: system}, {Role: "user", Content: text}}
	}
	frame, err := o.texts.frame(ctx, said("ba", "bi"), said("ba", "zo"), 1)
	if err != nil {
		return nil, err
	}
	system, known := o.texts.about(c.system), 0
	for i := range 1 + o.requests {
		text, err := o.text(ctx, o.fresh-frame)
		if err != nil {
			return nil, err
		}
		t := o.client.converse(ctx, said(system, text), o.answer)
		switch {
		case t.err != nil:
			return nil, fmt.Errorf("conversation %d: %w", i+1, t.err)
		case i == 0:
			known = t.prompt - o.fresh
		default:
			all = append(all, turn{t, t.prompt - known})
		}
	}
	return all, nil
}

// behind goes on with conversations whose first request is long, by turns.
func (o *turns) behind(ctx context.Context, c turnCase) (all []turn, err error) {
	said := []message{{Role: "user", Content: "ba"}}
	next := []message{{Role: "assistant", Content: "bi"}, {Role: "user", Content: "bo"}}
	frame, err := o.texts.frame(ctx, said, slices.Concat(said, next), len(next))
	if err != nil {
		return nil, err
	}
	type talk struct {
		said []message
		last trace
	}
	talks := make([]talk, max(1, c.talks))
	for i := range talks {
		t := &talks[i]
		o.rest(c)
		t.said = []message{{Role: "user", Content: o.texts.about(c.behind)}}
		if t.last = o.client.converse(ctx, t.said, o.answer); t.last.err != nil {
			return nil, fmt.Errorf("the first request of conversation %d: %w", i+1, t.last.err)
		}
	}
	for i := range o.requests {
		t := &talks[i%len(talks)]
		if c.restart {
			if err := o.restart(ctx); err != nil {
				return nil, err
			}
		}
		o.rest(c)
		if t.said, err = o.goOn(ctx, t.said, t.last, next, o.fresh-frame); err != nil {
			return nil, err
		}
		answer := o.client.converse(ctx, t.said, o.answer)
		if answer.err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, answer.err)
		}
		all = append(all, turn{answer, answer.prompt - t.last.prompt})
		t.last = answer
	}
	return all, nil
}

// rest lets the server be idle where conversations take turns: what their slots hold is copied then.
func (o *turns) rest(c turnCase) {
	if c.talks > 0 {
		time.Sleep(o.pause)
	}
}

// goOn puts the last answer and a new text, so many tokens together, behind what was said; next has roles and calls.
// Of the answer it takes as many tokens as were generated: random weights write texts that are read as many more.
func (o *turns) goOn(ctx context.Context, said []message, last trace, next []message, tokens int) ([]message, error) {
	answer, n, err := o.texts.beginning(ctx, last.text, last.completion)
	if err != nil {
		return nil, err
	}
	text, err := o.text(ctx, tokens-n)
	if err != nil {
		return nil, err
	}
	said = slices.Concat(said, next)
	said[len(said)-2].Content, said[len(said)-1].Content = answer, text
	return said, nil
}

// text draws the text of a turn, which has so many tokens left for it.
func (o *turns) text(ctx context.Context, tokens int) (string, error) {
	if tokens < 1 {
		return "", cli.Usagef("--new: the template and the last answer take %d of a turn's %d tokens: want more, or a shorter --answer", o.fresh-tokens, o.fresh)
	}
	return o.texts.exactly(ctx, tokens)
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
	return o.warm(ctx, 8)
}

// warm asks for a short answer: the first request of a server may load the model, the first long one may have the
// driver compile its kernels.
func (o *turns) warm(ctx context.Context, tokens int) error {
	return o.client.converse(ctx, []message{{Role: "user", Content: o.texts.about(tokens)}}, o.answer).err
}

// agent has the conversation of a program that works with tools: each turn has all that was said before, the last
// answer, and what a tool gave, which is as long as it takes to come to the turn's length.
func (o *turns) agent(ctx context.Context, c turnCase) (all []turn, err error) {
	next := func(i int) []message {
		call := toolCall{ID: fmt.Sprintf("call%05d", i), Type: "function", Function: called{"read", "{}"}}
		return []message{{Role: "assistant", Content: "bi", Calls: []toolCall{call}}, {Role: "tool", CallID: call.ID, Content: "bo"}}
	}
	said := []message{{Role: "user", Content: "ba"}}
	frame, err := o.texts.frame(ctx, said, slices.Concat(said, next(0)), 2)
	if err != nil {
		return nil, err
	}
	said[0].Content = o.texts.about(c.behind)
	type place struct { // behind a turn
		said []message
		last trace
	}
	var places []place
	for i := range c.turns {
		if i > 0 && i%c.forks == 0 && len(places) > 2 {
			places = places[:len(places)-2]
		}
		known := 0
		if i > 0 {
			at := places[len(places)-1]
			known = at.last.prompt
			fresh := max(o.fresh, c.behind+i*(c.until-c.behind)/(c.turns-1)-known)
			if said, err = o.goOn(ctx, at.said, at.last, next(len(places)), fresh-frame); err != nil {
				return nil, err
			}
		}
		t := o.client.converse(ctx, said, 4*o.answer)
		if t.err != nil {
			return nil, fmt.Errorf("turn %d: %w", i+1, t.err)
		}
		all = append(all, turn{t, t.prompt - known})
		places = append(places, place{said, t})
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
