package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zincc-dev/zincc/runtime/grammar"
)

// clock returns how to read the time: what passes, or the processor time of this thread, where the machine does other
// work, less what it takes to read it.
func (o *options) clock() func() time.Duration {
	if !o.cpu {
		began := time.Now()
		return func() time.Duration { return time.Since(began) }
	}
	runtime.LockOSThread()
	read := func() time.Duration {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
			panic(err)
		}
		return time.Duration(t.Nano())
	}
	cost, reads := time.Hour, time.Duration(0)
	for range 1000 {
		began := read()
		cost = min(cost, read()-began)
	}
	return func() time.Duration {
		reads++
		return read() - reads*cost
	}
}

// times are what bench measures.
type times struct{ first, later, allows []time.Duration }

// bench measures masks along random walks, and what it takes to the first one.
func bench(o *options, args []string) error {
	vocabularies, err := o.vocabularies()
	if err != nil {
		return err
	}
	list, err := find(args)
	if err != nil {
		return err
	}
	now := o.clock()
	for i, v := range vocabularies {
		var t times
		r := rand.New(rand.NewPCG(1, 0))
		for _, s := range list {
			if err := o.time(&t, r, s, v, now); err != nil {
				return err
			}
		}
		fmt.Printf("%s: %d schemas\n", o.tokenizers[i], len(t.first))
		for _, row := range []struct {
			name string
			list []time.Duration
		}{{"schema to first mask", t.first}, {"later masks", t.later}, {"4 candidates and the choice", t.allows}} {
			if len(row.list) == 0 {
				continue
			}
			slices.Sort(row.list)
			at := func(p float64) time.Duration { return row.list[int(p*float64(len(row.list)-1))] }
			fmt.Printf("  %-28s %7d  p50 %10v  p90 %10v  p99 %10v  most %10v\n", row.name, len(row.list), at(.5), at(.9), at(.99), at(1))
		}
	}
	return nil
}

// time measures three walks of a schema.
func (o *options) time(t *times, r *rand.Rand, s schema, v *grammar.Vocabulary, now func() time.Duration) error {
	began := now()
	g, _, err := grammar.Schema(inDraft(s.name, s.text), grammar.SchemaOptions{})
	if err != nil {
		return nil
	}
	m := g.Match(v)
	mask := m.Mask()
	t.first = append(t.first, now()-began)
	for walk := range 3 {
		if walk > 0 {
			m = g.Match(v)
			mask = m.Mask()
		}
		for range walkTokens {
			id, ok := pick(r, v, mask)
			if !ok {
				return fmt.Errorf("%s: %q: no token is allowed: %v", s.name, m.Text(), m.Err())
			}
			began := now()
			for range 4 { // candidates
				m.Allows(id)
			}
			if !m.Accept(id) {
				return fmt.Errorf("%s: token %d is not accepted", s.name, id)
			}
			t.allows = append(t.allows, now()-began)
			if m.Over() {
				break
			}
			began = now()
			mask = m.Mask()
			took := now() - began
			t.later = append(t.later, took)
			if o.verbose && took > 500*time.Microsecond {
				fmt.Printf("%6d us %s %.120q\n", took.Microseconds(), filepath.Base(s.name), m.Text())
			}
		}
	}
	return nil
}
