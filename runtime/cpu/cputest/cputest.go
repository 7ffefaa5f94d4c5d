// Package cputest holds what tests ask of plans for processors, on this one and on emulated ones.
package cputest

import (
	"context"
	"fmt"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/exec"
	"github.com/zincc-dev/zincc/runtime/text"
	"github.com/zincc-dev/zincc/runtime/verify"
)

// Greedy returns n tokens that follow a prompt.
func Greedy(ctx context.Context, plan *plans.Plan, x runtime.Executor, n int) ([]int32, error) {
	tok, err := text.New(plan.Vocab)
	if err != nil {
		return nil, err
	}
	prompt := tok.Encode("package main\n\nimport (\n\t\"fmt\"\n)\n", text.EncodeOptions{})
	s := runtime.NewSession(plan, x)
	token, err := s.Prefill(ctx, prompt, 0)
	if err != nil {
		return nil, err
	}
	all := []int32{token}
	for len(all) < n {
		more, err := s.Decode(ctx, token, min(runtime.Burst, n-len(all)))
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
		token = all[len(all)-1]
	}
	return all[:n], nil
}

// Verify compares dispatches of a layer of a dense model with the oracle, one at a time.
func Verify(ctx context.Context, plan *plans.Plan, src *plans.Source, x *exec.Executor) error {
	dev, err := x.Inspect()
	if err != nil {
		return err
	}
	r, err := verify.Plan(ctx, plan, src, dev, verify.Options{Layers: []int{0}, Context: 10,
		Only: func(entry string, dispatch int) bool {
			return entry == "decode/2" || entry == "prefill/48" && dispatch < 8
		}})
	if err == nil && (r.Failed > 0 || len(r.Results) < 20) {
		err = fmt.Errorf("%d results, %d failed, %+v", len(r.Results), r.Failed, r.First())
	}
	return err
}
