package zincc_test

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/passes"
	"github.com/zincc-dev/zincc/plans"
)

// TestReach holds that two steps take a prompt only where that is predicted to take less
// time than one of the next wider entry, and that there are such prompts.
func TestReach(t *testing.T) {
	f := writeHeader(t, "qwen3-8b", published["qwen3-8b"])
	on, err := target.Lookup("sm_90")
	if err != nil {
		t.Fatal(err)
	}
	plan := emit(t, f, on, frontend.Options{Ctx: 4096, KV: ir.F16, MaxRows: codegen.MaxRows})
	seconds, widest := map[int]float64{}, 0 // of full steps
	for i := range plan.Entries {
		if e := &plan.Entries[i]; e.Kind != passes.Score {
			seconds[e.Rows], widest = e.Predict(0).Seconds(), max(widest, e.Rows)
		}
	}
	next := func(e *plans.Entry) int {
		wider := widest
		for rows := range seconds {
			if rows > e.Rows {
				wider = min(wider, rows)
			}
		}
		return wider
	}
	reaching := 0
	for i := range plan.Entries {
		e := &plan.Entries[i]
		rest, wider := e.Reach-e.Rows, next(e)
		switch {
		case rest == 0:
		case e.Kind != passes.Prefill || e.Rows == widest:
			t.Errorf("%s reaches to %d", e.Name, e.Reach)
		case seconds[rest] == 0 || seconds[e.Rows]+seconds[rest] >= seconds[wider]:
			t.Errorf("%s reaches to %d: %.0f and %.0f us, %.0f in prefill/%d", e.Name, e.Reach,
				1e6*seconds[e.Rows], 1e6*seconds[rest], 1e6*seconds[wider], wider)
		default:
			reaching++
		}
	}
	// A step of 129 rows has two tiles of 128 rows, of 513 five.
	if reaching < 2 {
		t.Errorf("%d entries reach further than their rows", reaching)
	}
}
