// Package cli is what the commands share: the command table, help, exit codes
// and progress.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/printable"
)

// Exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnsupported = 3
)

// Command is one row of a program's command table.
type Command struct {
	Name  string // "" for what the program does without a command's name
	Args  string // how the arguments look in the usage line
	Short string // one line
	Long  string // the lesson
	// Setup declares the flags and returns what runs after they are parsed.
	Setup func(f *pflag.FlagSet) func(ctx context.Context, args []string) error
}

// Program is a program with its commands.
type Program struct {
	Name     string
	Short    string
	Long     string
	Commands []Command
	Env      string // what variables begin with that give values of flags; "": there are none
}

// UsageError is an error in how the program was called.
type UsageError struct{ msg string }

func (e *UsageError) Error() string { return e.msg }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error {
	return &UsageError{fmt.Sprintf(format, args...)}
}

// Main runs the program with the process's arguments and returns its exit code:
// 0 ok, 1 failed, 2 wrong usage, 3 unsupported model or device. Commands get the context of
// Interruptible.
func (p *Program) Main() int {
	ctx, stop := Interruptible()
	defer stop()
	return Exit(Stderr, p.Name, p.run(ctx, os.Args[1:]))
}

// Exit says on w, in one line, with what error the program of that name ends, if any, and
// returns its exit code. A failed write to Stdout is an error.
func Exit(w io.Writer, name string, err error) int {
	if err == nil || errors.Is(err, pflag.ErrHelp) {
		err = Stdout.Err()
	}
	var usage *UsageError
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled):
		fmt.Fprintf(w, "%s: interrupted\n", name)
		return exitFailed
	}
	fmt.Fprintf(w, "%s: %s\n", name, oneLine(err))
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, errors.ErrUnsupported):
		return exitUnsupported
	}
	return exitFailed
}

func oneLine(err error) string { return printable.Line(strings.ReplaceAll(err.Error(), "\n", "; ")) }

func (p *Program) run(ctx context.Context, args []string) error {
	if len(args) == 0 || args[0] == "-h" || args[0] == "--help" || args[0] == "help" {
		p.help(Stdout)
		if len(args) == 0 {
			return Usagef("no command; `%s --help` lists the commands", p.Name)
		}
		return nil
	}
	for _, b := range builtins {
		if b.name == args[0] {
			return b.run(p, args[1:])
		}
	}
	for _, c := range p.Commands {
		if c.Name == args[0] {
			return p.command(ctx, c, args[1:])
		}
	}
	near := p.nearest(args[0])
	for _, c := range p.Commands {
		if c.Name == "" && near == "" {
			return p.command(ctx, c, args)
		}
	}
	if near != "" {
		return Usagef("unknown command %q; did you mean %s?", args[0], near)
	}
	return Usagef("unknown command %q; `%s --help` lists them", args[0], p.Name)
}

// nearest is the command of which word is a slip. What could be a file or a model is none.
func (p *Program) nearest(word string) string {
	if strings.ContainsAny(word, "-./:\\") {
		return ""
	}
	if _, err := os.Stat(word); err == nil {
		return ""
	}
	names := []string{"completion", "man", "help"}
	for _, c := range p.Commands {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return Nearest(word, names)
}

// builtins are what every program does besides its commands.
var builtins = []struct {
	name string
	run  func(p *Program, args []string) error
}{
	{"--version", func(p *Program, _ []string) error { _, err := fmt.Fprintln(Stdout, version(p.Name)); return err }},
	{"completion", func(p *Program, args []string) error { return p.completion(Stdout, args) }},
	{"man", func(p *Program, _ []string) error { p.man(Stdout); return nil }},
}

func (p *Program) command(ctx context.Context, c Command, args []string) error {
	f := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.SortFlags = false
	run := c.Setup(f)
	f.Usage = func() { p.commandHelp(Stdout, c, f) }
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return err
		}
		why := flagProblem(f, err)
		if c.Name != "" {
			why = c.Name + ": " + why
		}
		return Usagef("%s", why)
	}
	left, err := p.settings(f)
	if err != nil {
		return err
	}
	return run(ctx, left)
}

func (p *Program) help(w io.Writer) {
	fmt.Fprintf(w, "%s: %s\n\n%s\n\nCommands:\n", p.Name, p.Short, strings.TrimSpace(p.Long))
	calls, width := make([]string, len(p.Commands)), 0
	for i, c := range p.Commands {
		calls[i] = p.Name + " " + strings.TrimSpace(c.Name+" "+positional(c.Args))
		width = max(width, len(calls[i]))
	}
	for i, c := range p.Commands {
		fmt.Fprintf(w, "  %-*s  %s\n", width, calls[i], c.Short)
	}
	fmt.Fprintf(w, "\n%s --version prints the version, completion bash|zsh|fish a script for the shell, man a manual page.\n", p.Name)
	fmt.Fprintf(w, "\n`%s COMMAND --help` says more. Exit codes: 0 ok, 1 failed, 2 wrong usage, 3 unsupported model or device.\n", p.Name)
}

// positional is the part of a usage line before the flags and what may be left out.
func positional(usage string) string {
	var words []string
	for _, w := range strings.Fields(usage) {
		if strings.ContainsRune("-[(", rune(w[0])) {
			break
		}
		words = append(words, w)
	}
	return strings.Join(words, " ")
}

func (p *Program) commandHelp(w io.Writer, c Command, f *pflag.FlagSet) {
	fmt.Fprintf(w, "%s\n\nUsage: %s %s\n\n%s\n", c.Short, strings.TrimSpace(p.Name+" "+c.Name), c.Args, strings.TrimSpace(c.Long))
	if u := f.FlagUsages(); u != "" {
		fmt.Fprintf(w, "\nFlags:\n%s", u)
		if p.Env != "" {
			fmt.Fprintf(w, "\nVariables give flags that the command line leaves out, such as %s for --device.\n", variable(p.Env, "device"))
		}
	}
}

// OneArg returns the only argument, which what names.
func OneArg(args []string, what string) (string, error) {
	if len(args) != 1 {
		return "", Usagef("want one %s, have %d arguments", what, len(args))
	}
	return args[0], nil
}
