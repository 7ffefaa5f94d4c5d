package cpu

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
	"github.com/zincc-dev/zincc/runtime/cpu/native"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/internal/kept"
)

// shelf is where the weights are.
type shelf struct {
	file *kept.File     // that was mapped
	own  *native.Memory // else
	plan *plans.Plan
}

func (s *shelf) close() {
	if s.file != nil {
		_ = s.file.Close() // of memory that was mapped
	}
	if s.own != nil {
		s.own.Free()
	}
	*s = shelf{}
}

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

// Weights maps the weights of a plan if they are kept, and takes memory for them else.
func (d *device) Weights(ctx context.Context, plan *plans.Plan) (each []driver.Memory, there bool, err error) {
	d.shelf.plan = plan
	add := func(bytes []byte) { each = append(each, &memory{dev: d, bytes: bytes}) }
	if d.options.Keep != "" && d.find(ctx) {
		for _, w := range plan.Weights {
			add(d.shelf.file.Part(w.Name))
		}
		return each, true, nil
	}
	size := int64(0)
	for _, w := range plan.Weights {
		size += aligned(w.Bytes)
	}
	if d.shelf.own, err = native.AllocMemory(size); err != nil {
		return nil, false, d.errorf("%w", err)
	}
	at := int64(0)
	for _, w := range plan.Weights {
		add(d.shelf.own.Bytes[at : at+w.Bytes : at+w.Bytes])
		at += aligned(w.Bytes)
	}
	if on, threads := d.options.nodes, d.options.Threads; on != nil && threads >= len(on) { // with fewer, weights would take the memory of some nodes alone
		touch(plan, each, threads, on)
	}
	return each, false, nil
}

// find maps the weights if they are kept.
func (d *device) find(ctx context.Context) bool {
	key, parts, err := keptAs(d.shelf.plan, d.src)
	if err == nil {
		d.shelf.file, err = kept.Open(ctx, d.options.Keep, key, parts)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) && ctx.Err() == nil {
		d.options.Said(fmt.Sprintf("%v; they are made anew", err))
	}
	return err == nil
}

// Filled keeps the weights, which lie one behind the other. Where that fails, or the model was written while they were
// read, the plan runs all the same.
func (d *device) Filled(ctx context.Context) {
	if d.options.Keep == "" {
		return
	}
	key, parts, err := keptAs(d.shelf.plan, d.src)
	if err == nil {
		err = d.src.Unchanged()
	}
	path := ""
	if err == nil {
		path, err = kept.Write(ctx, d.options.Keep, key, parts, d.shelf.own.Bytes)
	}
	if err != nil {
		d.options.Said(fmt.Sprintf("the weights are not kept: %v", err))
		return
	}
	d.options.Said("kept the weights as " + path)
}
