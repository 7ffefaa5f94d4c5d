package rdna

// banks are those of the shared memory of a compute unit, of which each gives a word a cycle.
const banks = 32

// conflicts is how many cycles an access to shared memory takes beyond what it has words for. Lanes are served in their
// order, so many at once that their words may lie in all banks; those that want the same word get it at once.
func conflicts(where *lanes, exec uint64, of, words int) (cycles int64) {
	var have [banks][banks]uint64 // the words of a bank that are wanted
	for first := 0; first < of; first += banks / words {
		var counts [banks]int
		most := 1
		for l := first; l < min(of, first+banks/words); l++ {
			if exec>>l&1 == 0 {
				continue
			}
			for i := range words {
				word := where[l]/4 + uint64(i)
				bank := word % banks
				n, k := counts[bank], 0
				for k < n && have[bank][k] != word {
					k++
				}
				if k == n {
					have[bank][n] = word
					counts[bank]++
					most = max(most, n+1)
				}
			}
		}
		cycles += int64(most - 1)
	}
	return cycles
}
