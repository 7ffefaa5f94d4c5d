package ir

// MaxSlots is the largest number of sequences that a program can hold.
const MaxSlots = 1 << 16

// Sequences says how many sequences the rows of a step of a function may belong to. A
// sequence has a slot: its part of every cache and state. In both cases the rows of a
// sequence stand side by side in the step, at consecutive positions.
type Sequences uint8

// The numbers of sequences.
const (
	OneSequence   Sequences = iota // all rows are of one sequence
	ManySequences                  // each row may be of another sequence
	numSequences
)

var sequencesNames = [numSequences]string{"one", "many"}

func (s Sequences) String() string { return sequencesNames[s] }

// ParseSequences is the inverse of Sequences.String.
func ParseSequences(text string) (Sequences, bool) {
	for i, n := range sequencesNames {
		if n == text {
			return Sequences(i), true
		}
	}
	return 0, false
}

// NoSlot is the slot of a dead row: see Func.Part.
const NoSlot = -1

// Mixes reports whether a step of f can have rows of different sequences.
func (p *Program) Mixes(f *Func) bool {
	return f.Sequences == ManySequences && f.Rows > 1 && p.Slots > 1
}

// SlotUse says what an op does with the slots of a step's rows.
type SlotUse uint8

// The uses of slots.
const (
	Slotless SlotUse = iota // nothing: a row's sequence does not matter
	RowSlot                 // each row reads or writes its own sequence's cache or state
	OneSlot                 // all rows of a step, or of each of its runs, are taken as one sequence
)

// UsesSlots reports whether an op of g looks at the slots of the step's rows.
func (g *Group) UsesSlots() bool {
	for _, op := range g.Ops {
		if op.Kind.Slots != Slotless {
			return true
		}
	}
	return false
}
