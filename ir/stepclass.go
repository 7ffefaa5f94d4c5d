package ir

// StepClass says which bits the rows of a function's steps have.
type StepClass uint8

// The classes of steps.
const (
	PromptStep StepClass = iota // rows are computed in tiles, in any order of sums
	// ExactStep: each row has the bits that it has in a step of its own. Dispatches read weights once for all rows, and
	// add in the order of a step of one row. So decode entries of every width give the same bits.
	ExactStep
	// AlikeStep: rows are computed in tiles, in one order of sums in all functions of the class. So rows of a prompt
	// have the same bits in steps of any of them.
	AlikeStep
	numStepClasses
)

var stepClassNames = [numStepClasses]string{"prompt", "exact", "alike"}

func (c StepClass) String() string { return stepClassNames[c] }

// ParseStepClass is the inverse of StepClass.String.
func ParseStepClass(text string) (StepClass, bool) {
	for i, n := range stepClassNames {
		if n == text {
			return StepClass(i), true
		}
	}
	return 0, false
}

// Exact reports whether each row of v, a value of f, is to have the bits that it has alone: all rows of an exact step,
// and those that get logits where others do not.
func (f *Func) Exact(v *Value) bool {
	return f.Class == ExactStep || v.Type.Shape[0] == 1 || f.Part > 0 && v.Type.Shape[0] == Dim(f.Heads())
}

// Heads is how many rows of a step with parts get logits; 1 without parts.
func (f *Func) Heads() int {
	if f.Part == 0 {
		return 1
	}
	return f.Rows / f.Part
}

// Choice is the group that chooses tokens within a mask, and those behind it; all groups come before it if none does.
func (f *Func) Choice() int {
	for i, g := range f.Groups {
		for _, v := range g.Inputs() {
			if v.Class == Step && v.Name == StepMask {
				return i
			}
		}
	}
	return len(f.Groups)
}

// IsDecode reports whether f decodes: its steps are exact, and their rows may belong to many sequences.
func (f *Func) IsDecode() bool { return f.Class == ExactStep && f.Sequences == ManySequences }
