package engine

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// launch runs an entry on the rows of the block, times in a row, and returns how long that took. A
// step is not interrupted: its sequences go on or end behind it.
func (e *Engine) launch(entry *plans.Entry, depth, times int) (time.Duration, error) {
	if err := e.block.Store(e.exec); err != nil {
		return 0, err
	}
	began := time.Now()
	err := runtime.Run(context.Background(), e.exec, entry, times)
	took := time.Since(began)
	if err == nil {
		e.costs.measured(entry, depth, len(e.block.Rows), times, took)
	}
	return took, err
}

// prefill takes a step of a prompt, and the first token of the answer behind the last one.
func (e *Engine) prefill(s *seq, entry *plans.Entry, n int) (time.Duration, error) {
	l := s.slot
	pos := len(l.tokens)
	e.block.Reset()
	for i, t := range s.req.Prompt[pos : pos+n] {
		e.block.Add(t, pos+i, l.index)
	}
	took, err := e.launch(entry, pos, 1)
	if err != nil {
		return 0, err
	}
	e.fed(s, n)
	e.read += int64(n)
	if s.req.Reading != nil {
		s.req.Reading(pos + n)
	}
	if s.reading() {
		return took, nil
	}
	row := 0
	if entry.Kind == "decode" {
		row = n - 1
	}
	if s.req.Max == 0 {
		e.finish(s, Length, nil)
		return took, nil
	}
	return took, e.choose(entry, []*seq{s}, []int{row})
}

// fed notes that n more tokens of a prompt are in the slot.
func (e *Engine) fed(s *seq, n int) {
	l := s.slot
	pos := len(l.tokens) + n
	l.tokens = append(l.tokens, s.req.Prompt[len(l.tokens):pos]...)
	l.at, l.end = pos, max(l.end, pos)
	if s.exact && e.prompts.isCut(pos) {
		e.grow(s, pos)
	}
	if e.o.ReuseAnswers {
		e.turned(s, pos)
	}
}

// save returns a copy of the slot's recurrent state, at pos; nil if there is no memory even where another state has
// gone. A lost device fails the next step, too.
func (e *Engine) save(l *slot, pos int) runtime.State {
	spans := e.plan.Memory.Checkpoint(l.index, pos)
	state, err := e.exec.SaveState(context.Background(), spans)
	if err != nil && e.tree.FreeState(e.now()) {
		state, err = e.exec.SaveState(context.Background(), spans)
	}
	if err != nil {
		e.unsaved, e.unsavedWhy = e.unsaved+1, err
		return nil
	}
	return state
}

// depth is that of the deepest of the sequences.
func depth(group []*seq) int {
	n := 0
	for _, s := range group {
		n = max(n, len(s.slot.tokens))
	}
	return n
}

// decodeAll takes a step of decoding for each of the sequences, or several at once.
func (e *Engine) decodeAll(all []*seq) error {
	for len(all) > 0 {
		depth := depth(all)
		entry, _ := e.costs.cover(e.prompts.decode, len(all), depth)
		group := all[:min(len(all), entry.Rows)]
		if err := e.decode(entry, group, depth); err != nil {
			return err
		}
		all = all[len(group):]
	}
	return nil
}

// decode feeds the chosen tokens of each sequence, as many as there are rows for, and chooses the next ones.
func (e *Engine) decode(entry *plans.Entry, group []*seq, depth int) error {
	times := e.burst(entry, group, depth)
	entry, rows := e.share(entry, group)
	e.block.Reset()
	for i, s := range group {
		for k, t := range s.next[:rows[i]] {
			e.block.Add(t, len(s.slot.tokens)+k, s.slot.index)
		}
	}
	if _, err := e.launch(entry, depth, times); err != nil {
		return err
	}
	defer func(began time.Time) { e.host.add(time.Since(began).Seconds()) }(time.Now())
	chosen, last, row := group[:0:0], []int(nil), 0
	for i, s := range group {
		n := rows[i]
		row += n
		s.slot.tokens = append(s.slot.tokens, s.next[:n]...)
		s.next = append(s.next[:0], s.next[n:]...)
		s.slot.at += n - 1 + times
		s.slot.end = max(s.slot.end, s.slot.at)
		if len(s.next) == 0 {
			chosen, last = append(chosen, s), append(last, row-1)
		}
	}
	if times == 1 {
		return e.choose(entry, chosen, last)
	}
	out, err := e.exec.Ints(ir.StepOut)
	if err != nil {
		return err
	}
	for r, s := range group {
		for i := range times - 1 { // these are in the slot, the last one is not yet
			s.slot.tokens = append(s.slot.tokens, out[i*len(group)+r])
		}
	}
	for r, s := range group {
		for i := 0; i < times && s.ending == ""; i++ {
			s.next = s.next[:0]
			e.deliver(s, choice{id: out[i*len(group)+r]}, times-1-i)
		}
	}
	return e.conclude(entry, group, last)
}

// share gives each sequence rows for its chosen tokens: one, and more to those that have a forced run, in the narrowest
// entry that has them. Rows of exact steps have the bits of a step of their own, so that runs change no answer.
func (e *Engine) share(entry *plans.Entry, group []*seq) (*plans.Entry, []int) {
	widest := e.prompts.decode[len(e.prompts.decode)-1]
	rows, total := make([]int, len(group)), len(group)
	for i, s := range group {
		more := min(len(s.next), widest.Run) - 1
		more = max(0, min(more, widest.Rows-total))
		rows[i] = 1 + more
		total += more
	}
	for _, c := range e.prompts.decode {
		if entry.Rows < total {
			entry = c
		}
	}
	return entry, rows
}

// burst is how many tokens the device chooses in one submission: one, if the host chooses, a prompt is
// read or somebody waits.
func (e *Engine) burst(entry *plans.Entry, group []*seq, depth int) int {
	e.mu.Lock()
	waiting := len(e.waiting)
	e.mu.Unlock()
	if waiting > 0 || len(e.decoding) < len(e.running) || len(e.decoding) > len(group) {
		return 1
	}
	n := min(runtime.Burst, e.plan.Header.Ring/len(group))
	for _, s := range group {
		if s.onHost() {
			return 1
		}
		n = min(n, e.plan.Header.Ctx-len(s.slot.tokens))
		for _, bound := range []int{s.left(), s.free()} {
			if bound >= 0 {
				n = min(n, bound)
			}
		}
	}
	if one := e.costs.most(entry, depth+n); one > 0 { // the tokens of all come together
		n = min(n, int((e.planned()-sinceLast(group)-seconds(e.host.most()))/one))
	}
	return max(1, n)
}

// choose takes the next token of each sequence from a row of a step that has run.
func (e *Engine) choose(entry *plans.Entry, group []*seq, row []int) error {
	ids, err := e.exec.Ints(entry.Next)
	if err != nil {
		return err
	}
	host := false
	for i, s := range group {
		host = host || s.onHost() && !s.follows(ids[row[i]])
	}
	var logits [][]float32
	if host {
		if logits, err = e.rows(entry, row); err != nil {
			return err
		}
	}
	type result struct {
		choice
		err error
	}
	results := make([]result, len(group))
	var wait sync.WaitGroup
	for i, s := range group {
		r := &results[i]
		if !s.onHost() || s.follows(ids[row[i]]) {
			r.id = ids[row[i]]
			continue
		}
		one := func() { r.choice, r.err = s.choose(logits[i], ids[row[i]]) }
		if i == len(group)-1 {
			one()
		} else {
			wait.Go(one)
		}
	}
	wait.Wait()
	for i, s := range group {
		if err := results[i].err; err != nil {
			e.finish(s, Failed, s.explain(err))
		} else {
			e.deliver(s, results[i].choice, 0)
			e.force(s)
		}
	}
	return e.conclude(entry, group, row)
}

// deliver gives a chosen token to its sequence, which may come to its end with it. ahead is how
// many tokens from it on are in the slot already.
func (e *Engine) deliver(s *seq, c choice, ahead int) {
	s.ending = s.accept(c, e.plan.Header.Ctx-len(s.slot.tokens)-len(s.next)+ahead)
	e.generated++
}

// force gives a sequence what its format has come next. It is in the slot with the next step, or the next ones; where
// probabilities are asked for, each token has a step of its own.
func (e *Engine) force(s *seq) {
	if s.format == nil || s.ending != "" || len(s.forced) > 0 || s.ended {
		return
	}
	run := s.format.run(func(s string) []int32 { return e.tok.Encode(s, text.EncodeOptions{}) })
	if i := slices.IndexFunc(run, s.unforced); i >= 0 {
		run = run[:i]
	}
	if s.req.TopLogprobs >= 0 {
		s.forced = run
		return
	}
	for _, id := range run {
		if s.ending == "" {
			e.deliver(s, choice{id: id}, 0)
		}
	}
}

// unforced says whether a token is left to the sampler, which may not take it, or end with it.
func (s *seq) unforced(id int32) bool {
	_, biased := s.bias[id]
	return biased || slices.Contains(s.ends, id)
}

// conclude ends the sequences that have come to their end. Where the device chose, it looks at the last
// logits: a device passes over NaNs, and takes token 0 if there is nothing else.
func (e *Engine) conclude(entry *plans.Entry, group []*seq, row []int) error {
	var logits [][]float32
	for i, s := range group {
		if s.ended || s.ending == "" && s.next[len(s.next)-1] != 0 {
			continue
		}
		if s.sampler == nil {
			if logits == nil {
				var err error
				if logits, err = e.rows(entry, row); err != nil {
					return err
				}
			}
			if err := sample.Check(logits[i]); err != nil {
				e.finish(s, Failed, s.explain(err))
				continue
			}
		}
		if s.ending != "" {
			e.finish(s, s.ending, nil)
		}
	}
	return nil
}

// rows returns the logits of rows.
func (e *Engine) rows(entry *plans.Entry, row []int) ([][]float32, error) {
	all, err := e.exec.Floats(entry.Logits)
	if err != nil {
		return nil, err
	}
	n := 1
	if entry.Kind == "decode" {
		n = entry.Rows
	}
	v := len(all) / n
	rows := make([][]float32, len(row))
	for i, r := range row {
		rows[i] = all[r*v:][:v]
	}
	return rows, nil
}

// explain adds the sequence to an error about its logits.
func (s *seq) explain(err error) error {
	if err == sample.ErrNotNumbers {
		return &sample.NotNumbersError{Sequence: s.slot.tokens}
	}
	return err
}
