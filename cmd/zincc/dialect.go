package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/chat"
)

// dialectFlag is a --dialect.
type dialectFlag string

func (d dialectFlag) check() error {
	if names := chat.Dialects(); d != "" && !slices.Contains(names, string(d)) {
		return cli.Usagef("--dialect: %s is none of %s", d, strings.Join(names, ", "))
	}
	return nil
}

// set stores the dialect that the model's chat template shows. What the template
// lacks is said in one line; the plan is good for more than talking.
func (d dialectFlag) set(path string, plan *plans.Plan) {
	say := func(s string) { fmt.Fprintf(cli.Stderr, "zincc: %s: %s\n", path, printable.Line(s)) }
	t, err := chat.New(plan.Vocab)
	if err != nil {
		if d != "" || plan.Vocab.ChatTemplate != "" {
			say(err.Error())
		}
		return
	}
	if t.Note() != "" && plan.Vocab.ChatTemplate != "" {
		say(t.Note())
	}
	found := t.Dialect()
	if d != "" {
		found = found.As(string(d))
	}
	plan.Dialect = plans.Dialect(found)
}
