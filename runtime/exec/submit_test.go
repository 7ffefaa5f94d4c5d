package exec

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/driver/fake"
	"github.com/zincc-dev/zincc/runtime/internal/contents"
)

// TestRun holds what is submitted for a step, and what comes back: the step block goes to the device if the host has
// written to it, and comes back with the ids; logits come when they are asked for.
func TestRun(t *testing.T) {
	x, d := open(t, nil)
	e := &x.plan.Entries[0]
	begin(t, x, 5)
	check(t, runtime.Run(t.Context(), x, e, 2))
	wantInts(t, x, "out", after(5), after(after(5)))
	wantInts(t, x, "pos", 2)
	check(t, runtime.Run(t.Context(), x, e, 1))
	third := after(after(after(5)))
	wantInts(t, x, "out", after(5), after(after(5)), third)
	wantInts(t, x, e.Next, third)
	logits, err := x.Floats(e.Logits)
	check(t, err)
	if len(logits) != toyVocab || logits[3] != float32(1000*third+3) {
		t.Errorf("%d logits, the fourth is %g", len(logits), logits[3])
	}
	const step, entry, fetch = "{copy 1024 upload to local}", "{embed} {thrice, seven} {head} {advance}", "{copy 1024 local to readback, copy 16 local to readback}"
	want := []string{"1: " + step + " " + entry + " " + entry + " " + fetch, "2: " + entry + " " + fetch, "3: {copy 400 local to readback}"}
	if log := d.Log(); !slices.Equal(log, want) {
		t.Errorf("submitted\n%s\nwant\n%s", strings.Join(log, "\n"), strings.Join(want, "\n"))
	}
}

// TestRowsOfLogits: of many rows of logits those that are asked for are copied, unless most of them are.
func TestRowsOfLogits(t *testing.T) {
	plan := toyPlan()
	e := &plan.Entries[0]
	e.Kind, e.Rows = "decode", 4 // 25 logits each
	x, d := openPlan(t, plan, nil)
	begin(t, x, 5)
	check(t, runtime.Run(t.Context(), x, e, 1))
	d.Log()
	for _, c := range []struct {
		rows []int
		want string
	}{
		{[]int{2}, "2: {copy 100 local to readback}"},
		{[]int{3, 1}, "3: {copy 100 local to readback} {copy 100 local to readback}"},
		{[]int{2, 0, 1}, "4: {copy 400 local to readback}"},
	} {
		clear(x.memory.back.Bytes())
		logits, err := x.Floats(e.Logits, c.rows...)
		check(t, err)
		for _, r := range c.rows {
			if at := 25*r + 3; logits[at] != float32(1000*after(5)+int32(at)) {
				t.Errorf("rows %d: logit %d is %g", c.rows, at, logits[at])
			}
		}
		if log := d.Log(); !slices.Equal(log, []string{c.want}) {
			t.Errorf("rows %d: submitted %q, want %q", c.rows, log, c.want)
		}
	}
	for _, row := range []int{-1, 4} {
		if _, err := x.Floats(e.Logits, row); err == nil {
			t.Errorf("there is a row %d", row)
		}
	}
}

// TestShared: in the host's memory tables are filled, and logits read, where they are.
func TestShared(t *testing.T) {
	x, d := open(t, func(d *fake.Device) { d.Shared = true })
	e := &x.plan.Entries[0]
	begin(t, x, 5)
	check(t, runtime.Run(t.Context(), x, e, 1))
	logits, err := x.Floats(e.Logits)
	check(t, err)
	if len(logits) != toyVocab || logits[3] != float32(1000*after(5)+3) || x.memory.back != nil {
		t.Errorf("%d logits, the fourth is %g", len(logits), logits[3])
	}
	table := bytes.Repeat([]byte("table"), 20)
	m, err := x.dev.Alloc(int64(len(table)), driver.Local)
	check(t, err)
	filled := int64(0)
	write := writer(nil, map[string]place{"t": {buf: m, bytes: m.Size()}}, func(n int64) { filled += n })
	fill := func(p []byte, at int64) error { copy(p, table[at:]); return nil }
	check(t, write("t", m.Size(), fill))
	if !bytes.Equal(m.Bytes(), table) || filled != m.Size() {
		t.Errorf("%q is there, %d bytes are filled", m.Bytes(), filled)
	}
	if err := write("t", m.Size()+1, fill); err == nil {
		t.Error("more is written than there is room for")
	}
	if n := len(d.Log()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
}

// TestStopper: a device that can end work is told what nobody wants any more.
func TestStopper(t *testing.T) {
	d := fake.New(kernels)
	s := stopper{Device: d}
	x, err := New(t.Context(), &s, toyPlan(), nil, nil)
	check(t, err)
	defer x.Close()
	d.Hold(true)
	defer d.Hold(false)
	gone, stop := context.WithTimeout(t.Context(), time.Millisecond)
	defer stop()
	begin(t, x, 5)
	if err := runtime.Run(gone, x, &x.plan.Entries[0], 1); !errors.Is(err, context.DeadlineExceeded) || s.stopped != 1 {
		t.Errorf("submission %d is stopped: %v", s.stopped, err)
	}
}

type stopper struct {
	*fake.Device
	stopped driver.Fence
}

func (s *stopper) Stop(f driver.Fence) { s.stopped = f }

// TestOrder: the device is told each dispatch's queue and early start, but where it runs alone.
func TestOrder(t *testing.T) {
	plan := toyPlan()
	e := &plan.Entries[0]
	e.Dispatches[2].Queue, e.Dispatches[3].Early = 1, ir.WaitsFirst
	d := fake.New(kernels)
	x, err := New(t.Context(), d, plan, nil, nil)
	check(t, err)
	defer x.Close()
	d.Log()
	begin(t, x, 5)
	check(t, runtime.Run(t.Context(), x, e, 1))
	_, err = x.Profile(t.Context(), e, 1)
	check(t, err)
	log := d.Log()
	for i, want := range []string{"{embed} {thrice, seven on queue 1} {head early} {advance}", "{} {embed} {thrice} {seven} {head} {advance}"} {
		if !strings.Contains(log[i], want) {
			t.Errorf("submitted %s, want %s", log[i], want)
		}
	}
}

// TestSeveralEntries: entries of one submission run one behind the other, and the ids of each come back.
func TestSeveralEntries(t *testing.T) {
	x, d := open(t, nil)
	decode, prefill := &x.plan.Entries[0], &x.plan.Entries[1]
	begin(t, x, 1)
	ticket, err := x.Submit(t.Context(), runtime.Launch{Entry: decode, Times: 3}, runtime.Launch{Entry: prefill, Times: 1})
	check(t, err)
	check(t, x.Wait(t.Context(), ticket))
	third := after(after(after(1)))
	wantInts(t, x, decode.Next, third)
	wantInts(t, x, prefill.Next, after(third))
	if n := len(d.Log()); n != 1 {
		t.Errorf("%d submissions, want 1", n)
	}
}

// TestThreeOpen: the host prepares steps and submits them while one before runs; each has its own results.
func TestThreeOpen(t *testing.T) {
	x, d := open(t, nil)
	e := &x.plan.Entries[0]
	submit := func(token int32) (runtime.Ticket, error) {
		begin(t, x, token)
		return x.Submit(t.Context(), runtime.Launch{Entry: e, Times: 1})
	}
	d.Hold(true)
	one, err := submit(10)
	check(t, err)
	two, err := submit(20)
	check(t, err)
	other, err := submit(30)
	check(t, err)
	if _, err := submit(35); err == nil || !strings.Contains(err.Error(), "3 submissions are open") {
		t.Errorf("a fourth: %v", err)
	}
	short, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	if _, err := x.Profile(short, e, 1); err == nil || short.Err() != nil {
		t.Error("a profile beside open submissions")
	}
	d.Hold(false)
	check(t, x.Wait(t.Context(), one))
	wantInts(t, x, "out", after(10))
	three, err := submit(40)
	check(t, err)
	for _, w := range []struct {
		ticket runtime.Ticket
		token  int32
	}{{two, 20}, {other, 30}, {three, 40}} {
		check(t, x.Wait(t.Context(), w.ticket))
		wantInts(t, x, "out", after(w.token))
		wantInts(t, x, "token", after(w.token))
	}
	if err := x.Wait(t.Context(), two); err == nil {
		t.Error("a submission is waited for twice")
	}
}

// TestParts: the logits and the choice of a step are those of the whole; the mask that bounds a choice goes to the
// device while the logits are computed, as far as it was written, once, and does not come back.
func TestParts(t *testing.T) {
	x, d := openPlan(t, maskedPlan(), nil)
	e := &x.plan.Entries[0]
	submit := func(part runtime.Part) runtime.Ticket {
		t.Helper()
		ticket, err := x.Submit(t.Context(), runtime.Launch{Entry: e, Times: 1, Part: part})
		check(t, err)
		return ticket
	}
	begin(t, x, 10)
	d.Hold(true)
	logits := submit(runtime.Logits)
	check(t, x.Write("masked", []int32{1}))
	check(t, x.Write("mask", []int32{5, 6, 7, 8, 9}))
	begin(t, x, 10)
	d.Log()
	choice := submit(runtime.Choice)
	next := submit(runtime.Logits)
	if log := fmt.Sprint(d.Log()); strings.Count(log, "copy 32 upload to local") != 1 {
		t.Errorf("%s: want a copy of two rows of the mask", log)
	}
	d.Hold(false)
	for _, ticket := range []runtime.Ticket{logits, choice} {
		check(t, x.Wait(t.Context(), ticket))
	}
	wantInts(t, x, e.Next, after(10))
	check(t, x.Write("mask", []int32{5, 6, 7, 8, 1}))
	last := submit(runtime.Choice)
	check(t, x.Wait(t.Context(), next))
	check(t, x.Wait(t.Context(), last))
	wantInts(t, x, e.Next, after(after(10)))
	look, err := x.Inspect()
	check(t, err)
	got := make([]byte, 32)
	check(t, look.Read(t.Context(), plans.Arg{Space: "step", Region: "mask"}, got))
	if have := contents.Numbers[int32](got); !slices.Equal(have[:5], []int32{5, 6, 7, 8, 1}) {
		t.Errorf("the device has mask %d", have)
	}
	if _, err := x.Ints("mask"); err == nil {
		t.Error("the mask comes back")
	}
	for _, masked := range [][]int32{{3}, {-1}, {0, 1, 4}} {
		if err := x.Write("masked", masked); err == nil {
			t.Errorf("rows %d of a mask of 2", masked)
		}
	}
}

// TestStepsAhead compares any order of writes, submissions and waits with steps one by one.
func TestStepsAhead(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		d := fake.New(kernels)
		x, err := New(t.Context(), d, toyPlan(), nil, nil)
		check(t, err)
		defer x.Close()
		type open struct {
			ticket runtime.Ticket
			out    []int32
		}
		var tickets []open
		token, out := int32(0), []int32{} // of the device, behind all that is submitted
		begin(t, x, token)
		for range rapid.IntRange(1, 30).Draw(r, "actions") {
			switch action := rapid.IntRange(0, 2).Draw(r, "action"); {
			case action == 0:
				token, out = rapid.Int32Range(0, 96).Draw(r, "token"), nil
				begin(t, x, token)
			case action == 1 && len(tickets) < MaxOpen && len(out) < 6:
				times := rapid.IntRange(1, 2).Draw(r, "times")
				ticket, err := x.Submit(t.Context(), runtime.Launch{Entry: &x.plan.Entries[0], Times: times})
				check(t, err)
				for range times {
					token = after(token)
					out = append(out, token)
				}
				tickets = append(tickets, open{ticket, slices.Clone(out)})
			case action == 2 && len(tickets) > 0:
				i := rapid.IntRange(0, len(tickets)-1).Draw(r, "which")
				check(t, x.Wait(t.Context(), tickets[i].ticket))
				if have, err := x.Ints("out"); err != nil || !slices.Equal(have[:len(tickets[i].out)], tickets[i].out) {
					r.Fatalf("out is %d, want %d: %v", have, tickets[i].out, err)
				}
				tickets = slices.Delete(tickets, i, i+1)
			}
		}
	})
}

// TestGivenUp: who loses interest gets away at once; the next step waits for what was given up, but not for ever.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, d := open(t, nil)
		e := &x.plan.Entries[0]
		begin(t, x, 5)
		d.Hold(true)
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		began := time.Now()
		if err := runtime.Run(ctx, x, e, 1); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) > 2*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		if err := runtime.Run(ctx, x, e, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a step that nobody wants: %v", err)
		}
		begin(t, x, 6)
		patient, stop := context.WithTimeout(t.Context(), 10*time.Minute)
		defer stop()
		if err := runtime.Run(patient, x, e, 1); !errors.Is(err, driver.ErrTimeout) || !strings.HasPrefix(err.Error(), "device fake: submission 1 was given up and has not ended 1m0s later") {
			t.Errorf("behind a device that hangs: %v", err)
		}
		d.Hold(false)
		check(t, runtime.Run(t.Context(), x, e, 1))
		wantInts(t, x, "out", after(6))
	})
}

// TestNear: who wants to know is told once shortly before a submission ends, as the last one of its kind tells when
// that is; not in the first one, nor of one that ends sooner.
func TestNear(t *testing.T) {
	x, d := open(t, nil)
	e := &x.plan.Entries[0]
	var told []time.Duration
	run := func(takes time.Duration) {
		t.Helper()
		told = nil
		begin(t, x, 5)
		d.Hold(takes > 0)
		began := time.Now()
		x.Near(func() { told = append(told, time.Since(began)) })
		time.AfterFunc(takes, func() { d.Hold(false) })
		check(t, runtime.Run(t.Context(), x, e, 1))
	}
	const takes = 20 * time.Millisecond
	if run(takes); len(told) != 0 {
		t.Errorf("behind %v the first one is about to end", told)
	}
	if run(2 * takes); len(told) != 1 || told[0] < takes*8/10 || told[0] >= 2*takes {
		t.Errorf("told behind %v, want once, and shortly before %v", told, takes)
	}
	if run(0); len(told) != 0 {
		t.Errorf("told behind %v, though it took no time", told)
	}
	check(t, runtime.Run(t.Context(), x, e, 1))
	if len(told) != 0 {
		t.Error("who asked before is told of a later one")
	}
}

// TestFaults: a device that fails in any verb ends what was asked with an error that says so. None hangs, and Close
// returns.
func TestFaults(t *testing.T) {
	broken := errors.New("broken")
	on := func(verb string, from int, err error) func(d *fake.Device) {
		return func(d *fake.Device) {
			d.Fail = func(v string, before int) error {
				if v == verb && before >= from {
					return err
				}
				return nil
			}
		}
	}
	for _, c := range []struct {
		name  string
		fault func(d *fake.Device)
		want  error // nil for any
		text  string
	}{
		{"out of memory", func(d *fake.Device) { d.Most = 4096 }, nil, "of 4096 are used"},
		{"small allocations", func(d *fake.Device) { d.Largest = 1 << 10 }, nil, "limited to 1024"},
		{"first allocation", on("alloc", 0, broken), broken, "device fake: alloc"},
		{"last allocation", on("alloc", 6, broken), broken, "device fake: alloc"},
		{"load", on("load", 0, broken), broken, "device fake: load"},
		{"an entry", on("record", 1, broken), broken, "entry prefill/4: device fake: record"},
		{"a copy", on("record", 2, broken), broken, "device fake: record"},
		{"submit", on("submit", 0, broken), broken, "device fake: submit"},
		{"lost at submit", on("submit", 1, driver.ErrLost), driver.ErrLost, "device fake: submit"},
		{"wait", on("wait", 0, broken), broken, "device fake: wait"},
		{"lost at wait", on("wait", 1, driver.ErrLost), driver.ErrLost, "device fake: wait"},
		{"lost at work", on("run", 1, broken), driver.ErrLost, "device fake: run"},
		{"clock", on("clock", 0, broken), broken, "device fake: clock"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := fake.New(kernels)
			c.fault(d)
			first := steps(t, d)
			if first == nil || c.want != nil && !errors.Is(first, c.want) || !strings.Contains(first.Error(), c.text) {
				t.Errorf("error %v, want %v with %q", first, c.want, c.text)
			}
			if n := d.Used(); n != 0 {
				t.Errorf("%d bytes are left", n)
			}
		})
	}
}

// steps opens a plan, runs, profiles and saves, and returns the first error. A device that is lost must stay so.
func steps(t *testing.T, d *fake.Device) error {
	x, err := New(t.Context(), d, toyPlan(), nil, nil)
	if err != nil {
		return err
	}
	defer x.Close()
	e := &x.plan.Entries[0]
	for _, f := range []func() error{
		func() error { return runtime.Run(t.Context(), x, e, 1) },
		func() error { return runtime.Run(t.Context(), x, e, 1) },
		func() error { _, err := x.Floats(e.Logits); return err },
		func() error { _, err := x.Profile(t.Context(), e, 2); return err },
	} {
		begin(t, x, 1)
		if err := f(); err != nil {
			if again := runtime.Run(t.Context(), x, e, 1); errors.Is(err, driver.ErrLost) && !errors.Is(again, driver.ErrLost) {
				t.Errorf("behind %v: %v", err, again)
			}
			return err
		}
	}
	return nil
}

// TestBlockTable: at first each slot has pages of its own, as far as there are some. Rows of a table that the host
// writes are the device's behind the next submission, also while another is open; a row that has not changed is not
// copied, nor does the table come back.
func TestBlockTable(t *testing.T) {
	x, d := openPlan(t, pagedPlan(), nil)
	for _, table := range [][]int32{{1, 2, 3, 4}, {1, -1}, make([]int32, 5)} {
		if err := x.Write("pages", table); err == nil {
			t.Errorf("block table %d of 4 pages is written", table)
		}
	}
	look, err := x.Inspect()
	check(t, err)
	want := func(want ...int32) {
		t.Helper()
		got := make([]byte, 16)
		check(t, look.Read(t.Context(), plans.Arg{Space: "step", Region: "pages"}, got))
		if have := contents.Numbers[int32](got); !slices.Equal(have, want) {
			t.Errorf("the device has block table %d, want %d", have, want)
		}
	}
	submit := func(pages ...int32) (runtime.Ticket, int) {
		t.Helper()
		check(t, x.Write("pages", pages))
		check(t, x.Write("token", []int32{5}))
		ticket, err := x.Submit(t.Context(), runtime.Launch{Entry: &x.plan.Entries[0], Times: 1})
		check(t, err)
		log := strings.Join(d.Log(), "")
		if table := fmt.Sprint("copy ", x.memory.step.Size()); strings.Contains(log, table) {
			t.Errorf("%s has the whole block table", log)
		}
		return ticket, strings.Count(log, "{copy 8 upload to local}")
	}
	want(1, 2, 3, 0)
	d.Log()
	for _, step := range []struct {
		pages []int32
		rows  int
	}{{[]int32{1, 2, 3, 0}, 0}, {[]int32{3, 0, 3, 1}, 2}, {[]int32{3, 0, 3, 1}, 0}, {[]int32{3, 0, 2}, 1}} {
		ticket, rows := submit(step.pages...)
		if check(t, x.Wait(t.Context(), ticket)); rows != step.rows {
			t.Errorf("table %d: %d rows are copied, want %d", step.pages, rows, step.rows)
		}
	}
	want(3, 0, 2, 1)
	d.Hold(true)
	first, _ := submit(1, 0, 2, 1)
	second, rows := submit(1, 0, 3, 3)
	if d.Hold(false); rows != 1 {
		t.Errorf("behind an open submission %d rows are copied, want 1", rows)
	}
	check(t, x.Wait(t.Context(), first))
	check(t, x.Wait(t.Context(), second))
	want(1, 0, 3, 3)
	if _, err := x.Ints("pages"); err == nil {
		t.Error("the block table comes back")
	}
}

// TestRefuses: what does not fit the plan is an error.
func TestRefuses(t *testing.T) {
	x, _ := open(t, nil)
	for region, values := range map[string]int{"token": 5, "nothing": 1, "state": 1, "decode/1:%next": 1} {
		if err := x.Write(region, make([]int32, values)); err == nil {
			t.Errorf("%d values of %s are written", values, region)
		}
	}
	if _, err := x.Ints("state"); err == nil {
		t.Error("state is read as ints")
	}
	other := x.plan.Entries[0]
	other.Name = "decode/3"
	if err := runtime.Run(t.Context(), x, &other, 1); err == nil || !strings.Contains(err.Error(), `no entry "decode/3"`) {
		t.Errorf("an entry of another plan: %v", err)
	}
}

// TestJoin: copies are one where they lie one behind the other at both ends, with the same gap that aligns them.
func TestJoin(t *testing.T) {
	d := fake.New(nil)
	defer d.Close()
	var m [3]driver.Memory
	for i := range m {
		var err error
		m[i], err = d.Alloc(1<<20, driver.Local)
		check(t, err)
	}
	c := func(to, from int, toAt, fromAt, bytes int64) driver.Copy {
		return driver.Copy{To: m[to], ToAt: toAt, From: m[from], FromAt: fromAt, Bytes: bytes}
	}
	first := c(0, 1, 512, 1024, 100)
	for _, k := range []struct {
		about string
		next  driver.Copy
		want  []driver.Copy
	}{
		{"the next place of both", c(0, 1, 768, 1280, 40), []driver.Copy{c(0, 1, 512, 1024, 296)}},
		{"without a gap", c(0, 1, 612, 1124, 40), []driver.Copy{c(0, 1, 512, 1024, 140)}},
		{"another gap", c(0, 1, 768, 1536, 40), nil},
		{"a place between them", c(0, 1, 1024, 1536, 40), nil},
		{"before it", c(0, 1, 256, 768, 40), nil},
		{"to other memory", c(2, 1, 768, 1280, 40), nil},
		{"from other memory", c(0, 2, 768, 1280, 40), nil},
	} {
		if k.want == nil {
			k.want = []driver.Copy{first, k.next}
		}
		if have := join([]driver.Copy{first}, k.next); !slices.Equal(have, k.want) {
			t.Errorf("%s: %+v, want %+v", k.about, have, k.want)
		}
	}
}
