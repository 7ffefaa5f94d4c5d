package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/zincc-dev/zincc/runtime/device"
	"github.com/zincc-dev/zincc/runtime/sample"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// locate adds to an error about logits that are not numbers which dispatch wrote the first such value,
// on devices that let us look. Nobody else may use the executor any more.
func (o *opened) locate(ctx context.Context, err error) error {
	var bad *sample.NotNumbersError
	if !errors.As(err, &bad) {
		return err
	}
	dev, cause := device.Inspect(o.Exec)
	if cause != nil {
		return err
	}
	first, cause := verify.FirstNotNumber(ctx, o.Plan, dev, bad.Sequence)
	switch {
	case cause != nil:
		return fmt.Errorf("%w; looking for the dispatch: %w", err, cause)
	case first == nil:
		return err
	}
	return fmt.Errorf("%w: %s", err, first)
}
