package plans

import (
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// checkEntries holds what a session is told of entries, the output ring and the vocabulary
// against the program.
func checkEntries(c *checker) {
	p := c.plan
	for i := range p.Entries {
		checkEntry(c, &p.Entries[i], p.Program.Funcs[i])
	}
	checkMask(c)
	checkHeads(c)
	h := &p.Header
	if n := len(p.Vocab.Tokens); n != 0 && h.Model.Vocab != n {
		c.add("entry", "", "", "vocabulary of %d, the tokenizer has %d tokens", h.Model.Vocab, len(p.Vocab.Tokens))
	}
	if n := len(p.Vocab.Types); n != 0 && n != h.Model.Vocab {
		c.add("entry", "", "", "vocabulary of %d, %d tokens have types", h.Model.Vocab, n)
	}
	if n := len(p.Vocab.Scores); n != 0 && n != h.Model.Vocab {
		c.add("entry", "", "", "vocabulary of %d, %d tokens have scores", h.Model.Vocab, n)
	}
}

// kinds are what a session does with entries that give logits: whether they choose the next id, and whether of
// every row or of the last one.
var kinds = map[string]struct{ next, everyRow bool }{
	"decode": {true, true}, "prefill": {true, false}, "score": {false, true},
}

func checkEntry(c *checker, e *Entry, f *ir.Func) {
	if kind, _, _ := strings.Cut(f.Name, "/"); e.Kind != kind {
		c.add("entry", e.Name, "", "kind is %q, the function is of kind %q", e.Kind, kind)
	}
	if decodes := e.Kind == "decode"; decodes != f.IsDecode() {
		c.add("entry", e.Name, "", "kind is %q, steps are %s, of %s sequences", e.Kind, f.Class, f.Sequences)
	}
	kind := kinds[e.Kind]
	var have Entry
	for _, op := range f.Ops() {
		v := op.Result
		switch op.Kind.Name {
		case "advance":
			checkRing(c, e, op)
		case "candidates":
			checkCandidates(c, e, op)
		case "take_rows":
			if rows := op.Args[1]; rows.Name != ir.StepHeads {
				c.add("entry", e.Name, "", "rows that get logits are those of %s, not of %s", rows.Name, ir.StepHeads)
			}
		case "embed":
			if table := op.Args[1].Type; table.Shape[0] < ir.Dim(c.plan.Header.Model.Vocab) {
				c.add("entry", e.Name, "", "embeddings %s of a vocabulary of %d", table, c.plan.Header.Model.Vocab)
			}
		}
		if v == nil || v.Class != ir.IO {
			continue
		}
		result := have.Result(op)
		*result = IORegion(f.Name, v)
		if e.Kind == "embed" || result == &have.Candidates { // vectors are as wide as the model; candidates have rows of logits
			continue
		}
		if result == &have.Logits && int(v.Type.Last()) != c.plan.Header.Model.Vocab {
			c.add("entry", e.Name, "", "logits %s of a vocabulary of %d", v.Type, c.plan.Header.Model.Vocab)
		}
		rows, what := ir.T, "logits"
		if !kind.everyRow {
			rows = ir.Dim(f.Heads())
		}
		if result != &have.Logits {
			what = "next ids"
		}
		if v.Type.Shape[0] != rows {
			c.add("entry", e.Name, "", "%s %s in an entry of kind %q", what, v.Type, e.Kind)
		}
	}
	if e.Logits != have.Logits {
		c.add("entry", e.Name, "", "logits are in region %q, the function leaves them in %q", e.Logits, have.Logits)
	}
	if e.Next != have.Next {
		c.add("entry", e.Name, "", "next ids are in region %q, the function leaves them in %q", e.Next, have.Next)
	}
	if (have.Next != "") != kind.next {
		c.add("entry", e.Name, "", "next ids in region %q in an entry of kind %q", have.Next, e.Kind)
	}
	if e.Candidates != have.Candidates {
		c.add("entry", e.Name, "", "candidates are in region %q, the function leaves them in %q", e.Candidates, have.Candidates)
	}
}

// checkCandidates demands that candidates are of the logits that the entry leaves.
func checkCandidates(c *checker, e *Entry, op *ir.Op) {
	if x := op.Args[0]; !kinds[e.Kind].next || x.Class != ir.IO || IORegion(e.Name, x) != e.Logits || op.Result.Class != ir.IO {
		c.add("entry", e.Name, "", "candidates are of %s, not of the logits by which the entry chooses", x)
	}
}

// checkRing holds the ring that advance fills against what the header says.
func checkRing(c *checker, e *Entry, advance *ir.Op) {
	for _, v := range advance.Args {
		if v.Class == ir.Step && v.Name == ir.StepOut && int(v.Type.Shape[0]) != c.plan.Header.Ring {
			c.add("entry", e.Name, "", "output ring is %s, the header has %d ids", v.Type, c.plan.Header.Ring)
		}
	}
}

// checkMask holds what bounds the choice of tokens to what the host writes: kernels follow it without a look at how
// many rows there are. What decides it besides are the candidates of the same logits.
func checkMask(c *checker) {
	words := ir.MaskWords(c.plan.Header.Model.Vocab)
	for _, want := range []ir.Value{
		{Name: ir.StepMasked, Type: ir.MakeType(ir.I32, ir.T)},
		{Name: ir.StepMask, Type: ir.MakeType(ir.I32, ir.Dim(c.plan.Header.Slots), ir.Dim(words))},
	} {
		if g := c.plan.Program.Global(want.Name); g != nil && (g.Class != ir.Step || !g.Type.Equal(want.Type)) {
			c.add("entry", "", "", "%s is %s %s, not step %s", want.Name, g.Class, g.Type, want.Type)
		}
	}
	for _, f := range c.plan.Program.Funcs {
		for _, op := range f.Ops() {
			choice, args := op.Kind.Name, op.Args
			if choice != "argmax" && choice != "argmax_split" {
				continue
			}
			if len(args) > 1 && (args[1].Name != ir.StepMasked || args[2].Name != ir.StepMask) {
				c.add("entry", f.Name, "", "%s is bounded by %s and %s, not by %s and %s", choice, args[1].Name, args[2].Name, ir.StepMasked, ir.StepMask)
			}
			if len(args) > 3 && (args[3].Def == nil || args[3].Def.Kind.Name != "candidates" || args[3].Def.Args[0] != args[0]) {
				c.add("entry", f.Name, "", "%s is decided by %s, which are not the candidates of %s", choice, args[3], args[0])
			}
		}
	}
}

// checkHeads demands that the host can say which rows of steps with parts get logits: kernels follow it without a look
// at how many rows there are.
func checkHeads(c *checker) {
	g := c.plan.Program.Global(ir.StepHeads)
	for _, f := range c.plan.Program.Funcs {
		if f.Part > 0 && (g == nil || g.Class != ir.Step || g.Type.DType != ir.I32 || len(g.Type.Shape) != 1 || g.Type.Shape[0] < ir.Dim(f.Heads())) {
			c.add("entry", f.Name, "", "steps have parts, and the step block no %s of %d rows", ir.StepHeads, f.Heads())
		}
	}
}
