package codegen

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/ir/frontend"
	"github.com/zincc-dev/zincc/ir/gguf"
)

const (
	// roomyCtx is the least context to which Fill goes down for another slot.
	roomyCtx = 8 << 10
	// ctxUnit is what contexts that Fill finds are multiples of.
	ctxUnit = 256
)

// Fill chooses slots and context for so many bytes of memory, where they are negative in o: as many slots as leave
// each a context of 8,192 (or the model's own if that is less), and then the largest context that
// fits, up to the model's own.
func Fill(ctx context.Context, f *gguf.File, t *target.Target, o frontend.Options, memory int64, progress Progress) (frontend.Options, error) {
	own, err := frontend.Context(f)
	if err != nil {
		return o, err
	}
	if own == 0 {
		own = frontend.DefaultCtx
	}
	bounded := *t
	bounded.Memory = memory
	try := o
	try.Ctx = min(own, frontend.DefaultCtx)
	if o.Ctx > 0 {
		try.Ctx = o.Ctx
	}
	fitting := Progress(func(part string, done, total int) { progress.of("fitting the memory: "+part)(done, total) })
	largest := func(slots int) (int, error) {
		try.Slots = slots
		r, err := Compile(ctx, Source{Model: f}, Options{Target: &bounded, Import: try, Progress: fitting})
		if err != nil {
			return 0, err
		}
		return LargestCtx(r.Plan, &bounded), nil
	}
	want := min(own, roomyCtx)
	if o.Ctx > 0 {
		want = o.Ctx // above the model's own, too
	}
	slots, longest := o.Slots, 0
	if o.Slots < 0 {
		slots, longest, err = fillSlots(want, target.DecodeRows, largest)
	} else {
		longest, err = largest(slots)
	}
	if err != nil {
		return o, err
	}
	if longest == 0 {
		return o, fmt.Errorf("%s: %d MiB of memory are too little for this model", f.Path, memory>>20)
	}
	if o.Ctx < 0 {
		if o.Ctx = min(longest, own); o.Ctx < own && o.Ctx > ctxUnit {
			o.Ctx = o.Ctx / ctxUnit * ctxUnit
		}
	}
	o.Slots = slots
	return o, nil
}

// fillSlots returns the most slots, up to most, with which the largest context is want or more, and that context; one
// slot where none have it. More slots leave each less.
func fillSlots(want, most int, largest func(slots int) (int, error)) (slots, longest int, err error) {
	few, many := 1, most // few: enough, or not asked yet; many: to ask first, then too many
	for n := many; ; n = (few + many) / 2 {
		got, err := largest(n)
		switch {
		case err != nil:
			return 0, 0, err
		case got >= want || n == 1:
			few, slots, longest = n, n, got
		default:
			many = n
		}
		if slots == most || slots > 0 && many-few == 1 {
			return slots, longest, nil
		}
	}
}
