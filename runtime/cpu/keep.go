package cpu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
	"github.com/zincc-dev/zincc/runtime/internal/kept"
)

// keptAs is under which key a plan's weights are kept, and as which parts. Plans of one model share them where they
// have the same layouts.
func keptAs(plan *plans.Plan, src *plans.Source) (kept.Key, []kept.Part, error) {
	identity, err := src.Identity()
	text := fmt.Appendf(identity[:], "layouts %d\n", layout.Version)
	var parts []kept.Part
	for _, w := range plan.Weights {
		text = fmt.Appendf(text, "%q %s %d %s %d\n", w.Name, w.DType, w.Shape, w.Layout, w.Bytes)
		parts = append(parts, kept.Part{Name: w.Name, Bytes: w.Bytes})
	}
	return sha256.Sum256(text), parts, err
}

// find maps the weights of a plan if they are kept.
func (m *memory) find(ctx context.Context, plan *plans.Plan, src *plans.Source, o Options) {
	key, parts, err := keptAs(plan, src)
	if err == nil {
		m.kept, err = kept.Open(ctx, o.Keep, key, parts)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
			o.Said(fmt.Sprintf("%v; they are made anew", err))
		}
		return
	}
	for _, p := range parts {
		m.regions[place{weightSpace, p.Name}] = m.kept.Part(p.Name)
		if o.Progress != nil {
			o.Progress(p.Bytes)
		}
	}
}

// keep keeps the weights of a plan, which lie one behind the other. Where that fails, or the model was written while
// they were read, the plan runs all the same.
func keep(ctx context.Context, plan *plans.Plan, src *plans.Source, data []byte, o Options) {
	key, parts, err := keptAs(plan, src)
	if err == nil {
		err = src.Unchanged()
	}
	path := ""
	if err == nil {
		path, err = kept.Write(ctx, o.Keep, key, parts, data)
	}
	if err != nil {
		o.Said(fmt.Sprintf("the weights are not kept: %v", err))
		return
	}
	o.Said("kept the weights as " + path)
}
