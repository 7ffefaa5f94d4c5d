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
	lines, labels := instructions(text)
	reached := make([]bool, len(lines)) // by a path that has not waited
	open := []int{0}
	for len(open) > 0 {
		i := open[len(open)-1]
		open = open[:len(open)-1]
		if i >= len(lines) || reached[i] {
			continue
		}
		reached[i] = true
		next, err := r.beforeWait(lines[i], labels)
		if err != nil {
			return err
		}
		if next.jumps {
			open = append(open, next.to)
		}
		if next.falls {
			open = append(open, i+1)
		}
	}
	return nil
}

// instruction is a line of code. Guarded ones may do nothing.
type instruction struct {
	name, operands string
	guarded        bool
}

// instructions returns the lines of code, and by label the line that it stands before.
func instructions(text string) (list []instruction, labels map[string]int) {
	labels = map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		line, _, _ = strings.Cut(line, "//")
		line = strings.TrimSpace(line)
		if label, ok := strings.CutSuffix(line, ":"); ok {
			labels[label] = len(list)
		}
		line = strings.TrimSuffix(line, ";")
		guard, rest, guarded := strings.Cut(line, " ")
		if guarded = guarded && strings.HasPrefix(guard, "@"); guarded {
			line = rest
		}
		name, operands, _ := strings.Cut(line, " ")
		list = append(list, instruction{name, operands, guarded})
	}
	return list, labels
}

// following is where code goes on behind an instruction: at the next, at a label, or both.
type following struct {
	falls, jumps bool
	to           int
}

// beforeWait notes what an instruction does that a path reaches without having waited, and returns where such a path
// goes on.
func (r *ptxReader) beforeWait(i instruction, labels map[string]int) (next following, err error) {
	next.falls = true
	switch {
	case i.name == "griddepcontrol.wait":
		next.falls = i.guarded
	case i.name == "ret":
		r.code.Faults = append(r.code.Faults, "returns before it has waited for the kernel before")
		next.falls = i.guarded || i.operands != ""
	case strings.HasPrefix(i.name, "bra."), strings.HasPrefix(i.name, "brx."), strings.HasPrefix(i.name, "call"), i.name == "exit":
		return next, fmt.Errorf("%s, which no kernel of this program has", i.name)
	case i.name == "bra":
		next.falls = i.guarded
		if next.to, next.jumps = labels[i.operands]; !next.jumps {
			return next, fmt.Errorf("no label %q", i.operands)
		}
	case i.name == "griddepcontrol.launch_dependents":
		r.code.Hasty = true
	case strings.HasPrefix(i.name, "prefetch."): // changes no value, whoever writes meanwhile
	case strings.Contains(i.name, ".global"):
		r.touches(i)
	}
	return next, nil
}

// touches notes what an instruction loads or stores before the kernel has waited.
func (r *ptxReader) touches(i instruction) {
	if !strings.HasPrefix(i.name, "ld.") && !strings.HasPrefix(i.name, "cp.") {
		r.code.Faults = append(r.code.Faults, "writes before it has waited for the kernel before")
	}
	for _, o := range strings.FieldsFunc(i.operands, func(c rune) bool { return strings.ContainsRune(" ,{}|", c) }) {
		if !strings.HasPrefix(o, "[") {
			continue
		}
		address, _, _ := strings.Cut(strings.Trim(o, "[]"), "+")
		maps.Copy(r.code.Early, r.from[address])
		if !strings.HasPrefix(i.name, "ld.relaxed.gpu.") && !strings.HasPrefix(i.name, "cp.async.cg.") {
			maps.Copy(r.code.Cached, r.from[address])
		}
	}
}
