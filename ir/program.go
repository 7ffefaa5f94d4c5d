package ir

import (
	"math"
	"strconv"
	"strings"
)

// Stage is how far a program has been compiled.
type Stage uint8

const (
	Import     Stage = iota // as the frontend built it: one function, one op a group
	Fuse                    // one function per entry, groups are dispatches
	Specialize              // every group has a kernel, its constants and its grid
	Schedule                // every group has a stage; a barrier stands between two stages
	Place                   // every arena value has an offset
	numStages
)

var stageNames = [numStages]string{"import", "fuse", "specialize", "schedule", "place"}

func (s Stage) String() string { return stageNames[s] }

// ParseStage is the inverse of Stage.String.
func ParseStage(s string) (Stage, bool) {
	for i, n := range stageNames {
		if n == s {
			return Stage(i), true
		}
	}
	return 0, false
}

// Program is a model in the op IR.
type Program struct {
	Stage   Stage
	Arch    string // general.architecture
	Name    string // general.name
	Path    string // the model file, as given to the compiler
	Source  string // fingerprint of the model file, in hex
	Target  string // target name, set by specialize
	Ctx     int    // bound of L
	Slots   int    // sequence slots
	Layers  int
	Globals []*Value
	Funcs   []*Func
}

// Global returns the global of that name, or nil.
func (p *Program) Global(name string) *Value {
	for _, g := range p.Globals {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Func returns the function of that name, or nil.
func (p *Program) Func(name string) *Func {
	for _, f := range p.Funcs {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Value is an SSA value of a function or, when Name is set, a global.
type Value struct {
	Name   string // globals only
	ID     int    // function values only; unique in the function
	Class  Class
	Type   Type
	Attrs  Attrs  // of a Table global: how to compute it
	Layout string // of a Weight from stage fuse on: how it lies on the device, by a name of package layout; of a KV PagesLayout or nothing
	Def    *Op    // the op that produces it; nil for globals
	Offset int64  // byte offset in the arena from stage place on, else -1
}

// IsGlobal reports whether v belongs to the program rather than to a function.
func (v *Value) IsGlobal() bool { return v.Name != "" }

// Op is one operation: one row of the op table applied to operands.
type Op struct {
	Kind   *OpKind
	Args   []*Value
	Attrs  Attrs
	Result *Value // nil for ops that only have effects
}

// Func is one function; from stage fuse on, one entry of the plan.
type Func struct {
	Name      string // "forward" after import, then "decode/1", "prefill/256", ...
	Rows      int    // bound of T
	Sequences Sequences
	Run       int // rows of one sequence in a step, at most
	Class     StepClass
	// Part is 0, or rows: a step of a prompt then may have rows of many sequences, in runs one behind the other. A run
	// begins at a multiple of Part. The rows from its end to the next multiple are dead: their slot is NoSlot, their
	// position that of the run's last row. They write no cache and no state. Nobody reads what else they compute.
	Part   int
	Groups []*Group
}

// Group is the ops that one dispatch computes.
type Group struct {
	Name string // label of the call site, such as "blk.0.qkv"; empty before fuse
	Ops  []*Op
	Call *Call // from stage specialize on
	Order
}

// Call is the kernel chosen for a group. The candidate's name identifies it among all candidates for the
// group; the form is what is chosen beside it. Kernel, constants, grid, subgroup size and arguments follow from group,
// candidate and form. They are repeated here for people and programs that read or check a program without the compiler.
type Call struct {
	Candidate string // ORDER/SHAPE, as its family offers it; empty on the host
	Form
	Kernel  string   // module key: kernel family and the fields that shape its code
	Consts  []Const  // specialization constants, in the kernel's order
	Grid    [3]int   // workgroups
	Wave    int      // required subgroup size, 0 for the device's own choice
	Args    []*Value // in the order of the kernel's arguments
	Sums    string   // in a function of class AlikeStep: the order of the sums, the same in all of the class; else empty
	Overlap Overlap  // from stage schedule on
	Why     string   // reason of the choice
}

// Name is that of the candidate in its form, as in tuning files; empty on the host.
func (c *Call) Name() string { return c.Form.Of(c.Candidate) }

// Const is one specialization constant.
type Const struct {
	Name  string
	Value uint32 // of a float its bits
	Float bool   `json:",omitempty"`
}

// FloatConst is a constant of type float32.
func FloatConst(name string, v float64) Const {
	return Const{name, math.Float32bits(float32(v)), true}
}

// String returns the constant in the form of .zir text: a float has a point or an exponent.
func (c Const) String() string { return c.Name + "=" + ConstText(c.Value, c.Float) }

// ConstText returns the value of a constant as text.
func ConstText(bits uint32, float bool) string {
	if !float {
		return strconv.FormatUint(uint64(bits), 10)
	}
	s := strconv.FormatFloat(float64(math.Float32frombits(bits)), 'g', -1, 32)
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s
}

// Ops returns every op in order.
func (f *Func) Ops() []*Op {
	var ops []*Op
	for _, g := range f.Groups {
		ops = append(ops, g.Ops...)
	}
	return ops
}

// Uses maps every value to the ops that read or write it, in order.
func (f *Func) Uses() map[*Value][]*Op {
	most := 0
	for _, g := range f.Groups {
		for _, op := range g.Ops {
			most += len(op.Args)
		}
	}
	uses := make(map[*Value][]*Op, most)
	lists := make([]*Op, most) // of one op each, until a value has another
	for _, g := range f.Groups {
		for _, op := range g.Ops {
			for i, a := range op.Args {
				if containsValue(op.Args[:i], a) {
					continue
				}
				list, again := uses[a]
				if !again {
					list, lists = lists[:0:1], lists[1:]
				}
				uses[a] = append(list, op)
			}
		}
	}
	return uses
}

func containsValue(vs []*Value, v *Value) bool {
	for _, w := range vs {
		if w == v {
			return true
		}
	}
	return false
}

// Inputs returns the values that g reads and does not produce, in order of first use.
func (g *Group) Inputs() []*Value {
	made := map[*Value]bool{}
	var in []*Value
	for _, op := range g.Ops {
		for _, a := range op.Args {
			if !made[a] && !containsValue(in, a) {
				in = append(in, a)
			}
		}
		if op.Result != nil {
			made[op.Result] = true
		}
	}
	return in
}

// Outputs returns the results of g that another group or the host reads, in order.
func (g *Group) Outputs(uses map[*Value][]*Op) []*Value {
	inside := map[*Op]bool{}
	for _, op := range g.Ops {
		inside[op] = true
	}
	var out []*Value
	for _, op := range g.Ops {
		r := op.Result
		if r == nil {
			continue
		}
		escapes := r.Class == IO
		for _, u := range uses[r] {
			escapes = escapes || !inside[u]
		}
		if escapes {
			out = append(out, r)
		}
	}
	return out
}

// Scratch returns, in order, the results of g that its kernel keeps in memory although no other group
// reads them: its workgroups exchange them.
func (g *Group) Scratch(uses map[*Value][]*Op) []*Value {
	if g.Call == nil {
		return nil
	}
	var out []*Value
	outputs := g.Outputs(uses)
	for _, op := range g.Ops {
		if r := op.Result; r != nil && containsValue(g.Call.Args, r) && !containsValue(outputs, r) {
			out = append(out, r)
		}
	}
	return out
}

// Writes returns the globals that g's ops write, in order.
func (g *Group) Writes() []*Value {
	var out []*Value
	for _, op := range g.Ops {
		for _, i := range op.Kind.Writes {
			if v := op.Args[i]; !containsValue(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}
