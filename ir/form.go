package ir

import (
	"fmt"
	"slices"
	"strings"
)

// Form is what is chosen of a call beside its candidate, on devices where a dispatch begins while the one before it
// runs. The zero value is the candidate as its family wrote it.
type Form struct {
	Room  int // lanes of a compute unit for which registers must suffice; 0: what the candidate says
	Ahead int // bytes of the next weights that the kernel prefetches into the L2 cache before it waits
	After int // bytes of the next weights that it prefetches when it has no more of its own to load
}

// fields are those of .zir text.
func (f *Form) fields() []formField {
	return []formField{{"room", &f.Room}, {"ahead", &f.Ahead}, {"after", &f.After}}
}

type formField struct {
	name string
	n    *int
}

// Of is the name of a candidate in this form, as tuning files have it.
func (f Form) Of(candidate string) string {
	for _, part := range []struct {
		n    int
		text string
	}{{f.Room, fmt.Sprintf("room for %d", f.Room)}, {f.Ahead, fmt.Sprintf("%d MiB ahead", f.Ahead>>20)}, {f.After, fmt.Sprintf("%d MiB after", f.After>>20)}} {
		switch {
		case part.n == 0:
		case strings.HasSuffix(candidate, "/"):
			candidate += part.text
		default:
			candidate += ", " + part.text
		}
	}
	return candidate
}

// Overlap is how the kernel of a call takes part where dispatches begin early, whether its own does or not. A pass of
// stage schedule decides it.
type Overlap struct {
	Waits Early // when the kernel waits for the dispatch before it; NotEarly: never, as no dispatch begins early
	Loads []int // arguments that it loads before it waits, beside weights and tables, in increasing order
	// LateTrigger: it lets the next dispatch begin only when what was before it has ended, since that one loads more
	// than weights and tables early.
	LateTrigger bool
}

// none reports whether nothing is said.
func (o Overlap) none() bool { return o.Waits == NotEarly && len(o.Loads) == 0 && !o.LateTrigger }

// verify fails if an overlap cannot be that of a call with so many arguments.
func (o Overlap) verify(args int) error {
	switch {
	case !o.Waits.known():
		return fmt.Errorf("early start %q", o.Waits)
	case len(o.Loads) > 0 && o.Waits != LoadsFirst:
		return fmt.Errorf("it loads arguments early, but does not load before it waits")
	case !slices.IsSorted(o.Loads) || len(slices.Compact(slices.Clone(o.Loads))) < len(o.Loads):
		return fmt.Errorf("arguments %d that it loads early do not increase", o.Loads)
	case len(o.Loads) > 0 && (o.Loads[0] < 0 || o.Loads[len(o.Loads)-1] >= args):
		return fmt.Errorf("it loads arguments %d early, of %d", o.Loads, args)
	}
	return nil
}
