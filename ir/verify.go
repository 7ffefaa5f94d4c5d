package ir

import (
	"errors"
	"fmt"
)

// Verify checks that p is well formed and keeps what its stage promises. The
// error names function, group and op.
func Verify(p *Program) error {
	if err := VerifyStructure(p); err != nil {
		return err
	}
	if p.Stage == Import && len(p.Funcs) != 1 {
		return fmt.Errorf("verify: stage import has %d functions, want 1", len(p.Funcs))
	}
	for _, g := range p.Globals {
		if g.Class == Weight && p.Stage >= Specialize && g.Layout == "" {
			return fmt.Errorf("verify: global @%s: a weight without a layout", g.Name)
		}
	}
	for _, f := range p.Funcs {
		for i, g := range f.Groups {
			if err := verifyPromises(p.Stage, g); err != nil {
				return fmt.Errorf("verify: func %q: group %d %q: %w", f.Name, i, g.Name, err)
			}
		}
	}
	return nil
}

// MaxCtx bounds the positions of a program.
const MaxCtx = 1 << 24

// VerifyStructure checks what holds at any time, also between the passes of a
// stage: the op table's rules, SSA order and unique names.
func VerifyStructure(p *Program) error {
	if p.Ctx <= 0 || p.Ctx > MaxCtx {
		return fmt.Errorf("verify: a context of %d positions: want 1 to %d", p.Ctx, MaxCtx)
	}
	if p.Slots <= 0 || p.Slots > MaxSlots {
		return fmt.Errorf("verify: %d slots: want 1 to %d", p.Slots, MaxSlots)
	}
	globals, err := verifyGlobals(p)
	if err != nil {
		return err
	}
	funcs := map[string]bool{}
	for _, f := range p.Funcs {
		if f.Name == "" || funcs[f.Name] {
			return fmt.Errorf("verify: func %q: empty or repeated name", f.Name)
		}
		funcs[f.Name] = true
		if err := verifyFunc(p, f, globals); err != nil {
			return fmt.Errorf("verify: func %q: %w", f.Name, err)
		}
	}
	if err := checkGroups(p); err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	return nil
}

// verifyGlobals returns the globals of p, if each is well formed.
func verifyGlobals(p *Program) (map[*Value]bool, error) {
	names := map[string]bool{}
	globals := map[*Value]bool{}
	var paged *Value // the first
	for _, g := range p.Globals {
		if g.Name == "" || names[g.Name] {
			return nil, fmt.Errorf("verify: global %q: empty or repeated name", g.Name)
		}
		names[g.Name] = true
		globals[g] = true
		if paged == nil && g.Paged() {
			paged = g
		}
		if err := verifyGlobal(p, g, paged); err != nil {
			return nil, fmt.Errorf("verify: global @%s: %w", g.Name, err)
		}
	}
	return globals, nil
}

// verifyGlobal checks g, whose pages, if it lies in such, are like those of paged.
func verifyGlobal(p *Program, g, paged *Value) error {
	switch {
	case g.Class == Arena:
		return errors.New("class arena belongs to function values")
	case g.Layout != "" && g.Class != Weight && !g.Paged():
		return fmt.Errorf("class %s has no layout %q", g.Class, g.Layout)
	}
	if err := checkType(g.Type, 1<<20, p.Ctx); err != nil {
		return err
	}
	if g.Class == KV && len(g.Type.Shape) != 3 {
		return fmt.Errorf("type %s: a KV cache has slots, positions and elements", g.Type)
	}
	if g.Paged() {
		if s, t := g.Type.Shape, paged.Type.Shape; s[1] != t[1] {
			return fmt.Errorf("pages of %d positions, @%s has some of %d", s[1], paged.Name, t[1])
		}
	}
	return g.Attrs.checkFinite()
}

func checkType(t Type, rows, ctx int) error {
	if t.DType == Invalid || t.DType >= numDTypes || len(t.Shape) == 0 || len(t.Shape) > 4 {
		return fmt.Errorf("bad type %s", t)
	}
	_, err := t.Bytes(rows, ctx)
	return err
}

func verifyFunc(p *Program, f *Func, globals map[*Value]bool) error {
	if f.Rows <= 0 || f.Rows > 1<<20 || f.Sequences >= numSequences || f.Class >= numStepClasses {
		return fmt.Errorf("rows %d, sequences %d or class %d out of range", f.Rows, f.Sequences, f.Class)
	}
	if f.Run <= 0 || f.Run > f.Rows || f.Sequences == OneSequence && f.Run != f.Rows {
		return fmt.Errorf("runs of %d rows in a step of %d rows of %s sequences", f.Run, f.Rows, f.Sequences)
	}
	if f.Part != 0 && (f.Part < 0 || f.Rows%f.Part != 0 || f.Class == ExactStep || f.Sequences != ManySequences || f.Run != f.Rows) {
		return fmt.Errorf("parts of %d rows in %s steps of %d rows, with runs of %d, of %s sequences", f.Part, f.Class, f.Rows, f.Run, f.Sequences)
	}
	defined := newScope(f)
	var before Order
	for i, g := range f.Groups {
		if len(g.Ops) == 0 {
			return fmt.Errorf("group %d %q: no ops", i, g.Name)
		}
		if err := g.Order.verify(before); err != nil {
			return fmt.Errorf("group %d %q: %w", i, g.Name, err)
		}
		before = g.Order
		if err := verifyGroup(p, f, g, globals, defined); err != nil {
			return fmt.Errorf("group %d %q: %w", i, g.Name, err)
		}
	}
	return nil
}

// verifyGroup verifies the ops of a group, which it adds to those that are defined, and its call.
func verifyGroup(p *Program, f *Func, g *Group, globals map[*Value]bool, defined *scope) error {
	for _, op := range g.Ops {
		if err := verifyOp(op, globals, defined); err != nil {
			return err
		}
		if err := checkRing(op, f.Rows); err != nil {
			return err
		}
		if err := checkPages(p, op); err != nil {
			return err
		}
		if op.Kind.Slots == OneSlot && p.Mixes(f) && f.Part == 0 {
			return fmt.Errorf("%s takes rows of one sequence, the function's may be of many", op.Kind.Name)
		}
		if op.Kind.Name == "delta_chunk" && (len(op.Args) > 4) != (f.Part > 0) {
			return fmt.Errorf("delta_chunk looks at positions only, and always, where steps have parts")
		}
		if n := op.Attrs.Int("count"); op.Kind.Name == "take_rows" && (f.Part == 0 || n != f.Heads()) {
			return fmt.Errorf("take_rows of %d rows where parts of %d rows have %d", n, f.Part, f.Heads())
		}
		r := op.Result
		if r == nil {
			continue
		}
		if r.ID < 0 || defined.at(r.ID) != nil {
			return fmt.Errorf("value %%%d defined twice", r.ID)
		}
		defined.add(r)
		if r.Class != Arena && r.Class != IO {
			return fmt.Errorf("%%%d has class %s", r.ID, r.Class)
		}
		if err := checkType(r.Type, f.Rows, p.Ctx); err != nil {
			return fmt.Errorf("%%%d: %w", r.ID, err)
		}
	}
	if g.Call == nil {
		return nil
	}
	for _, a := range g.Call.Args {
		if !globals[a] && !defined.has(a) {
			return errors.New("call argument is not a value of this function")
		}
	}
	return nil
}

// scope are the values of a function that are defined so far, by ID. IDs are small, but in programs that somebody has
// written.
type scope struct {
	small []*Value
	large map[int]*Value
}

func newScope(f *Func) *scope {
	ops := 0
	for _, g := range f.Groups {
		ops += len(g.Ops)
	}
	return &scope{make([]*Value, 4*ops), map[int]*Value{}}
}

// at returns the value of an ID, or nil.
func (s *scope) at(id int) *Value {
	if id < len(s.small) {
		return s.small[id]
	}
	return s.large[id]
}

func (s *scope) add(v *Value) {
	if v.ID < len(s.small) {
		s.small[v.ID] = v
	} else {
		s.large[v.ID] = v
	}
}

func (s *scope) has(v *Value) bool { return v != nil && v.ID >= 0 && s.at(v.ID) == v }

func verifyPromises(stage Stage, g *Group) error {
	switch {
	case stage == Import && (len(g.Ops) != 1 || g.Name != ""):
		return fmt.Errorf("stage import has one unnamed op a group")
	case stage > Import && g.Name == "":
		return fmt.Errorf("no name")
	case stage >= Specialize && g.Call == nil:
		return fmt.Errorf("no kernel")
	case stage < Specialize && g.Call != nil:
		return fmt.Errorf("a kernel before stage specialize")
	case stage < Schedule && g.Order != (Order{}):
		return fmt.Errorf("an order of launches before stage schedule")
	}
	if g.Call != nil {
		for _, n := range g.Call.Grid {
			if n <= 0 {
				return fmt.Errorf("grid %v", g.Call.Grid)
			}
		}
		if stage < Schedule && !g.Call.Overlap.none() {
			return fmt.Errorf("an overlap before stage schedule")
		}
		return g.Call.Overlap.verify(len(g.Call.Args))
	}
	return nil
}

func verifyOp(op *Op, globals map[*Value]bool, defined *scope) error {
	t, err := op.check()
	if err != nil {
		return err
	}
	if err := op.Attrs.checkFinite(); err != nil {
		return fmt.Errorf("%s: %w", op.Kind.Name, err)
	}
	for i, a := range op.Args {
		if !globals[a] && !defined.has(a) {
			return fmt.Errorf("%s: operand %s is used before it is defined", op.Kind.Name, op.Kind.Params[i])
		}
	}
	for _, k := range op.Kind.Keeps {
		if c := op.Args[k.Arg].Class; c != k.Class {
			return fmt.Errorf("%s: operand %s has class %s, want %s", op.Kind.Name, op.Kind.Params[k.Arg], c, k.Class)
		}
	}
	for _, i := range op.Kind.Writes {
		if c := op.Args[i].Class; c != KV && c != State && c != Step {
			return fmt.Errorf("%s: writes operand %s of class %s", op.Kind.Name, op.Kind.Params[i], c)
		}
	}
	switch {
	case t.DType == Invalid && op.Result != nil:
		return fmt.Errorf("%s: has no result", op.Kind.Name)
	case t.DType != Invalid && (op.Result == nil || !op.Result.Type.Equal(t)):
		return fmt.Errorf("%s: result is not %s", op.Kind.Name, t)
	}
	return nil
}
