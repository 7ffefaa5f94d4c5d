package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/lineedit"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/talk"
)

var chatCommand = cli.Command{
	Name:  "chat",
	Args:  "MODEL.gguf|PLAN [-p TEXT | -f FILE]",
	Short: "talk to a model",
	Long: `
Holds a conversation with the model's own chat template and sampling settings. Answers appear as
they come, with reasoning dimmed. ^C stops an answer, not the program. zincrun first compiles a model
file for this computer, once; zincrun plans lists the plans that it keeps.

^J or Alt-Enter begins a new line, """ begins and ends a message of several lines, and pasted text is one
message. ^R searches what was typed. /help lists the commands, such as /clear, /regen, /set temp 0.7 and
/save FILE. On a terminal, lines end between words, and Markdown and code have styles, unless --plain or
NO_COLOR is set. Text from -p, -f or a pipe is the only message, from -p and a pipe both, the pipe's below; then the answer goes to standard output
and reasoning to standard error.

Conversations are kept in $XDG_STATE_HOME/zincc (~/.local/state/zincc), where their owner alone can read
them: --continue goes on with the last one with this model, /sessions lists them, --private keeps nothing.

The model's file sets the sampling (general.sampling.*), else it follows the model's own
distribution. Each run has another seed; -v prints it. --temp 0 always takes the most likely token.

  zincrun chat qwen3-8b.gguf
  zincrun chat qwen3-8b.gguf --continue
  zincrun chat qwen3-8b.gguf --system "Answer in one sentence." -p "Why is the sky blue?"
  git diff | zincrun chat qwen3-8b.gguf -p "Write a commit message for this." --think off`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		c := &chatFlags{flags: f}
		c.prompt.declare(f)
		f.StringVar(&c.system, "system", "", "the system prompt")
		f.Var(&c.think, "think", "reasoning: on, off, or at most N tokens of it (default as the template has it)")
		f.IntVarP(&c.max, "n-predict", "n", 0, "tokens of an answer, at most; 0 for as many as fit")
		f.StringArrayVar(&c.stops, "stop", nil, "end an answer at this text; may come several times")
		c.format.declare(f)
		c.sampling.declare(f)
		c.plan.declare(f)
		f.BoolVar(&c.resume, "continue", false, "go on with the last conversation with this model")
		f.BoolVar(&c.private, "private", false, "keep neither the conversation nor what is typed")
		f.Var(&c.reuse, "reuse", reuseHelp)
		f.BoolVar(&c.plain, "plain", false, "show answers as they are, without styles and line breaks of ours")
		f.BoolVarP(&c.verbose, "verbose", "v", false, "print rates, cache hits and the seed after each answer")
		return c.run
	},
}

type chatFlags struct {
	flags    *pflag.FlagSet
	plan     planFlags
	prompt   promptFlags
	sampling samplingFlags
	system   string
	think    think
	max      int
	stops    []string
	format   formatFlags
	verbose  bool
	resume   bool
	private  bool
	plain    bool
	reuse    reuse
}

// samplingFlags change how the model's file says that tokens are drawn.
type samplingFlags struct {
	flags *pflag.FlagSet
	p     sample.Params
}

func (s *samplingFlags) declare(f *pflag.FlagSet) {
	s.declareDraws(f)
	f.Uint64Var(&s.p.Seed, "seed", 0, "seed of the draws (default another one each time)")
}

// declareDraws declares all but the seed.
func (s *samplingFlags) declareDraws(f *pflag.FlagSet) {
	s.flags = f
	f.Float64Var(&s.p.Temp, "temp", 0, "temperature; 0 takes the most likely token (default the model's, else 1)")
	f.IntVar(&s.p.TopK, "top-k", 0, "draw from the k most likely tokens only; 0 for all")
	f.Float64Var(&s.p.TopP, "top-p", 0, "draw from the most likely tokens that have this probability together")
	f.Float64Var(&s.p.MinP, "min-p", 0, "draw from tokens that have this share of the top probability")
	f.Float64Var(&s.p.Repeat, "repeat-penalty", 0, "make tokens less likely that the last 64 have; 1 for none")
}

// over returns p with what was given.
func (s *samplingFlags) over(p sample.Params) (sample.Params, error) {
	for name, set := range map[string]func(){
		"temp": func() { p.Temp = s.p.Temp }, "top-k": func() { p.TopK = s.p.TopK }, "top-p": func() { p.TopP = s.p.TopP },
		"min-p": func() { p.MinP = s.p.MinP }, "repeat-penalty": func() { p.Repeat = s.p.Repeat }, "seed": func() { p.Seed = s.p.Seed },
	} {
		if s.flags.Changed(name) {
			set()
		}
	}
	if err := p.Validate(); err != nil {
		return p, cli.Usagef("%s", err)
	}
	return p, nil
}

func newSeed() uint64 { return rand.Uint64() }

func (f *chatFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "model or plan")
	if err != nil {
		return err
	}
	if f.max < 0 {
		return cli.Usagef("-n is %d, want 0 or more", f.max)
	}
	if _, err := f.sampling.over(sample.Neutral()); err != nil {
		return err
	}
	text, given, err := f.prompt.read(ctx, f.flags)
	if err != nil {
		return err
	}
	interactive := !given && term.IsTerminal(int(os.Stdin.Fd()))
	if !given && !interactive || given && f.prompt.file == "" && piped() {
		all, err := io.ReadAll(cli.Stdin(ctx))
		if err != nil {
			return err
		}
		text = both(text, string(all))
	}
	if !interactive && f.resume {
		return cli.Usagef("--continue is for a conversation at the terminal")
	}
	if f.resume && f.private {
		return cli.Usagef("--continue needs the conversations that --private does not keep")
	}
	if !interactive && strings.TrimSpace(text) == "" {
		return cli.Usagef("the message is empty")
	}
	if err := f.format.read(); err != nil {
		return err
	}
	o, err := f.plan.openText(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	m, err := talk.New(o.Plan, o.Exec, o.tok, engine.Options{ITL: engine.Unhurried, ReuseAnswers: f.reuse.answers})
	if err != nil {
		return fmt.Errorf("%s: %w", o.Path, err)
	}
	defer m.Engine.Close()
	c, err := f.conversation(m, o)
	if err != nil {
		return err
	}
	if interactive {
		if err := f.keep(c); err != nil {
			return err
		}
		return c.interact(ctx, fmt.Sprintf("%s on %s, context %d. /help lists the commands.", printable.Name(o.Plan.Header.Model.Name), o.Exec.Device(), m.Ctx))
	}
	return c.say(ctx, text)
}

// piped says whether a pipe or a file is the standard input.
func piped() bool {
	info, err := os.Stdin.Stat()
	return err == nil && (info.Mode().IsRegular() || info.Mode()&os.ModeNamedPipe != 0)
}

// both joins what was asked and what it is about.
func both(asked, about string) string {
	if asked == "" || strings.TrimSpace(about) == "" {
		return asked + about
	}
	return asked + "\n\n" + about
}

func (f *chatFlags) conversation(m *talk.Model, o *opened) (*conversation, error) {
	if m.Template == nil {
		return nil, fmt.Errorf("%s: %w", o.Path, talk.ErrNoTemplate)
	}
	p, err := f.sampling.over(sample.Defaults(o.Plan.Vocab.Sampling))
	if err != nil {
		return nil, err
	}
	c := &conversation{
		model: m, think: f.think, fixed: f.flags.Changed("seed"), verbose: f.verbose,
		options: talk.Options{Sampling: p, Max: f.max, Stops: f.stops, Format: f.format.source},
		screen:  terminalScreen(f.plain),
		name:    o.Plan.Header.Model.Name, kept: &kept{},
	}
	c.setSystem(f.system)
	return c, nil
}

// keep opens the folder of conversations, and goes on with the last one if that was asked for. Where there is no such
// folder, a line says so.
func (f *chatFlags) keep(c *conversation) error {
	if f.private {
		return nil
	}
	k, err := openKept()
	if err != nil {
		fmt.Fprintf(cli.Stderr, "zincrun: conversations are not kept: %s\n", printable.Line(err.Error()))
		k.dir = ""
	}
	c.kept = k
	if !f.resume {
		return nil
	}
	path, s, err := k.last(c.name)
	if err != nil {
		return err
	}
	if c.fixed {
		s.Seed = c.options.Sampling.Seed
	}
	c.resume(path, s)
	return nil
}

// interact reads messages and commands from the terminal until it ends.
func (c *conversation) interact(ctx context.Context, greeting string) error {
	fmt.Fprintln(cli.Stderr, greeting)
	history := ""
	if c.kept.dir != "" {
		history = historyFile()
	}
	editor := lineedit.New(os.Stdin, cli.Stdin(ctx), os.Stderr, history)
	for {
		text, err := editor.Read("> ", "  ")
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, lineedit.ErrInterrupt):
			fmt.Fprintln(cli.Stderr, "/exit or ^D ends")
			continue
		case err != nil:
			return err
		}
		err = c.turn(ctx, text)
		switch {
		case errors.Is(err, errExit):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case c.model.Engine.Err() != nil:
			return c.model.Engine.Err()
		case err != nil:
			fmt.Fprintf(cli.Stderr, "zincrun: %s\n", printable.Line(err.Error()))
		}
	}
}

// historyFile is where the lines that were typed are kept, "" where there is no such place.
func historyFile() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "zincc", "history")
}
