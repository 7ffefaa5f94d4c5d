package plans

import (
	"crypto/sha256"
	"slices"
)

// unrun are the sections that say nothing of what a runtime executes.
var unrun = []string{"header", "vocab", "dialect", "embedded"}

// RunSum is the SHA-256 of everything that a runtime executes: kernels, commands, memory, and their
// op program.
func RunSum(p *Plan) [sha256.Size]byte {
	h := sha256.New()
	for _, s := range sections {
		if slices.Contains(unrun, s.name) {
			continue
		}
		data := s.encode(p)
		sum := sha256.Sum256(data)
		h.Write(sum[:])
	}
	return [sha256.Size]byte(h.Sum(nil))
}
