package verify

import (
	"cmp"
	"context"
	"encoding/binary"
	"math"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
)

// Widths is the site of the results that compare exact entries of different widths.
const Widths = "widths"

// widths gives the tokens of one step of the widest exact entry to each of the others, as many
// at a time as it takes, and compares the bits of logits and chosen tokens.
func (v *verifier) widths(ctx context.Context) error {
	var entries []*plans.Entry
	for i := range v.plan.Entries {
		if e := &v.plan.Entries[i]; e.Exact() {
			entries = append(entries, e)
		}
	}
	if len(entries) < 2 {
		return nil
	}
	slices.SortFunc(entries, func(a, b *plans.Entry) int { return cmp.Compare(b.Rows, a.Rows) })
	whole := v.trial(entries[0], min(entries[0].Rows, v.plan.Header.Ctx))
	state, err := v.keepStates(ctx, whole)
	if err != nil {
		return err
	}
	var want []byte
	for _, e := range entries {
		if err := v.dev.WriteSpans(ctx, state.spans, state.bytes); err != nil {
			return err
		}
		var logits, next []byte
		for done := 0; done < len(whole.rows); done += e.Rows {
			s := whole.part(e, done, min(e.Rows, len(whole.rows)-done))
			if err := v.write(s); err != nil {
				return err
			}
			if err := runtime.Run(ctx, v.dev, e, 1); err != nil {
				return err
			}
			for name, to := range map[string]*[]byte{e.Logits: &logits, e.Next: &next} {
				b, err := v.results(ctx, s, name)
				if err != nil {
					return err
				}
				*to = append(*to, b...)
			}
		}
		got := append(logits, next...)
		if want == nil {
			want = got
			continue
		}
		r := whole.part(e, 0, len(whole.rows)).result(Widths)
		r.Difference = otherBits(got, want, len(logits)/len(whole.rows)/4)
		if r.Difference != nil {
			r.Difference.Problem = "not the bits that " + whole.entry.Name + " gives for the same tokens, which is said to be the oracle's"
			r.Difference.Value = e.Logits
		}
		v.add(r)
	}
	return nil
}

// otherBits returns the first element that differs, of rows of a width and what comes behind
// them; nil if there is none.
func otherBits(got, want []byte, width int) *Difference {
	for i := 0; i < len(want); i += 4 {
		x, y := binary.LittleEndian.Uint32(got[i:]), binary.LittleEndian.Uint32(want[i:])
		if x != y {
			return &Difference{Row: i / 4 / width, Column: i / 4 % width, Device: Number(math.Float32frombits(x)), Oracle: Number(math.Float32frombits(y))}
		}
	}
	return nil
}
