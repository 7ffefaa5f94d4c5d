package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/runtime/engine"
	"github.com/zincc-dev/zincc/runtime/sample"
)

var runCommand = cli.Command{
	Args:  "plan.bin [-p TEXT | -f FILE]",
	Short: "continue a text",
	Long: `
Continues the text and prints only the continuation on standard output; load, prefill
and decode rates go to standard error. Without -p and -f it reads lines and continues
each. It takes the most likely token unless --temp is given. It stops at an
end-of-generation token, at --stop, and when the context is full. --schema holds it to a JSON schema or
to a grammar; what of a schema is not supported, zincrun schema says.

  zincrun plan.bin -p "func Reverse(s string) string {" -n 80
  zincrun plan.bin -f prompt.txt --temp 0.7 --top-p 0.9 --seed 1
  zincrun plan.bin -p "A person as JSON: " --schema person.json`,
	Setup: func(f *pflag.FlagSet) func(context.Context, []string) error {
		r := &runFlags{flags: f, sampling: sample.Neutral()}
		r.prompt.declare(f)
		f.IntVarP(&r.n, "n-predict", "n", 128, "tokens to generate, at most")
		f.Float64Var(&r.sampling.Temp, "temp", 0, "temperature; 0 takes the most likely token")
		f.IntVar(&r.sampling.TopK, "top-k", 0, "draw from the k most likely tokens only; 0 for all")
		f.Float64Var(&r.sampling.TopP, "top-p", 1, "draw from the most likely tokens that have this probability together")
		f.Float64Var(&r.sampling.MinP, "min-p", 0, "draw from tokens that have this share of the top probability")
		f.Uint64Var(&r.sampling.Seed, "seed", 0, "seed of the draws (default another one each time)")
		f.StringArrayVar(&r.stops, "stop", nil, "text to stop at, which is not printed; may be repeated")
		r.format.declare(f)
		r.plan.declare(f)
		f.BoolVar(&r.json, "json", false, "print one JSON object with text and rates")
		return r.run
	},
}

// runByName is runCommand with a name, as the others have one.
var runByName = func() cli.Command {
	c := runCommand
	c.Name, c.Short = "run", "continue a text; the command that runs without a name"
	return c
}()

type runFlags struct {
	flags    *pflag.FlagSet
	plan     planFlags
	prompt   promptFlags
	n        int
	engine   *engine.Engine
	sampling sample.Params
	stops    []string
	format   formatFlags
	json     bool
}

func (r *runFlags) run(ctx context.Context, args []string) error {
	path, err := cli.OneArg(args, "plan")
	if err != nil {
		return err
	}
	if err := r.sampling.Validate(); err != nil {
		return cli.Usagef("--%s", flagWords.Replace(err.Error()))
	}
	if r.n < 0 {
		return cli.Usagef("-n is %d, want 0 or more", r.n)
	}
	prompt, given, err := r.prompt.read(ctx, r.flags)
	if err != nil {
		return err
	}
	if err := r.format.read(); err != nil {
		return err
	}
	o, err := r.plan.openText(ctx, path)
	if err != nil {
		return err
	}
	defer o.Close()
	if r.engine, err = engine.New(o.Plan, o.Exec, o.tok, engine.Options{ITL: engine.Unhurried}); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	defer r.engine.Close()
	if given {
		if err = r.once(ctx, o, prompt); errors.Is(err, sample.ErrNotNumbers) {
			r.engine.Close()
			err = o.locate(ctx, err)
		}
		return err
	}
	return r.interactive(ctx, o)
}

// flagWords turns the names of parameters into those of flags.
var flagWords = strings.NewReplacer("temperature", "temp", "top_k", "top-k", "top_p", "top-p", "min_p", "min-p")

// maxLine bounds a line of standard input, in bytes.
const maxLine = 16 << 20

// interactive continues every line of standard input by itself. A line that cannot be continued
// is passed over with a word on standard error, and ^C ends an answer, not the conversation.
func (r *runFlags) interactive(ctx context.Context, o *opened) error {
	lines := bufio.NewReader(cli.Stdin(ctx))
	for {
		if term.IsTerminal(int(os.Stdin.Fd())) {
			fmt.Fprint(cli.Stderr, "> ")
		}
		line, err := readLine(lines, maxLine)
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, errLongLine):
		case err != nil:
			return err
		case line == "":
			continue
		default:
			cli.Entered()
			task, done := cli.Task(ctx)
			err = r.once(task, o, line)
			if context.Cause(task) == cli.ErrTask {
				err = cli.ErrTask
			}
			done()
			fmt.Fprintln(cli.Stdout)
		}
		var skipped *promptError
		switch {
		case err == nil:
		case errors.Is(err, errLongLine), errors.Is(err, cli.ErrTask), errors.Is(err, sample.ErrNotNumbers), errors.As(err, &skipped):
			fmt.Fprintf(cli.Stderr, "zincrun: %s\n", err)
		default:
			return err
		}
	}
}

var errLongLine = fmt.Errorf("ignored a line of more than %d bytes", maxLine)

// readLine returns the next line without its end, also one that the input ends with. Of a line
// of more than most bytes it keeps nothing: the error is errLongLine.
func readLine(in *bufio.Reader, most int) (string, error) {
	var line []byte
	long := false
	for {
		part, err := in.ReadSlice('\n')
		if long = long || len(line)+len(part) > most; !long {
			line = append(line, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case err == io.EOF && (long || len(line) > 0):
		case err != nil:
			return "", err
		}
		if long {
			return "", errLongLine
		}
		return strings.TrimSuffix(strings.TrimSuffix(string(line), "\n"), "\r"), nil
	}
}

// promptError says that a prompt cannot be continued.
type promptError struct{ msg string }

func (e *promptError) Error() string { return e.msg }

func (r *runFlags) once(ctx context.Context, o *opened, prompt string) error {
	ids := encode(o.tok, prompt)
	if len(ids) == 0 {
		return &promptError{"the prompt has no tokens"}
	}
	if ctx := o.Plan.Header.Ctx; len(ids) > ctx {
		return &promptError{fmt.Sprintf("the prompt's %d tokens do not fit the plan's context of %d", len(ids), ctx)}
	}
	out := io.Writer(cli.Stdout)
	var kept []byte
	if r.json {
		out = writerFunc(func(p []byte) (int, error) { kept = append(kept, p...); return len(p), nil })
	}
	if !r.flags.Changed("seed") {
		r.sampling.Seed = rand.Uint64()
	}
	request := engine.Request{Prompt: ids, Max: r.n, Sampling: r.sampling, Stops: r.stops, TopLogprobs: -1, Format: r.format.made}
	read := reading(&request)
	defer read()
	done, err := r.engine.Answer(ctx, request, writerFunc(func(p []byte) (int, error) {
		read()
		return out.Write(p)
	}))
	read()
	if err != nil {
		return err
	}
	u := done.Usage
	decoded := max(0, u.Completion-1) // the first token comes with the prompt
	if r.json {
		return json.NewEncoder(cli.Stdout).Encode(struct {
			Text, Device                string
			Load, Prefill, Decode       time.Duration
			PrefillTokens, DecodeTokens int
			Seed                        uint64
			Stopped                     string `json:"stopped"` // by what: stop, length or context
		}{string(kept), o.Exec.Device(), o.Took, u.Prefill, u.Decode, u.Prompt, decoded, r.sampling.Seed, done.Reason})
	}
	note := ""
	if !r.sampling.Greedy() {
		note = fmt.Sprintf("; seed %d", r.sampling.Seed)
	}
	if done.Reason == engine.Context {
		note += fmt.Sprintf("; stopped: the context of %d is full", o.Plan.Header.Ctx)
	}
	fmt.Fprintf(cli.Stderr, "\n%s: load %s, prefill %d tokens in %s (%.1f/s), decode %d tokens in %s (%.1f/s)%s\n",
		printable.Name(o.Exec.Device()), round(o.Took), u.Prompt, round(u.Prefill), rate(u.Prompt, u.Prefill), decoded, round(u.Decode), rate(decoded, u.Decode), note)
	return nil
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

func rate(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
