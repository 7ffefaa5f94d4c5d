package attention

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// teamScores says how the scores of the heads and positions that a team takes at once are
// scattered over its lanes: each has some consecutive ones, all of one head, so that few
// lanes do the work on a score. A lane's part of every score, by
// head and position, becomes its own scores of all lanes' parts.
type teamScores struct {
	each   int            // scores of a lane
	copies int            // lanes that have the same
	lanes  int            // with different scores of a head
	offset []kernel.Value // by score: its position in the round
	team   kernel.Value   // first lane of the team
}

func (r *teamSums) startScores(laneID kernel.Value) {
	b, n := r.b, r.scoresPadded()
	r.scores = teamScores{each: max(1, n/r.team), copies: max(1, r.team/n), team: b.Sub(laneID, r.member)}
	r.scores.lanes = splitAhead / r.scores.each
	for i := range r.scores.each {
		j := b.Mod(b.Add(b.Mul(b.Div(r.member, r.scores.copies), r.scores.each), i), splitAhead)
		r.scores.offset = append(r.scores.offset, b.Add(r.first, b.Mul(j, r.teams())))
	}
}

// scoresPadded is the number of scores as a power of two.
func (r *teamSums) scoresPadded() int {
	n := splitAhead
	for n < r.share*splitAhead {
		n *= 2
	}
	return n
}

// scatter returns the lane's scores, each summed over the team. In every step lanes
// exchange half of what they have left.
func (r *teamSums) scatter(parts []kernel.Value) []kernel.Value {
	b := r.b
	for n := r.scoresPadded(); len(parts) < n; {
		parts = append(parts, parts[0])
	}
	mask := r.team / 2
	for ; mask > 0 && len(parts) > 1; mask /= 2 {
		upper := b.Ne(b.And(r.member, mask), 0)
		half := make([]kernel.Value, len(parts)/2)
		for i := range half {
			low, high := parts[i], parts[i+len(half)]
			half[i] = b.Add(b.Select(upper, high, low), b.SubgroupShuffleXor(b.Select(upper, low, high), mask))
		}
		parts = half
	}
	for ; mask > 0; mask /= 2 {
		parts[0] = b.Add(parts[0], b.SubgroupShuffleXor(parts[0], mask))
	}
	return parts
}

// holder returns the lane that has score i, by head and position.
func (r *teamSums) holder(i int) kernel.Value {
	return r.b.Add(r.scores.team, i/r.scores.each*r.scores.copies)
}

// perHead returns, by head, what the lanes of the head have in x.
func (r *teamSums) perHead(x kernel.Value) []kernel.Value {
	list := make([]kernel.Value, r.share)
	for h := range list {
		list[h] = r.b.SubgroupShuffle(x, r.holder(h*splitAhead))
	}
	return list
}
