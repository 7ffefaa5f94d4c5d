package attention

import (
	"slices"

	"github.com/zincc-dev/zincc/codegen/kernel"
)

// earlyHead is what lanes have loaded of a head ahead, by access of the lane: the elements and, unless
// there are none, the norm's weights.
type earlyHead struct{ x, gain []*kernel.Var }

// turnsInLanes reports whether the lanes of a subgroup have all that an access turns with, in heads of one part.
func (h *headsGroup) turnsInLanes() bool {
	if slices.ContainsFunc(h.chains, func(c *headChain) bool { return c.latent != nil }) {
		return false
	}
	if h.rope == nil {
		return true
	}
	if h.apart() {
		return false
	}
	rotated := h.rope.Attrs.Int("n_rot") / h.vec
	half := rotated / 2
	return rotated <= h.wave && (h.rope.Attrs.Str("kind") != "neox" || half&(half-1) == 0)
}

// loadGains loads the weights of a chain's norm in the subgroups where `when` holds.
func (k *headMaker) loadGains(a *chainArgs, when kernel.Value) {
	b, e := k.b, &earlyHead{}
	if k.early == nil {
		k.early = map[*chainArgs]*earlyHead{}
	}
	k.early[a] = e
	if a.gain == nil {
		return
	}
	e.gain = k.accessVars()
	b.If(when, func() {
		k.chunks(func(first int, j kernel.Value) { e.gain[first/k.wave].Set(a.gain.Load(kernel.F32.Vec(k.vec), j)) })
	})
}

// loadHead loads a head of a chain whose weights are loaded.
func (k *headMaker) loadHead(a *chainArgs, head, when kernel.Value) {
	e, from := k.early[a], k.begin(a, head)
	e.x = k.accessVars()
	k.b.If(when, func() {
		k.chunks(func(first int, j kernel.Value) {
			e.x[first/k.wave].Set(a.x.Load(kernel.F32.Vec(k.vec), k.b.Add(from, j)))
		})
	})
}

func (k *headMaker) accessVars() (list []*kernel.Var) {
	for first := 0; first < k.headDim/k.vec; first += k.wave {
		list = append(list, k.b.Var(kernel.F32.Vec(k.vec), k.b.Splat(k.b.F32(0), k.vec)))
	}
	return list
}

// loadTurns loads the angles of the position, if all chains turn by the same table.
func (k *headMaker) loadTurns() {
	if len(k.turns) != 1 {
		return
	}
	b, rotated := k.b, k.rope.Attrs.Int("n_rot")/k.vec
	k.cosSin = k.turns[0]
	row, j := b.Mul(k.at, rotated), b.Min(b.SubgroupLane(), rotated-1)
	if k.rope.Attrs.Str("kind") != "neox" {
		k.turn = k.turnAt(b.Add(row, j), 1)
		return
	}
	half := rotated / 2
	k.turn = k.turnAt(b.Add(row, b.Mul(b.Select(b.Lt(j, half), j, b.Sub(j, half)), 2)), 2)
}
