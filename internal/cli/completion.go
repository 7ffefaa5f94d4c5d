package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// shells are those that completions are written for.
var shells = []struct {
	name  string
	write func(w io.Writer, p *Program)
}{
	{"bash", bashCompletion},
	{"zsh", zshCompletion},
	{"fish", fishCompletion},
}

// completion writes the completions of the shell that args names.
func (p *Program) completion(w io.Writer, args []string) error {
	var names []string
	for _, s := range shells {
		if len(args) == 1 && s.name == args[0] {
			s.write(w, p)
			return nil
		}
		names = append(names, s.name)
	}
	return Usagef("completion: want one shell of %s", strings.Join(names, ", "))
}

// flagsOf are the flags of a command, in their order.
func flagsOf(c Command) []*pflag.Flag {
	f := pflag.NewFlagSet(c.Name, pflag.ContinueOnError)
	f.SortFlags = false
	c.Setup(f)
	var all []*pflag.Flag
	f.VisitAll(func(flag *pflag.Flag) { all = append(all, flag) })
	return all
}

// words are the names of the commands, and --flags of one.
func (p *Program) words() []string {
	var names []string
	for _, c := range p.Commands {
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	return append(names, "completion", "man", "--version", "--help")
}

func longFlags(c Command) []string {
	var all []string
	for _, f := range flagsOf(c) {
		all = append(all, "--"+f.Name)
	}
	return append(all, "--help")
}

func bashCompletion(w io.Writer, p *Program) {
	fmt.Fprintf(w, "# bash completion of %[1]s: %[1]s completion bash >~/.local/share/bash-completion/completions/%[1]s\n_%[1]s() {\n", p.Name)
	fmt.Fprintf(w, "\tlocal word=\"${COMP_WORDS[COMP_CWORD]}\" flags\n\tcase \"${COMP_WORDS[1]}\" in\n")
	other := ""
	for _, c := range p.Commands {
		flags := strings.Join(longFlags(c), " ")
		if c.Name == "" {
			other = flags
			continue
		}
		fmt.Fprintf(w, "\t%s) flags=%q ;;\n", c.Name, flags)
	}
	fmt.Fprintf(w, "\t*) flags=%q ;;\n\tesac\n", other)
	fmt.Fprintf(w, "\tif [[ $word == -* ]]; then\n\t\tCOMPREPLY=($(compgen -W \"$flags\" -- \"$word\"))\n")
	fmt.Fprintf(w, "\telif [[ $COMP_CWORD == 1 ]]; then\n\t\tCOMPREPLY=($(compgen -W %q -f -- \"$word\"))\n", strings.Join(p.words(), " "))
	fmt.Fprintf(w, "\telse\n\t\tCOMPREPLY=($(compgen -f -- \"$word\"))\n\tfi\n}\ncomplete -o filenames -F _%[1]s %[1]s\n", p.Name)
}

func zshCompletion(w io.Writer, p *Program) {
	fmt.Fprintf(w, "#compdef %[1]s\n# zsh completion of %[1]s: %[1]s completion zsh >\"${fpath[1]}/_%[1]s\"\n_%[1]s() {\n\tif (( CURRENT == 2 )); then\n\t\tlocal -a commands=(\n", p.Name)
	for _, c := range p.Commands {
		if c.Name != "" {
			fmt.Fprintf(w, "\t\t\t%s\n", single(c.Name+":"+c.Short))
		}
	}
	fmt.Fprintf(w, "\t\t)\n\t\t_describe command commands\n\t\t_files\n\t\treturn\n\tfi\n\tcase $words[2] in\n")
	for _, c := range p.Commands {
		name := c.Name
		if name == "" {
			continue
		}
		fmt.Fprintf(w, "\t%s) _arguments", name)
		for _, f := range flagsOf(c) {
			fmt.Fprintf(w, " \\\n\t\t%s", single("--"+f.Name+"["+strings.NewReplacer("[", "(", "]", ")", ":", ";").Replace(f.Usage)+"]"+value(f)))
		}
		fmt.Fprint(w, " \\\n\t\t'*:file:_files' ;;\n")
	}
	fmt.Fprintf(w, "\t*) _files ;;\n\tesac\n}\n_%[1]s \"$@\"\n", p.Name)
}

// value is how zsh is told that a flag takes a value.
func value(f *pflag.Flag) string {
	if f.NoOptDefVal != "" {
		return ""
	}
	return ":" + f.Value.Type() + ":_files"
}

func fishCompletion(w io.Writer, p *Program) {
	fmt.Fprintf(w, "# fish completion of %[1]s: %[1]s completion fish >~/.config/fish/completions/%[1]s.fish\n", p.Name)
	for _, c := range p.Commands {
		on := "__fish_use_subcommand"
		if c.Name != "" {
			fmt.Fprintf(w, "complete -c %s -n __fish_use_subcommand -a %s -d %s\n", p.Name, c.Name, single(c.Short))
			on = "__fish_seen_subcommand_from " + c.Name
		}
		for _, f := range flagsOf(c) {
			short, takes := "", ""
			if f.Shorthand != "" {
				short = " -s " + f.Shorthand
			}
			if f.NoOptDefVal == "" {
				takes = " -r"
			}
			fmt.Fprintf(w, "complete -c %s -n %s -l %s%s%s -d %s\n", p.Name, single(on), f.Name, short, takes, single(f.Usage))
		}
	}
}

// single quotes a word for a shell.
func single(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
