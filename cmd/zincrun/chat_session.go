package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/chat"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/talk"
	"github.com/zincc-dev/zincc/runtime/text"
)

// conversation is a chat under way.
type conversation struct {
	model    *talk.Model
	screen   *screen
	options  talk.Options
	think    think
	fixed    bool // the seed was given: each answer is drawn by the same
	verbose  bool
	messages []chat.Message
	last     *engine.Done // of the last answer
	name     string       // of the model
	kept     *kept
}

// think is the flag of reasoning: on, off, or how many tokens of it at most.
type think struct {
	on    *bool
	limit *int
}

func (t *think) String() string {
	switch {
	case t.limit != nil:
		return strconv.Itoa(*t.limit)
	case t.on == nil:
		return ""
	case *t.on:
		return "on"
	}
	return "off"
}

func (t *think) Set(s string) error {
	n, err := strconv.Atoi(s)
	switch on := true; {
	case s == "on":
		*t = think{on: &on}
	case s == "off":
		on = false
		*t = think{on: &on}
	case err == nil && n >= 0:
		*t = think{on: &on, limit: &n}
	default:
		return errors.New("want on, off or a number of tokens")
	}
	return nil
}

func (t *think) Type() string { return "on|off|N" }

// system is the system prompt, "" if there is none.
func (c *conversation) system() string {
	if len(c.messages) > 0 && c.messages[0].Role == "system" {
		return c.messages[0].Content
	}
	return ""
}

// setSystem begins the conversation anew with that system prompt.
func (c *conversation) setSystem(text string) {
	c.messages = nil
	if text != "" {
		c.messages = []chat.Message{{Role: "system", Content: text}}
	}
}

// say adds what the user says and answers it. If there is no answer, as nothing fits or the template
// fails, the conversation is as before.
func (c *conversation) say(ctx context.Context, text string) error {
	c.messages = append(c.messages, chat.Message{Role: "user", Content: text})
	return c.answer(ctx)
}

// answer answers the last message. ^C keeps what has come so far.
func (c *conversation) answer(ctx context.Context) error {
	asked := len(c.messages) - 1
	o := c.options
	o.Reasoning = c.think.limit
	if !c.fixed {
		o.Sampling.Seed = newSeed()
	}
	t, err := c.model.Turn(text.Remember(ctx, ""), chat.Conversation{Messages: c.messages, Thinking: c.think.on, Now: time.Now()}, o)
	if err != nil {
		c.messages = c.messages[:asked]
		return err
	}
	read := reading(&t.Request)
	defer read()
	for p, pieceErr := range c.model.Answer(ctx, t) {
		read()
		if err = pieceErr; err != nil {
			break
		}
		if p.Done != nil {
			c.last = p.Done
			break
		}
		if err = c.screen.show(p); err != nil {
			break
		}
	}
	m := c.screen.end()
	if m.Content == "" && m.Reasoning == "" && len(m.Calls) == 0 && err != nil {
		c.messages = c.messages[:asked]
		return err
	}
	c.messages = append(c.messages, m)
	if err := c.kept.keep(c.saved()); err != nil {
		fmt.Fprintf(cli.Stderr, "zincrun: the conversation is not kept: %s\n", printable.Line(err.Error()))
		c.kept.dir = ""
	}
	if err == nil && c.verbose {
		c.stats(o.Sampling.Seed)
	}
	if err == nil && c.last != nil && c.last.Reason == engine.Context {
		return fmt.Errorf("the context of %d tokens is full; /clear starts a new conversation", c.model.Ctx)
	}
	return err
}

// stats prints what the last answer took.
func (c *conversation) stats(seed uint64) {
	if c.last == nil {
		fmt.Fprintln(cli.Stderr, "there is no answer yet")
		return
	}
	u := c.last.Usage
	fmt.Fprintf(cli.Stderr, "prompt %d tokens, %d of them kept from before, read in %s (%.1f/s); answer %d tokens (%d of reasoning) in %s (%.1f/s)\n",
		u.Prompt, u.Cached, round(u.Prefill), rate(u.Prompt-u.Cached, u.Prefill), u.Completion, u.Reasoning, round(u.Decode), rate(u.Completion, u.Decode))
	fmt.Fprintf(cli.Stderr, "context: %d of %d tokens; seed %d\n", u.Prompt+u.Completion, c.model.Ctx, seed)
}

// A slash is a command of the conversation.
type slash struct {
	name, args, doc string
	run             func(ctx context.Context, c *conversation, args string) error
}

// errExit ends the conversation.
var errExit = errors.New("exit")

// slashes are the commands, in the order of /help; an init breaks the cycle with it.
var slashes []slash

func init() {
	slashes = []slash{
		{"clear", "", "begin anew; the system prompt stays", func(_ context.Context, c *conversation, _ string) error {
			c.kept.file = ""
			c.setSystem(c.system())
			return nil
		}},
		{"system", "[TEXT]", "show the system prompt, or begin anew with this one", func(_ context.Context, c *conversation, args string) error {
			if args == "" {
				fmt.Fprintln(cli.Stderr, printable.Text(c.system()))
				return nil
			}
			c.kept.file = ""
			c.setSystem(args)
			return nil
		}},
		{"regen", "", "answer the last message again", regenerate},
		{"undo", "", "take back the last message and its answer", func(_ context.Context, c *conversation, _ string) error { return c.undo() }},
		{"fold", "", "hide the reasoning, or show it again", func(_ context.Context, c *conversation, _ string) error {
			c.screen.folded = !c.screen.folded
			return nil
		}},
		{"think", "on|off|N", "switch reasoning on or off, or end it after N tokens", func(_ context.Context, c *conversation, args string) error {
			return c.think.Set(args)
		}},
		{"set", "[NAME VALUE]", "show how tokens are drawn, or change it: /set temp 0.7", set},
		{"stats", "", "what the last answer took", func(_ context.Context, c *conversation, _ string) error {
			c.stats(c.options.Sampling.Seed)
			return nil
		}},
		{"save", "FILE", "write the conversation as a request of OpenAI's chat completions", save},
		{"load", "FILE", "go on with a conversation that was saved", load},
		{"sessions", "[N]", "list the conversations that are kept, or go on with one", sessions},
		{"help", "", "this list", func(context.Context, *conversation, string) error {
			for _, s := range slashes {
				fmt.Fprintf(cli.Stderr, "  %-22s %s\n", strings.TrimSpace("/"+s.name+" "+s.args), s.doc)
			}
			fmt.Fprintln(cli.Stderr, `  ^J and Alt-Enter begin a new line, as Enter does behind a \ and between """. ^R searches what was typed. ^C stops an answer.
  A line that begins with a path or with // is a message.`)
			return nil
		}},
		{"exit", "", "end", func(context.Context, *conversation, string) error { return errExit }},
	}
}

// command runs a line that begins with a slash.
func (c *conversation) command(ctx context.Context, line string) error {
	name, args, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	if name == "bye" || name == "quit" {
		name = "exit"
	}
	for _, s := range slashes {
		if s.name == name {
			return s.run(ctx, c, strings.TrimSpace(args))
		}
	}
	return fmt.Errorf("unknown command /%s; /help lists the commands, and a blank in front makes it a message", printable.Name(name))
}

// undo takes back the last message of the user and what came after it.
func (c *conversation) undo() error {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			c.messages = c.messages[:i]
			return nil
		}
	}
	return errors.New("nothing was said yet")
}

func regenerate(ctx context.Context, c *conversation, _ string) error {
	for i := len(c.messages) - 1; i >= 0; i-- {
		if c.messages[i].Role == "user" {
			before := slices.Clone(c.messages)
			c.messages = c.messages[:i+1]
			err := c.answer(ctx)
			if len(c.messages) <= i+1 {
				c.messages = before
			}
			return err
		}
	}
	return errors.New("nothing was said yet")
}

// shortNames are names of sampling parameters that differ from the API's.
var shortNames = map[string]string{"temp": "temperature", "typical": "typical_p", "repeat": "repeat_penalty", "presence": "presence_penalty", "frequency": "frequency_penalty"}

func set(_ context.Context, c *conversation, args string) error {
	if args == "" {
		text, err := json.MarshalIndent(c.options.Sampling, "", "  ")
		fmt.Fprintf(cli.Stderr, "%s\n", text)
		return err
	}
	name, value, _ := strings.Cut(args, " ")
	if long, ok := shortNames[name]; ok {
		name = long
	}
	p := c.options.Sampling
	d := json.NewDecoder(bytes.NewReader(fmt.Appendf(nil, "{%q: %s}", name, strings.TrimSpace(value))))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return fmt.Errorf("/set: %s %s: unknown parameter or wrong kind of value; /set lists the parameters", printable.Name(name), printable.Name(value))
	}
	if err := p.Validate(); err != nil {
		return err
	}
	c.options.Sampling, c.fixed = p, c.fixed || name == "seed"
	return nil
}

func save(_ context.Context, c *conversation, path string) error {
	if path == "" {
		return errors.New("/save FILE")
	}
	if _, err := os.Stat(path); err == nil && !isSaved(path) {
		return fmt.Errorf("%s %w", path, errNotSaved)
	}
	if err := outfile.Write(path, c.saved().write); err != nil {
		return err
	}
	fmt.Fprintf(cli.Stderr, "%d messages, as a request of OpenAI's chat completions\n", len(c.messages))
	return nil
}

func load(_ context.Context, c *conversation, path string) error {
	if path == "" {
		return errors.New("/load FILE")
	}
	s, err := readSaved(path)
	if err != nil {
		return err
	}
	c.kept.file = ""
	c.messages, c.options.Sampling = s.messages(), s.Params
	fmt.Fprintf(cli.Stderr, "%d messages\n", len(s.Messages))
	return nil
}

func isSaved(path string) bool { _, err := readSaved(path); return err == nil }

func (c *conversation) saved() *saved { return savedOf(c.name, c.messages, c.options.Sampling) }

// isCommand tells whether a line is a command: a slash and a name. A path, a comment and a text of several lines are
// none.
func isCommand(text string) bool {
	name, _, _ := strings.Cut(text, " ")
	return len(name) > 1 && name[0] == '/' && !strings.ContainsAny(name[1:], "/.*\\") && !strings.Contains(text, "\n")
}

// turn takes one line or message of the user: a command or something to answer. errExit ends.
func (c *conversation) turn(ctx context.Context, text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	task, done := cli.Task(ctx)
	defer done()
	var err error
	if isCommand(text) {
		err = c.command(task, text)
	} else {
		err = c.say(task, text)
	}
	if context.Cause(task) == cli.ErrTask && ctx.Err() == nil {
		return nil // ^C
	}
	return err
}
