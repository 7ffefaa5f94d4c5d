package hostile

import (
	"errors"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/model"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// TestCutWhileVerifying cuts the file with the weights while dispatches are compared with the oracle, which reads
// weights as it needs them.
func TestCutWhileVerifying(t *testing.T) {
	for _, embed := range []bool{false, true} {
		file, path := ownModel(t, "cpu", embed)
		o, err := model.Open(t.Context(), path, model.Options{Device: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		defer o.Close()
		dev, err := device.Inspect(o.Exec)
		if err != nil {
			t.Fatal(err)
		}
		holds := file
		if embed {
			holds = path
		}
		_, err = verify.Plan(t.Context(), o.Plan, o.Source, dev, verify.Options{Rows: 1, Context: 1, Progress: func(done, _ int) {
			if done == 2 {
				cut(t, holds)
			}
		}})
		if !errors.Is(err, mapped.ErrCut) || !strings.Contains(err.Error(), holds) {
			t.Errorf("embedded %v: %v", embed, err)
		}
	}
}
