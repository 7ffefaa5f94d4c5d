package kernel

// Sum splits an index into terms, in the order in which they are added up, and numbers, the terms that are known at
// specialization time. The terms add up to less than 2^31, as indices do; Run checks it. So a lowering may add the
// numbers to an address instead of an index.
func (n *Node) Sum() (terms, numbers []*Node) {
	switch {
	case n.Static():
		return nil, []*Node{n}
	case n.op != OpAdd || n.typ != U32:
		return []*Node{n}, nil
	}
	for _, a := range n.args {
		t, m := a.Sum()
		terms, numbers = append(terms, t...), append(numbers, m...)
	}
	return terms, numbers
}

// NearNumbers bounds the sum of the numbers of an index that a lowering may split.
const NearNumbers = 1 << 20
