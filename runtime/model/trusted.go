package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/trust"
	"github.com/zincc-dev/zincc/runtime/internal/compiler"
)

// checkTime is how long zincc may take to judge a plan.
const checkTime = 2 * time.Minute

// refused are plans that zincc has judged for this process: it is asked once.
var refused sync.Map // error by plans.Digest

// trusted reads a plan that may run here. Of a plan that nobody knows it asks `zincc check`; what zincc has judged are
// the bytes with the digest that it tells, so a file that changes meanwhile gains nothing.
func trusted(ctx context.Context, path string, said func(line string), watch progress.Watcher) (*plans.Plan, error) {
	p, err := plans.Read(path)
	if err != nil {
		return nil, err
	}
	err = trust.Check(p)
	var unknown *trust.UnknownError
	if errors.As(err, &unknown) {
		if err = ask(ctx, path, p, said, watch, unknown); err == nil {
			err = trust.Check(p)
		}
	}
	if err != nil {
		p.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// ask has zincc judge a plan. The error says why it may not run.
func ask(ctx context.Context, path string, p *plans.Plan, said func(line string), watch progress.Watcher, unknown *trust.UnknownError) error {
	d, _ := p.Digest()
	if err, ok := refused.Load(d); ok {
		return err.(error)
	}
	zincc, err := compiler.Find()
	if err != nil {
		return &trust.UnknownError{Why: errors.Join(unknown.Why, err)}
	}
	said(path + ": a plan that is new here: zincc compares it with what it makes itself")
	within, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	task := watch.Begin("checking the plan")
	defer task.Done()
	out, err := compiler.Run(within, said, task, zincc, "check", "--json", "--", path)
	var failed *compiler.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case within.Err() != nil:
		err = &trust.UnknownError{Why: fmt.Errorf("zincc check took longer than %s", checkTime)}
	case errors.As(err, &failed) && failed.Code == 1:
		err = fmt.Errorf("zincc check refuses the plan: %w", err)
	case err != nil:
		err = &trust.UnknownError{Why: err}
	}
	if err != nil {
		refused.Store(d, err)
		return err
	}
	var judged struct {
		SHA256 plans.Digest
	}
	if err := json.Unmarshal(out, &judged); err != nil {
		return fmt.Errorf("%s check: not a report: %w", zincc, err)
	}
	trust.Accept(judged.SHA256) // also where zincc could not record it
	return nil
}
