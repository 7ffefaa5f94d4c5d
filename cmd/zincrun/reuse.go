package main

import "errors"

// reuse says what the next turn of a conversation takes over from the one before.
type reuse struct{ answers bool }

const reuseHelp = "what a further turn takes over: exact, so that the same request gives the same bits, or answers, too, which it then need not read again"

func (r *reuse) String() string {
	if r.answers {
		return "answers"
	}
	return "exact"
}

func (r *reuse) Set(s string) error {
	if s != "exact" && s != "answers" {
		return errors.New("want exact or answers")
	}
	r.answers = s == "answers"
	return nil
}

func (r *reuse) Type() string { return "WHAT" }
