// Package spare keeps memory of a device for the next who wants some: it takes milliseconds to get.
package spare

import "slices"

// Pool has pieces of memory that were given up.
type Pool[M any] struct {
	Most  int // pieces that are kept
	Alloc func(bytes int64) (M, error)
	Size  func(M) int64
	Free  func(M)
	kept  []M
}

// Take returns memory of that size at least: what another has left, or new.
func (p *Pool[M]) Take(bytes int64) (M, error) {
	for i, m := range p.kept {
		if p.Size(m) >= bytes {
			p.kept = slices.Delete(p.kept, i, i+1)
			return m, nil
		}
	}
	// What is too small has no use any more, and may be in the way.
	for _, m := range p.kept {
		p.Free(m)
	}
	p.kept = p.kept[:0]
	return p.Alloc(bytes)
}

// Leave gives memory up.
func (p *Pool[M]) Leave(m M) {
	if len(p.kept) < p.Most {
		p.kept = append(p.kept, m)
		return
	}
	p.Free(m)
}

// Kept is how many pieces wait.
func (p *Pool[M]) Kept() int { return len(p.kept) }
