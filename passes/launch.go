package passes

import (
	"cmp"
	"slices"

	"github.com/zincc-dev/zincc/ir"
)

// orderLaunches puts the groups of each stage in the order of their launches and says what each waits for: all stages
// before its own. On a device with several queues the dispatches of a stage begin on one each, those of rows in tiles
// in order of their work, the largest first and on queue 0: behind others it would be delayed. Of few rows the first of
// the stage is on queue 0, and launched last (docs/lab/hybrids.md). A lone dispatch begins early behind a lone one, if
// the device can have it so.
func orderLaunches(f *ir.Func, d Device) {
	early := EarlyOf(f, d.Overlaps)
	var list []*ir.Group
	lone := false // the stage before has one dispatch
	for _, stage := range stagesOf(f) {
		if d.Queues {
			stage = spread(f, stage)
		}
		for _, g := range stage {
			g.Waits = g.Stage
		}
		if lone && len(stage) == 1 {
			stage[0].Early = early
		}
		lone = len(stage) == 1
		list = append(list, stage...)
	}
	f.Groups = list
}

// stagesOf are the groups of each stage.
func stagesOf(f *ir.Func) (stages [][]*ir.Group) {
	for i, g := range f.Groups {
		if i == 0 || g.Stage != f.Groups[i-1].Stage {
			stages = append(stages, nil)
		}
		last := len(stages) - 1
		stages[last] = append(stages[last], g)
	}
	return stages
}

// spread puts the groups of a stage in the order of their launches, each on a queue.
func spread(f *ir.Func, stage []*ir.Group) []*ir.Group {
	list := slices.Clone(stage)
	queue := func(i int) int { return 1 + i%(ir.Queues-1) }
	if f.Class == ir.ExactStep {
		list = append(list[1:], list[0])
		for i, g := range list[:len(list)-1] {
			g.Queue = queue(i)
		}
		return list
	}
	slices.SortStableFunc(list, func(a, b *ir.Group) int { return cmp.Compare(workOf(f, a), workOf(f, b)) })
	slices.Reverse(list)
	for i, g := range list[1:] {
		g.Queue = queue(i)
	}
	return list
}
