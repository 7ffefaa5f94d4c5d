package codegen

import (
	"fmt"
	"slices"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir"
)

// deferredRows is in how many steps of many sequences a state is written once. An update that waits costs two
// instructions an element of the state in each step.
const deferredRows = 3

// deferStates gives the states of delta rules a log, if the program has exact steps of more rows than narrow ones have,
// and lets these steps defer what they write.
func deferStates(p *ir.Program) error {
	for _, f := range p.Funcs {
		if f.Class != ir.ExactStep || f.Rows <= target.DecodeRows || !p.Mixes(f) {
			continue
		}
		for _, op := range f.Ops() {
			if op.Kind.Name != "deltanet" {
				continue
			}
			state, attrs := op.Args[5], op.Attrs
			if state.Type.Shape[3] < deferredRows || attrs.Int("defer") > 0 {
				continue
			}
			if ir.DeltaLog(state.Type) == 0 {
				state.Type.Shape[2] += 2 * deferredRows
			}
			op.Attrs = append(slices.Clone(attrs), ir.Attr{Name: "defer", Value: int64(ir.DeltaLog(state.Type))})
			if _, err := op.Kind.Infer(op); err != nil {
				return fmt.Errorf("%s: %w", op.Kind.Name, err)
			}
		}
	}
	return nil
}
