package modules

import (
	"fmt"
	"maps"
	"strings"
)

// overlap finds what a kernel that overlaps the one before may touch before it has waited: it
// follows all paths through the code.
func (r *ptxReader) overlap(text string) error {
	if !strings.Contains(text, "griddepcontrol.") {
		return nil
	}
	r.code.Overlaps, r.code.Early, r.code.Cached = true, map[int]bool{}, map[int]bool{}
	var lines []string
	labels := map[string]int{}
	for _, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if label, ok := strings.CutSuffix(line, ":"); ok {
			labels[label] = len(lines)
		}
		lines = append(lines, strings.TrimSuffix(line, ";"))
	}
	reached := make([]bool, len(lines)) // by a path that has not waited
	open := []int{0}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i >= len(lines) || reached[i] {
			continue
		}
		reached[i] = true
		line := lines[i]
		guard, rest, guarded := strings.Cut(line, " ")
		if guarded = guarded && strings.HasPrefix(guard, "@"); guarded {
			line = rest
		}
		falls := guarded || line != "ret" && !strings.HasPrefix(line, "bra ")
		name, rest, _ := strings.Cut(line, " ")
		switch {
		case name == "griddepcontrol.wait" && !guarded:
			continue
		case name == "ret":
			r.code.Faults = append(r.code.Faults, "returns before it has waited for the kernel before")
		case strings.HasPrefix(name, "bra."), strings.HasPrefix(name, "brx."), strings.HasPrefix(name, "call"), name == "exit":
			return fmt.Errorf("%s, which no kernel of this program has", name)
		case name == "bra":
			to, ok := labels[rest]
			if !ok {
				return fmt.Errorf("no label %q", rest)
			}
			open = append(open, to)
		case name == "griddepcontrol.launch_dependents":
			r.code.Hasty = true
		case strings.HasPrefix(name, "prefetch."): // changes no value, whoever writes meanwhile
		case strings.Contains(name, ".global"):
			if !strings.HasPrefix(name, "ld.") && !strings.HasPrefix(name, "cp.") {
				r.code.Faults = append(r.code.Faults, "writes before it has waited for the kernel before")
			}
			for _, o := range strings.FieldsFunc(rest, func(c rune) bool { return strings.ContainsRune(" ,{}|", c) }) {
				if strings.HasPrefix(o, "[") {
					address, _, _ := strings.Cut(strings.Trim(o, "[]"), "+")
					maps.Copy(r.code.Early, r.from[address])
					if !strings.HasPrefix(name, "ld.relaxed.gpu.") {
						maps.Copy(r.code.Cached, r.from[address])
					}
				}
			}
		}
		if falls {
			open = append(open, i+1)
		}
	}
	return nil
}
