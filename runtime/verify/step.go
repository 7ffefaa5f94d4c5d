package verify

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// step is what an entry is run on: rows consecutive positions.
type step struct {
	entry *plans.Entry
	rows  int
	from  int // position of the first row
}

// count is the step block's count before a step: not 0, so that an entry that
// forgets it shows.
const count = 3

// steps lists a full and a partial step for each entry.
func (v *verifier) steps() ([]step, error) {
	var list []step
	for i := range v.plan.Entries {
		e := &v.plan.Entries[i]
		if v.opts.Entry != "" && v.opts.Entry != e.Name {
			continue
		}
		if !v.wanted(e) {
			continue
		}
		rows := min(e.Rows, v.plan.Header.Ctx)
		if v.opts.Rows > 0 {
			rows = min(rows, v.opts.Rows)
		}
		list = append(list, v.step(e, rows))
		if part := rows - rows/3 - 1; part > 0 { // ends within a tile
			list = append(list, v.step(e, part))
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("the plan has no entry %q", v.opts.Entry)
	}
	return list, nil
}

// wanted reports whether a dispatch of e is to be compared.
func (v *verifier) wanted(e *plans.Entry) bool {
	for i := range e.Dispatches {
		if v.opts.Only == nil || v.opts.Only(e.Name, i) {
			return true
		}
	}
	return false
}

func (v *verifier) step(e *plans.Entry, rows int) step {
	return step{e, rows, min(v.opts.Context, v.plan.Header.Ctx-rows)}
}

// token is the token at a position, the same in every step.
func (v *verifier) token(pos int) int32 {
	return int32(rand.New(rand.NewPCG(uint64(pos), 1)).IntN(v.plan.Header.Model.Vocab))
}

func (v *verifier) tokens(from, n int) []int32 {
	list := make([]int32, n)
	for i := range list {
		list[i] = v.token(from + i)
	}
	return list
}

// fill puts the longest context into the KV cache. A step at a lower position
// writes there what is there.
func (v *verifier) fill(ctx context.Context, steps []step) error {
	longest := 0
	for _, s := range steps {
		longest = max(longest, s.from)
	}
	_, err := runtime.NewSession(v.plan, v.dev).Prefill(ctx, v.tokens(0, longest), 0)
	return err
}

// write writes the step block.
func (v *verifier) write(s step) error {
	pos := make([]int32, s.rows)
	for i := range pos {
		pos[i] = int32(s.from + i)
	}
	for _, w := range []struct {
		region string
		data   []int32
	}{
		{"token", v.tokens(s.from, s.rows)}, {"pos", pos}, {"slot", make([]int32, s.rows)},
		{"n", []int32{int32(s.rows)}}, {"count", []int32{count}},
	} {
		if err := v.dev.Write(w.region, w.data); err != nil {
			return err
		}
	}
	return nil
}

// readState returns all recurrent state, region after region.
func (v *verifier) readState(ctx context.Context) ([][]byte, error) {
	var all [][]byte
	for _, r := range v.plan.Memory.State {
		b := make([]byte, r.Bytes)
		if err := v.dev.Read(ctx, plans.Arg{Space: "state", Region: r.Name}, b); err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, nil
}

// replay runs the entry as recorded, from the recurrent state before the step,
// and compares what the host would see with what the dispatches gave.
func (v *verifier) replay(ctx context.Context, s step, state [][]byte) error {
	var want, got []byte
	read := func(into *[]byte) error {
		for _, name := range []string{s.entry.Logits, s.entry.Next} {
			b, err := v.results(ctx, s, name)
			if err != nil {
				return err
			}
			*into = append(*into, b...)
		}
		return nil
	}
	if err := read(&want); err != nil {
		return err
	}
	for i, r := range v.plan.Memory.State {
		if err := v.dev.Overwrite(ctx, plans.Arg{Space: "state", Region: r.Name}, state[i]); err != nil {
			return err
		}
	}
	if err := v.write(s); err != nil {
		return err
	}
	if err := v.dev.Run(ctx, s.entry, 1); err != nil {
		return err
	}
	if err := read(&got); err != nil {
		return err
	}
	r := Result{Entry: s.entry.Name, Rows: s.rows, From: s.from, Site: Replay}
	if !bytes.Equal(got, want) {
		r.Difference = &Difference{
			Problem: "the recorded entry gives other bytes than its dispatches one at a time: a barrier is missing or a kernel is not deterministic",
			Value:   s.entry.Logits,
		}
	}
	v.add(r)
	return nil
}

// results returns an io region of the entry, those of its rows that the step has.
func (v *verifier) results(ctx context.Context, s step, name string) ([]byte, error) {
	for _, r := range v.plan.Memory.IO {
		if r.Name == name {
			size := r.Bytes
			if s.entry.Kind != "prefill" {
				size = size / int64(s.entry.Rows) * int64(s.rows)
			}
			b := make([]byte, size)
			return b, v.dev.Read(ctx, plans.Arg{Space: "io", Region: name}, b)
		}
	}
	return nil, nil
}
