package plans

import (
	"slices"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

// dataTell has the step's data tell which workgroups along axis 1 meet, of which each may be alone.
func dataTell(s *site) {
	s.Cover[0].Dims, s.Cover[0].Tile, s.Cover[0].Axis = []int{5, 8}, []int{0, 4}, []int{1, 0}
}

// TestMeeting changes a dispatch of 2 x 5 workgroups, of which those along axis 1 meet.
func TestMeeting(t *testing.T) {
	counters, partial := &ir.Value{Name: "arrivals", Class: ir.Step}, &ir.Value{ID: 1}
	for _, c := range []struct {
		name    string
		change  func(s *site)
		message string // empty where all is well
	}{
		{"meets", func(s *site) {}, ""},
		{"does not meet", func(s *site) { s.Cover[0].Joined = nil; s.scratch = nil }, `output "y" is written once by each of 5 workgroups of axis 1`},
		{"meets on another axis", func(s *site) { s.Cover[0].Joined = []int{2} }, `output "y" is written once by each of 5 workgroups`},
		{"hands over without meeting", func(s *site) { s.Cover[0].Joined = nil }, "%1 is a workspace, but there is no last-block reduction"},
		{"no counters", func(s *site) { s.Args[1].Name = "others" }, "no argument counts the workgroups"},
		{"counters are not of the step", func(s *site) { s.Args[1].Space = "arena" }, "no argument counts the workgroups"},
		{"counters are only written", func(s *site) { s.Args[1].Read = false }, "no argument counts the workgroups"},
		{"too few counters", func(s *site) { s.Args[1].Bytes = 4 }, "has 4 bytes, the 2 workgroups"},
		{"data tell who meets", dataTell, ""},
		{"data tell who meets, with too few counters", func(s *site) { dataTell(s); s.Args[1].Bytes = 36 }, "has 36 bytes, the 10 workgroups"},
	} {
		s := &site{
			entry: &Entry{Name: "decode/1"}, group: &ir.Group{Call: &ir.Call{Args: []*ir.Value{partial, counters}}}, scratch: []*ir.Value{partial},
			Dispatch: &Dispatch{Site: "a", Grid: [3]int{2, 5, 1},
				Args: []Arg{{Name: "partial", Space: "arena", Bytes: 400, Read: true, Write: true},
					{Name: "arrivals", Space: "step", Region: "arrivals", Bytes: 64, Read: true, Write: true}},
				Cover: []Cover{{Arg: "y", Dims: []int{8}, Tile: []int{4}, Axis: []int{0}, Joined: []int{1}}}},
		}
		c.change(s)
		check := &checker{}
		checkGrid(check, s)
		found := checkMeeting(check, s)
		bad := slices.ContainsFunc(check.problems, func(p Problem) bool { return strings.Contains(p.Message, c.message) })
		if c.message == "" && (len(check.problems) > 0 || found != counters) || c.message != "" && !bad {
			t.Errorf("%s: %v", c.name, check.problems)
		}
	}
}
