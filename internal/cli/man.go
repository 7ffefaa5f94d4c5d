package cli

import (
	"fmt"
	"io"
	"strings"

	release "github.com/zincc-dev/zincc/internal/version"
)

// man writes the help of the program and all of its commands as a page for man(1).
func (p *Program) man(w io.Writer) {
	fmt.Fprintf(w, ".TH %s 1 \"\" \"zincc %s\"\n.SH NAME\n%s \\- %s\n.SH SYNOPSIS\n", strings.ToUpper(p.Name), release.Release, p.Name, roff(p.Short))
	for _, c := range p.Commands {
		fmt.Fprintf(w, ".B %s\n%s\n.br\n", strings.TrimSpace(p.Name+" "+c.Name), roff(c.Args))
	}
	fmt.Fprint(w, ".SH DESCRIPTION\n")
	roffText(w, p.Long)
	fmt.Fprint(w, ".SH COMMANDS\n")
	for _, c := range p.Commands {
		fmt.Fprintf(w, ".SS %s\n%s\n", roff(strings.TrimSpace(p.Name+" "+c.Name+" "+c.Args)), roff(upper(c.Short)+"."))
		roffText(w, c.Long)
		for _, f := range flagsOf(c) {
			short := ""
			if f.Shorthand != "" {
				short = `\-` + f.Shorthand + ", "
			}
			takes := ""
			if f.NoOptDefVal == "" {
				takes = " " + f.Value.Type()
			}
			fmt.Fprintf(w, ".TP\n\\fB%s\\-\\-%s\\fR%s\n%s\n", short, roff(f.Name), roff(takes), roff(f.Usage))
		}
	}
	fmt.Fprint(w, ".SH EXIT STATUS\n0 ok, 1 failed, 2 wrong usage, 3 unsupported model or device.\n")
}

// roffText writes text whose indented lines are examples.
func roffText(w io.Writer, text string) {
	example := false
	for line := range strings.Lines(strings.TrimSpace(text)) {
		line = strings.TrimRight(line, "\n")
		switch indented := strings.HasPrefix(line, "  "); {
		case indented && !example:
			fmt.Fprint(w, ".nf\n")
			example = true
		case !indented && example && line != "":
			fmt.Fprint(w, ".fi\n")
			example = false
		}
		if line == "" {
			line = ".PP"
			if example {
				line = ""
			}
			fmt.Fprintln(w, line)
			continue
		}
		fmt.Fprintln(w, roff(line))
	}
	if example {
		fmt.Fprint(w, ".fi\n")
	}
}

// roff escapes a line.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

func upper(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
