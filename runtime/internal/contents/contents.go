// Package contents fills the memory of a plan: what lies there before the first step.
package contents

import (
	"context"
	"encoding/binary"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/ir/oracle"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/layout"
)

// Writer puts bytes where the device has a weight or a table of that name. It calls fill with
// pieces of them, also several at once and after it has returned: p is to become what the bytes from at on are. Its
// error may be of what it was called for before.
type Writer func(name string, bytes int64, fill func(p []byte, at int64) error) error

// Weights writes all weights in the layouts of the plan.
func Weights(ctx context.Context, plan *plans.Plan, src *plans.Source, write Writer) error {
	for _, w := range plan.Weights {
		if err := ctx.Err(); err != nil {
			return err
		}
		l, err := layout.Named(w.Layout, w.DType, w.Shape...)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", w.Name, err)
		}
		if l.Bytes != w.Bytes {
			return fmt.Errorf("tensor %q: %d bytes in layout %s, the plan has %d", w.Name, l.Bytes, l.Name, w.Bytes)
		}
		data, err := src.Weight(w.Name)
		if err != nil {
			return err
		}
		err = write(w.Name, w.Bytes, func(p []byte, at int64) error {
			if err := src.Read(func() error { return l.Fill(p, at, data) }); err != nil {
				return fmt.Errorf("tensor %q: %w", w.Name, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Tables computes the tables and writes them; their ops are the oracle's.
func Tables(ctx context.Context, plan *plans.Plan, write Writer) error {
	for _, r := range plan.Memory.Tables {
		values, err := oracle.Table(ctx, plan.Program.Global(r.Name), plan.Program.Ctx)
		if err != nil {
			return fmt.Errorf("table %q: %w", r.Name, err)
		}
		data := make([]byte, 4*len(values))
		if _, err := binary.Encode(data, binary.LittleEndian, values); err != nil {
			return err
		}
		err = write(r.Name, r.Bytes, func(p []byte, at int64) error { copy(p, data[at:]); return nil })
		if err != nil {
			return err
		}
	}
	return nil
}

// Part is the bytes of a piece of Fill. One thread alone reads less than the disk gives of a file that the system does
// not hold.
const Part = 1 << 20

// Fill fills p, which begins at at, in pieces, on all processors.
func Fill(p []byte, at int64, fill func(p []byte, at int64) error) error {
	var g errgroup.Group
	g.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(p); from += Part {
		piece := p[from:min(from+Part, len(p))]
		g.Go(func() error { return fill(piece, at+int64(from)) })
	}
	return g.Wait()
}
