package cpu

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// nodes are the processors of each part of a computer that has memory of its own, by their numbers, ascending. There
// are none where all memory is as near, or where the system does not say.
type nodes [][]int

// readNodes reads what Linux shows below /sys/devices/system/node, of the processors that this program may use. Nodes
// without any, such as memory behind a bus, do not count.
func readNodes(sys fs.FS, may func(processor int) bool) nodes {
	names, err := fs.Glob(sys, "node[0-9]*")
	if err != nil || len(names) < 2 {
		return nil
	}
	var all nodes
	for _, name := range names {
		text, err := fs.ReadFile(sys, path.Join(name, "cpulist"))
		if err != nil {
			return nil
		}
		list, ok := parseList(strings.TrimSpace(string(text)))
		if !ok {
			return nil
		}
		list = slices.DeleteFunc(list, func(p int) bool { return !may(p) })
		if len(list) > 0 {
			all = append(all, list)
		}
	}
	if len(all) < 2 {
		return nil
	}
	slices.SortFunc(all, slices.Compare)
	return all
}

// mostProcessors bounds the numbers of processors that a list may have.
const mostProcessors = 1 << 14

// parseList reads a list as 0-3,8,10-11.
func parseList(text string) (list []int, ok bool) {
	if text == "" {
		return nil, true
	}
	for part := range strings.SplitSeq(text, ",") {
		low, high, ranged := strings.Cut(part, "-")
		if !ranged {
			high = low
		}
		from, err := strconv.Atoi(low)
		to, err2 := strconv.Atoi(high)
		if err != nil || err2 != nil || from < 0 || to < from || to >= mostProcessors {
			return nil, false
		}
		for p := from; p <= to; p++ {
			list = append(list, p)
		}
	}
	return list, true
}

// of returns the node of each of some threads: as many on a node as it has processors, by shares, those of a node one
// behind the other. Without nodes it is nil.
func (n nodes) of(threads int) []int {
	if n == nil {
		return nil
	}
	total, node, before := 0, 0, 0
	for _, list := range n {
		total += len(list)
	}
	where := make([]int, threads)
	for t := range where {
		// The middle of the thread's share of all processors.
		at := (2*t + 1) * total / (2 * threads)
		for at >= before+len(n[node]) {
			before += len(n[node])
			node++
		}
		where[t] = node
	}
	return where
}
