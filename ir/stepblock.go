package ir

// Names of values of class Step: of the step block, by which a program learns what a step is run on and says what it
// has chosen.
const (
	StepToken = "token"     // i32[T]: the id of each row
	StepPos   = "pos"       // i32[T]: its position
	StepSlot  = "slot"      // i32[T]: its sequence
	StepN     = "n"         // i32[1]: rows of this step
	StepOut   = "out"       // i32[ring]: chosen ids
	StepHeads = "head_rows" // i32[heads]: where steps have parts, the rows that get logits
	StepCount = "count"     // i32[1]: how many ids were chosen; the next one goes to out[count mod ring]
	StepPages = "pages"     // i32[slots, pages of a sequence]: the block table, where caches lie in pages
	// StepWindow is StepPages of caches of which rows see a window: sequences give back what lies before it.
	StepWindow = "window_pages"
	// i32[T]: 0, or 1 + the row of the mask that bounds the choice of this row
	StepMasked = "masked"
	// i32[slots, MaskWords(vocabulary)]: bit i mod 32 of word i/32 says whether token i may be chosen
	StepMask = "mask"

	// Arrivals counts the workgroups of a last-block reduction. No two dispatches may count at once.
	Arrivals = "arrivals"
)

// MaskWords is how many words of 32 tokens the mask of a vocabulary has.
func MaskWords(vocab int) int { return (vocab + 31) / 32 }
