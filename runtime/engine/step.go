package engine

import (
	"context"
	"fmt"
	goruntime "runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/text"
)

// launch runs an entry on the rows of the block, times in a row, and returns how long that took. A
// step is not interrupted: its sequences go on or end behind it. Readers are told of tokens while it runs.
func (e *Engine) launch(entry *plans.Entry, depth, times int) (time.Duration, error) {
	rows := len(e.block.Rows)
	took, err := e.runBlock(entry, time.Duration(times)*e.costs.next(entry, depth), times)
	if err == nil {
		e.measured(entry, depth, rows, times, took)
	}
	return took, err
}

// runBlock is launch of what will hardly take longer than next. Its time is the caller's to count.
func (e *Engine) runBlock(entry *plans.Entry, next time.Duration, times int) (time.Duration, error) {
	if err := e.block.Store(e.exec); err != nil {
		return 0, err
	}
	if !e.overlaps {
		e.meanwhile(next)
	}
	began := time.Now()
	ticket, err := e.exec.Submit(context.Background(), runtime.Launch{Entry: entry, Times: times})
	if err != nil {
		return 0, err
	}
	if e.overlaps {
		e.meanwhile(next)
	}
	err = e.exec.Wait(context.Background(), ticket)
	return time.Since(began), err
}

// readRuns takes a step of prompts, or the next part of the only one from what is kept.
func (e *Engine) readRuns(r *runs) (time.Duration, error) {
	for _, s := range r.seqs {
		s.waitsFor = ""
	}
	if len(r.seqs) == 1 {
		if took, ok, err := e.restore(r.seqs[0]); ok || err != nil {
			return took, err
		}
	}
	return e.prefill(r)
}

// prefill takes a step of prompts, and the first token of each answer behind the last one.
func (e *Engine) prefill(r *runs) (time.Duration, error) {
	e.block.Reset()
	if r.entry.Part > 0 {
		e.block.Heads = make([]int32, r.entry.Heads())
	}
	for i, s := range r.seqs {
		if i > 0 {
			e.block.Pad(r.entry.Part)
		}
		pos := len(s.slot.tokens)
		for k, t := range s.req.Prompt[pos : pos+r.rows[i]] {
			e.block.Add(t, pos+k, s.slot.index)
		}
		if r.entry.Part > 0 {
			e.block.Heads[i] = int32(len(e.block.Rows) - 1)
		}
	}
	took, err := e.launch(r.entry, r.depth, 1)
	if err != nil {
		return 0, err
	}
	e.costs[r.entry].rows += int64(total(r.rows) - len(e.block.Rows)) // dead ones do not count
	var ended []*seq
	var heads []int
	for i, s := range r.seqs {
		n := r.rows[i]
		e.hasRead(r.entry, s, n)
		switch {
		case s.reading() || len(s.answer) > 0: // of one that was put back what comes next is known
		case s.req.Max == 0:
			e.finish(s, Length, nil)
		case r.entry.Kind == "decode":
			ended, heads = append(ended, s), append(heads, n-1)
		default:
			ended, heads = append(ended, s), append(heads, i)
		}
	}
	if len(ended) == 0 {
		return took, nil
	}
	return took, e.choose(r.entry, ended, heads)
}

// hasRead notes that a step has read n more tokens of a prompt.
func (e *Engine) hasRead(entry *plans.Entry, s *seq, n int) {
	e.fed(s, n)
	e.read += int64(n)
	e.costs[entry].prompts++
	if s.req.Reading != nil && len(s.answer) == 0 {
		s.req.Reading(len(s.slot.tokens))
	}
}

// fed notes that n more tokens of a prompt are in the slot.
func (e *Engine) fed(s *seq, n int) {
	l := s.slot
	from := len(l.tokens)
	pos := from + n
	l.tokens = append(l.tokens, s.req.Prompt[from:pos]...)
	l.at, l.end = pos, max(l.end, pos)
	if s.exact {
		l.read = min(pos, e.prompts.shared(len(s.req.Prompt)))
		e.grow(s, from, pos)
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

// choose takes the next token of each sequence from a row of a step that has run.
func (e *Engine) choose(entry *plans.Entry, group []*seq, row []int) error {
	ids, err := e.exec.Ints(entry.Next)
	if err != nil {
		return err
	}
	results, host := make([]result, len(group)), make([]int, 0, len(group))
	for i, s := range group {
		results[i].id = ids[row[i]]
		if s.onHost() && !s.follows(results[i].id) {
			host = append(host, i)
		}
	}
	e.chosen[ByDevice] += int64(len(group) - len(host))
	if err := e.chooseOnHost(entry, group, row, host, results); err != nil {
		return err
	}
	early := e.prepared != nil
	if err := e.submitNext(entry, group, row, results); err != nil {
		return err
	}
	for i, s := range group {
		switch r := &results[i]; {
		case r.err != nil:
			e.finish(s, Failed, s.explain(r.err))
		case r.taken:
			e.generated++
		default:
			e.deliver(s, r.choice)
			e.force(s)
			e.ran(s)
		}
	}
	if early { // what the device chose was looked at before the logits are written over
		e.finishAll(group)
		return nil
	}
	return e.conclude(entry, group, row)
}

// chooseOnHost chooses for those of a group that are listed: by candidates where these decide, else by all logits.
func (e *Engine) chooseOnHost(entry *plans.Entry, group []*seq, rows, list []int, results []result) error {
	among, err := e.candidates(entry)
	if err != nil {
		return err
	}
	vocab := e.plan.Header.Model.Vocab
	few, rest, restRows := make([]int, 0, len(list)), []int(nil), []int(nil)
	for _, i := range list {
		if results[i].err = errUndecided; !group[i].needsLogits() {
			few = append(few, i)
		}
	}
	began := time.Now()
	own := e.crew.each(few, int(e.perRow.mean*float64(len(few))/wakeUp.Seconds()), func(i int) {
		by := row{vocab: vocab}
		if among != nil {
			by.candidates = among[rows[i]*ir.CandidateRow:][:ir.CandidateRow]
		}
		s, r := group[i], &results[i]
		if r.choice, r.err = s.choose(by, r.id); r.err == nil && s.format == nil && e.prepared == nil {
			s.ending, r.taken = e.accept(s, r.choice), true
		}
	})
	if own > 0 {
		e.perRow.add(time.Since(began).Seconds() / float64(own))
	}
	for _, i := range list {
		if results[i].err == errUndecided {
			rest, restRows = append(rest, i), append(restRows, rows[i])
		}
	}
	e.chosen[ByCandidates] += int64(len(list) - len(rest))
	e.chosen[ByLogits] += int64(len(rest))
	if len(rest) == 0 {
		return nil
	}
	logits, err := e.rows(entry, restRows)
	if err != nil {
		return err
	}
	for k, i := range rest {
		results[i].logits = logits[k]
	}
	each(rest, helpers(len(rest), vocab), func(i int) {
		r := &results[i]
		r.choice, r.err = group[i].choose(row{logits: r.logits}, r.id)
	})
	return nil
}

// candidates returns those of all rows of a step that has run, nil if the entry leaves none.
func (e *Engine) candidates(entry *plans.Entry) ([]int32, error) {
	if entry.Candidates == "" {
		return nil, nil
	}
	all, err := e.exec.Ints(entry.Candidates)
	if want := entry.Heads() * ir.CandidateRow; err == nil && len(all) != want {
		err = fmt.Errorf("entry %s leaves %d words of candidates, want %d", entry.Name, len(all), want)
	}
	return all, err
}

// wakeUp is how much work another processor is woken up for. It takes 30 us and more to come, the next one as much
// again behind it, and what it has written takes a while to come back.
const wakeUp = 100 * time.Microsecond

// result is a choice, or why there is none.
type result struct {
	choice
	logits []float32 // of the row, where candidates do not decide
	err    error
	taken  bool // by its sequence
}

// largeVocabulary is how many logits are worth a goroutine.
const largeVocabulary = 1 << 15

// helpers is how many processors are to help with n vectors of so many numbers.
func helpers(n, numbers int) int { return n*numbers/largeVocabulary - 1 }

// each calls f for numbers, with the help of so many other processors, if there are any, and returns how many of the
// calls it made itself. Who comes to help behind the last one is not waited for.
func each(list []int, helpers int, f func(i int)) (own int) {
	var next atomic.Int64
	var left sync.WaitGroup
	left.Add(len(list))
	work := func() (calls int) {
		for k := int(next.Add(1)); k <= len(list); k = int(next.Add(1)) {
			f(list[k-1])
			calls++
			left.Done()
		}
		return calls
	}
	for range min(helpers, goruntime.GOMAXPROCS(0)-1, len(list)-1) {
		go work()
	}
	own = work()
	left.Wait()
	return own
}

// deliver gives a chosen token to its sequence, which may come to its end with it.
func (e *Engine) deliver(s *seq, c choice) {
	s.ending = e.accept(s, c)
	e.generated++
}

// accept has a sequence take a token, and returns why it ends with it. It may run for several sequences at once.
func (e *Engine) accept(s *seq, c choice) string {
	return s.accept(c, e.plan.Header.Ctx-len(s.slot.tokens)-len(s.next))
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
			e.deliver(s, choice{id: id})
		}
	}
}

// Weights of a run in the mean of a sequence, and in that of all, with which sequences begin.
const (
	learnRun    = 1.0 / 32
	learnAllRun = 1.0 / 256
)

// ran notes how long the forced run behind a token is.
func (e *Engine) ran(s *seq) {
	if s.format != nil {
		n := float64(max(0, len(s.next)-1))
		s.forcedRun += learnRun * (n - s.forcedRun)
		e.forcedRun += learnAllRun * (n - e.forcedRun)
	}
}

// unforced says whether a token is left to the sampler, which may not take it, or end with it.
func (s *seq) unforced(id int32) bool {
	_, biased := s.bias[id]
	return biased || slices.Contains(s.ends, id)
}

// conclude ends the sequences that have come to their end, and those with logits that are no numbers.
func (e *Engine) conclude(entry *plans.Entry, group []*seq, row []int) error {
	for i, s := range group {
		if err := e.inspect(entry, s, row[i]); err != nil {
			return err
		}
	}
	e.finishAll(group)
	return nil
}

// inspect looks at the last logits where the device may have chosen: a device passes over NaNs, and takes token 0 if
// there is nothing else. It looks once the sequence has come to its end, or has token 0.
func (e *Engine) inspect(entry *plans.Entry, s *seq, row int) error {
	if s.ended || !s.deviceChooses() || s.ending == "" && s.answer[len(s.answer)-1] != 0 {
		return nil
	}
	notNumbers, err := e.checkRow(entry, row)
	if err == nil && notNumbers != nil {
		e.finish(s, Failed, s.explain(notNumbers))
	}
	return err
}

// finishAll ends the sequences that have come to their end.
func (e *Engine) finishAll(group []*seq) {
	for _, s := range group {
		if !s.ended && s.ending != "" {
			e.finish(s, s.ending, nil)
		}
	}
}

// checkRow is sample.Check of a row of a step that has run.
func (e *Engine) checkRow(entry *plans.Entry, row int) (notNumbers, err error) {
	among, err := e.candidates(entry)
	if err != nil {
		return nil, err
	}
	if among != nil {
		if ok, notNumbers := sample.CheckAmong(among[row*ir.CandidateRow:][:ir.CandidateRow], e.plan.Header.Model.Vocab); ok {
			return notNumbers, nil
		}
	}
	logits, err := e.rows(entry, []int{row})
	if err != nil {
		return nil, err
	}
	return sample.Check(logits[0]), nil
}

// rows returns the logits of rows.
func (e *Engine) rows(entry *plans.Entry, row []int) ([][]float32, error) {
	all, err := e.exec.Floats(entry.Logits, row...)
	if err != nil {
		return nil, err
	}
	v := len(all) / entry.Heads()
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
