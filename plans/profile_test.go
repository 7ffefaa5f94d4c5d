package plans_test

import (
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/plans"
)

func TestReadProfileRefuses(t *testing.T) {
	for text, want := range map[string]string{
		``:   "not what `zincrun profile --json` prints",
		`{}`: "entry or sites are missing",
		`{"entry":"decode/1","sites":[{"site":"a","dispatches":0}]}`:            "0 dispatches",
		`{"entry":"decode/1","sites":[{"site":"a","dispatches":1,"us":-1}]}`:    "in -1 us",
		`{"entry":"decode/1","depth":-1,"sites":[{"site":"a","dispatches":1}]}`: "entry or sites are missing",
		strings.Repeat(" ", plans.MaxProfile+1):                                 "more than",
	} {
		if _, err := plans.ReadProfile(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
}

func FuzzReadProfile(f *testing.F) {
	f.Add(`{"device":"d","entry":"decode/1","rows":1,"depth":0,"sites":[{"site":"embed","kernel":"embed","dispatches":1,"us":2.5}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := plans.ReadProfile(strings.NewReader(text))
		if err != nil {
			return
		}
		p := &plans.Plan{Entries: []plans.Entry{{Name: m.Entry, Dispatches: []plans.Dispatch{{Site: m.Sites[0].Site}}}},
			Modules: []plans.Module{{Name: m.Sites[0].Kernel}}, Pipelines: []plans.Pipeline{{}}}
		times, found := m.Times(p)
		if len(times) != 1 || found > 1 {
			t.Errorf("%d times, %d found", len(times), found)
		}
	})
}
