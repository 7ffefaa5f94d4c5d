package plans

// GrainOf returns the grain that the dispatches of an entry give it: the least multiple of theirs, if its run is one
// of that; else 0.
func GrainOf(e *Entry) int {
	grain := 1
	for i := range e.Dispatches {
		d := e.Dispatches[i].Grain
		if d <= 0 || d > e.Run {
			return 0
		}
		grain = grain / gcd(grain, d) * d
		if e.Run%grain != 0 {
			return 0
		}
	}
	return grain
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// checkGrains holds the grains of entries against those of their dispatches.
func checkGrains(c *checker) {
	for i := range c.plan.Entries {
		e := &c.plan.Entries[i]
		if want := GrainOf(e); e.Grain != want {
			c.add("grain", e.Name, "", "steps begin at multiples of %d, its dispatches have it %d", e.Grain, want)
		}
	}
}
