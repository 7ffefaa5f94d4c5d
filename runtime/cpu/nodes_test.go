package cpu

import (
	"slices"
	"testing"
	"testing/fstest"
)

// recorded are what computers show below /sys/devices/system/node: the processors of each node.
var recorded = map[string]map[string]string{
	"one socket":                    {"node0": "0-15"},
	"two sockets with two threads":  {"node0": "0-15,32-47", "node1": "16-31,48-63"},
	"four parts of one socket":      {"node0": "0-3", "node1": "4-7", "node2": "8-11", "node3": "12-15"},
	"memory behind a bus":           {"node0": "0-7", "node1": "8-15", "node2": ""},
	"memory behind a bus, one node": {"node0": "0-7", "node1": ""},
	"numbers that are not in order": {"node0": "0-1", "node10": "8-9", "node2": "4-5"},
	"no list":                       {"node0": "0-7", "node1": "eight"},
	"a list without an end":         {"node0": "0-7", "node1": "8-999999999"},
}

func tree(of map[string]string) fstest.MapFS {
	files := fstest.MapFS{"online": {Data: []byte("0\n")}, "has_cpu": {Data: []byte("0\n")}}
	for node, list := range of {
		files[node+"/cpulist"] = &fstest.MapFile{Data: []byte(list + "\n")}
		files[node+"/meminfo"] = &fstest.MapFile{Data: []byte("Node 0 MemTotal: 1 kB\n")}
	}
	return files
}

func TestNodes(t *testing.T) {
	all := func(int) bool { return true }
	even := func(p int) bool { return p%2 == 0 }
	first := func(p int) bool { return p < 8 }
	for _, c := range []struct {
		what    string
		may     func(int) bool
		threads int
		want    []int // the node of each thread; nil where there is one node
	}{
		{"one socket", all, 16, nil},
		{"two sockets with two threads", all, 4, []int{0, 0, 1, 1}},
		{"two sockets with two threads", even, 6, []int{0, 0, 0, 1, 1, 1}},
		{"two sockets with two threads", first, 6, nil}, // one is left
		{"four parts of one socket", all, 8, []int{0, 0, 1, 1, 2, 2, 3, 3}},
		{"four parts of one socket", func(p int) bool { return p < 10 }, 5, []int{0, 0, 1, 1, 2}},
		{"four parts of one socket", all, 2, []int{1, 3}},
		{"memory behind a bus", all, 2, []int{0, 1}},
		{"memory behind a bus, one node", all, 2, nil},
		{"numbers that are not in order", all, 6, []int{0, 0, 1, 1, 2, 2}},
		{"no list", all, 2, nil},
		{"a list without an end", all, 2, nil},
	} {
		n := readNodes(tree(recorded[c.what]), c.may)
		if have := n.of(c.threads); !slices.Equal(have, c.want) {
			t.Errorf("%s: threads on nodes %d, want %d (%d)", c.what, have, c.want, n)
		}
		for _, list := range n {
			if slices.ContainsFunc(list, func(p int) bool { return !c.may(p) }) {
				t.Errorf("%s: processors %d, of which not all may be used", c.what, list)
			}
		}
	}
	n := readNodes(tree(recorded["numbers that are not in order"]), all)
	if !slices.EqualFunc(n, nodes{{0, 1}, {4, 5}, {8, 9}}, slices.Equal) {
		t.Errorf("%d", n)
	}
}
