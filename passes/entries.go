package passes

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// Entry is a command list to be compiled: the kind of step, its largest number of rows, how many of them may be of one
// sequence, and which bits they have.
type Entry struct {
	Kind  string // Decode, Prefill, Score or Embed
	Rows  int
	Run   int
	Class ir.StepClass
	Part  int // of steps that take the prompts of several sequences: see ir.Func
	// Several: the entry is for plans of several sequences only.
	Several bool
}

// The kinds of entry.
const (
	Decode  = "decode"  // every row gets logits and a next token
	Prefill = "prefill" // the last row gets logits and a next token
	Score   = "score"   // every row gets logits, no token is chosen
	Embed   = "embed"   // the last row gets its vector, or every row where their mean is wanted; all entries of such a model
)

// Name is the name of the entry's function, such as "prefill/128".
func (e Entry) Name() string { return fmt.Sprintf("%s/%d", e.Kind, e.Rows) }

// Sequences is how many sequences the rows of a step of the entry may belong to.
func (e Entry) Sequences() ir.Sequences {
	if e.Kind == Decode || e.Part > 0 {
		return ir.ManySequences
	}
	return ir.OneSequence
}

// useful reports whether a plan of so many sequences can fill more than half of the entry.
func (e Entry) useful(slots int) bool {
	return (e.Run == e.Rows || 2*slots > e.Rows) && (slots > 1 || !e.Several)
}

// class is that of the entry's function in a plan of so many sequences.
func (e Entry) class(slots int) ir.StepClass {
	if e.Kind == Prefill && e.Rows >= alikeRows && slots > 1 {
		return ir.AlikeStep
	}
	return e.Class
}

// alikeRows is the rows from which on entries that read prompts are alike in plans of several sequences: a scheduler
// may then take any of them for the rows of a prompt.
const alikeRows = 512

// ReadsPrompts is the entry of a kind that takes up to so many rows of one sequence.
func ReadsPrompts(kind string, rows int) Entry { return Entry{Kind: kind, Rows: rows, Run: rows} }

const (
	// partRows is ir.Func.Part of prompts' entries: a multiple of the rows of every kernel's tile.
	partRows = 128
	// leastParts is from how many rows on a step has room for several prompts.
	leastParts = 4 * partRows
)

// inParts gives the entry parts, if kernels follow those of p.
func (e Entry) inParts(p *ir.Program, kernels Kernels) Entry {
	if e.Kind == Prefill && e.Rows >= leastParts && e.Rows%partRows == 0 && p.Slots > 1 && kernels.FollowParts(p) {
		e.Part = partRows
	}
	return e
}

// DefaultEntries are the entries of a plan whose steps have up to maxRows rows, and exact ones up to widest, of which
// up to run are of one sequence.
func DefaultEntries(maxRows, widest, run int) []Entry {
	var list []Entry
	for rows := 1; rows <= min(maxRows, widest); rows *= 2 {
		list = append(list, Entry{Kind: Decode, Rows: rows, Run: min(rows, run), Class: ir.ExactStep})
	}
	between := ReadsPrompts(Prefill, 1024) // by itself not worth the time to compile (docs/lab/prompts.md)
	between.Several = true
	for _, e := range []Entry{ReadsPrompts(Prefill, 48), ReadsPrompts(Prefill, 128), ReadsPrompts(Prefill, 512), between, ReadsPrompts(Prefill, 2048), ReadsPrompts(Score, 64)} {
		if e.Rows <= maxRows {
			list = append(list, e)
		}
	}
	return list
}

// splitEntries replaces the model's one function by a copy per entry. A function that chooses no token makes
// vectors: it gets the entries that read prompts.
func splitEntries(p *ir.Program, entries []Entry, kernels Kernels) error {
	whole := p.Funcs[0]
	p.Funcs = nil
	if !hasOp(whole, "argmax") {
		entries = embedding(entries)
	}
	for _, e := range entries {
		if !e.useful(p.Slots) {
			continue
		}
		e = e.inParts(p, kernels)
		f := Clone(whole)
		f.Name, f.Rows, f.Sequences, f.Run, f.Class, f.Part = e.Name(), e.Rows, e.Sequences(), e.Run, e.class(p.Slots), e.Part
		if e.Part > 0 {
			dropOps(f, "advance")
		}
		if e.Kind == Score {
			dropOps(f, "advance")
			dropOps(f, "argmax")
		}
		if e.Kind == Prefill {
			dropMask(f)
		}
		p.Funcs = append(p.Funcs, f)
	}
	return nil
}

// embedding returns the entries of a model that makes vectors: one for each width of a prompt entry and, for
// short texts, an exact one of the widest decode width.
func embedding(entries []Entry) []Entry {
	var list []Entry
	decode := 0
	for _, e := range entries {
		switch e.Kind {
		case Decode:
			decode = max(decode, e.Run)
		case Prefill:
			if e.Several {
				continue
			}
			list = append(list, ReadsPrompts(Embed, e.Rows))
		}
	}
	if decode == 0 {
		return list
	}
	return slices.Insert(list, 0, Entry{Kind: Embed, Rows: decode, Run: decode, Class: ir.ExactStep})
}

func hasOp(f *ir.Func, kind string) bool {
	return slices.ContainsFunc(f.Ops(), func(op *ir.Op) bool { return op.Kind.Name == kind })
}

// Clone copies f, before kernels are chosen, with values and ops of its own.
func Clone(f *ir.Func) *ir.Func {
	c := &ir.Func{Name: f.Name, Rows: f.Rows, Sequences: f.Sequences, Run: f.Run, Class: f.Class, Part: f.Part}
	copyOf := map[*ir.Value]*ir.Value{}
	for _, g := range f.Groups {
		ng := &ir.Group{Name: g.Name}
		for _, op := range g.Ops {
			n := &ir.Op{Kind: op.Kind, Attrs: op.Attrs}
			for _, a := range op.Args {
				if b, ok := copyOf[a]; ok {
					a = b
				}
				n.Args = append(n.Args, a)
			}
			if op.Result != nil {
				r := *op.Result
				r.Def = n
				n.Result = &r
				copyOf[op.Result] = &r
			}
			ng.Ops = append(ng.Ops, n)
		}
		c.Groups = append(c.Groups, ng)
	}
	return c
}

// dropMask takes the mask from the choice: the host looks at the first token of an answer itself.
func dropMask(f *ir.Func) {
	for _, op := range f.Ops() {
		if op.Kind.Name == "argmax" {
			op.Args = op.Args[:1]
		}
	}
}

func dropOps(f *ir.Func, kind string) {
	keep := f.Groups[:0]
	for _, g := range f.Groups {
		if g.Ops[0].Kind.Name != kind {
			keep = append(keep, g)
		}
	}
	f.Groups = keep
}
