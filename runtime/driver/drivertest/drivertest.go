// Package drivertest holds a driver to what the verbs of package driver promise, but for Load and dispatches, which
// need code of the back end.
package drivertest

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/runtime/driver"
)

const timeout = time.Minute

// Test tests the device that open opens; Test closes it.
func Test(t *testing.T, open func(t *testing.T) driver.Device) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, d driver.Device)
	}{
		{"info", info}, {"memory", memory}, {"copies", copies}, {"order", order}, {"fences", fences}, {"freed", freed}, {"clock", clock}, {"unfinished", unfinished},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := open(t)
			defer d.Close()
			c.test(t, d)
			d.Close()
		})
	}
}

func info(t *testing.T, d driver.Device) {
	if i := d.Info(); i.Backend == "" || i.Name == "" || i.Driver == "" || i != d.Info() {
		t.Errorf("%+v", i)
	}
}

func memory(t *testing.T, d driver.Device) {
	for _, kind := range []driver.Kind{driver.Local, driver.Upload, driver.Readback} {
		m := alloc(t, d, 1000, kind)
		mapped := len(m.Bytes()) == 1000 || kind == driver.Local && m.Bytes() == nil
		if m.Address()%256 != 0 || m.Address() == 0 || m.Size() != 1000 || !mapped {
			t.Errorf("kind %d: %d bytes at %#x, %d mapped", kind, m.Size(), m.Address(), len(m.Bytes()))
		}
		m.Free()
		m.Free() // once is enough
	}
	for _, bytes := range []int64{0, -1, 1 << 60} {
		if m, err := d.Alloc(bytes, driver.Local); err == nil || m != nil {
			t.Errorf("%d bytes: %v, %v", bytes, m, err)
		}
	}
}

// copies moves bytes to the device, within it, and back, in one work.
func copies(t *testing.T, d driver.Device) {
	up, a, b, back := alloc(t, d, 3000, driver.Upload), alloc(t, d, 3000, driver.Local), alloc(t, d, 3000, driver.Local), alloc(t, d, 3000, driver.Readback)
	w := record(t, d, all(a, up),
		driver.Stage{Copies: []driver.Copy{{To: b, ToAt: 2000, From: a, Bytes: 1000}, {To: b, From: a, FromAt: 1000, Bytes: 2000}}},
		all(back, b))
	for round := range 3 { // the host's bytes are those at the time of the submission
		for i := range up.Bytes() {
			up.Bytes()[i] = byte(i/7 + round)
		}
		wait(t, d, submit(t, d, w))
		want := slices.Concat(up.Bytes()[1000:], up.Bytes()[:1000])
		if !bytes.Equal(back.Bytes(), want) {
			t.Fatalf("round %d: other bytes come back", round)
		}
	}
}

// order: stages, works of a submission and submissions run one behind the other.
func order(t *testing.T, d driver.Device) {
	const n = 64
	up, back := alloc(t, d, n, driver.Upload), alloc(t, d, n, driver.Readback)
	for i := range up.Bytes() {
		up.Bytes()[i] = byte(i + 1)
	}
	chain := alloc(t, d, n, driver.Local)
	// Each byte is made of the one before it, which must be there.
	step := func(i int64) driver.Stage {
		return driver.Stage{Copies: []driver.Copy{{To: chain, ToAt: i, From: chain, FromAt: i - 1, Bytes: 1}}}
	}
	var stages []driver.Stage
	for i := range int64(20) {
		stages = append(stages, step(i+1))
	}
	begin := record(t, d, all(chain, up))
	many, more := record(t, d, stages...), record(t, d, step(21))
	submit(t, d, begin, many, more)
	for i := int64(22); i < n; i++ {
		submit(t, d, record(t, d, step(i)))
	}
	wait(t, d, submit(t, d, record(t, d, all(back, chain))))
	if want := bytes.Repeat([]byte{1}, n); !bytes.Equal(back.Bytes(), want) {
		t.Errorf("%d, want ones", back.Bytes())
	}
}

// fences count up. Waiting for one waits for those before it; waiting twice is waiting once.
func fences(t *testing.T, d driver.Device) {
	wait(t, d, 0)
	m, back := alloc(t, d, 16, driver.Upload), alloc(t, d, 16, driver.Readback)
	w := record(t, d, all(back, m))
	var last driver.Fence
	for i := range driver.Fence(10) {
		if last = submit(t, d, w); last != i+1 {
			t.Fatalf("submission %d is numbered %d", i+1, last)
		}
	}
	wait(t, d, last)
	wait(t, d, last-5)
	for f := range last + 1 {
		if err := d.Wait(f, 0); err != nil {
			t.Errorf("submission %d has ended: %v", f, err)
		}
	}
	if err := d.Wait(last+1, 0); err == nil {
		t.Error("a submission that was not made has ended")
	}
}

// slow is a submission that copies bytes 200 times.
func slow(t *testing.T, d driver.Device, bytes int64) driver.Fence {
	a, b := alloc(t, d, bytes, driver.Local), alloc(t, d, bytes, driver.Local)
	var stages []driver.Stage
	for range 100 {
		stages = append(stages, all(a, b), all(b, a))
	}
	w := record(t, d, stages...)
	defer a.Free()
	defer b.Free()
	defer w.Free()
	return submit(t, d, w)
}

// busy is a submission that the device works at for 50 ms more. Fast devices end short copies while the host still
// submits others: the copies grow until they last.
func busy(t *testing.T, d driver.Device) driver.Fence {
	for began, bytes := time.Now(), int64(1<<20); time.Since(began) < timeout; bytes *= 2 {
		f := slow(t, d, bytes)
		behind := time.Now()
		wait(t, d, f)
		if time.Since(behind) >= 50*time.Millisecond {
			return slow(t, d, bytes)
		}
	}
	t.Fatalf("no submission lasts: Wait returns before its end, or Submit behind it")
	return 0
}

// freed: what is freed while a submission uses it lives until that has ended.
func freed(t *testing.T, d driver.Device) {
	up, local, back := alloc(t, d, 1<<20, driver.Upload), alloc(t, d, 1<<20, driver.Local), alloc(t, d, 1<<20, driver.Readback)
	for i := range up.Bytes() {
		up.Bytes()[i] = 7
	}
	busy(t, d)
	w := record(t, d, all(local, up), all(back, local))
	f := submit(t, d, w)
	w.Free()
	up.Free()
	local.Free()
	for range 8 { // whose memory must be another
		alloc(t, d, 1<<20, driver.Local)
	}
	wait(t, d, f)
	if back.Bytes()[0] != 7 || back.Bytes()[1<<20-1] != 7 {
		t.Error("memory is gone that a submission reads")
	}
}

// clock: times of stages, since the first; also where the work runs again, and where works of a submission share it.
func clock(t *testing.T, d driver.Device) {
	k, err := d.Clock(3)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Free()
	a, b := alloc(t, d, 1<<20, driver.Local), alloc(t, d, 1<<20, driver.Local)
	middle, end := all(a, b), all(b, a)
	middle.Stamp, end.Stamp = driver.Stamp{Clock: k, Slot: 1}, driver.Stamp{Clock: k, Slot: 2}
	begin := driver.Stage{Stamp: driver.Stamp{Clock: k}}
	one := []driver.Work{record(t, d, begin, middle, end)}
	three := []driver.Work{record(t, d, begin), record(t, d, middle), record(t, d, end)}
	for _, works := range [][]driver.Work{one, one, three, three} {
		wait(t, d, submit(t, d, works...))
		times, err := k.Read()
		if err != nil || len(times) != 3 || times[0] != 0 || times[1] <= 0 || times[2] <= times[1] || times[2] > timeout {
			t.Errorf("times %v, %v", times, err)
		}
	}
}

// unfinished: a wait that is too short says so, and Close does not wait for ever.
func unfinished(t *testing.T, d driver.Device) {
	f := busy(t, d)
	for _, short := range []time.Duration{0, time.Nanosecond} {
		if err := d.Wait(f, short); !errors.Is(err, driver.ErrTimeout) {
			t.Errorf("a wait of %v: %v", short, err)
		}
	}
}

func alloc(t *testing.T, d driver.Device, bytes int64, kind driver.Kind) driver.Memory {
	t.Helper()
	m, err := d.Alloc(bytes, kind)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// all copies all of an allocation.
func all(to, from driver.Memory) driver.Stage {
	return driver.Stage{Copies: []driver.Copy{{To: to, From: from, Bytes: to.Size()}}}
}

func record(t *testing.T, d driver.Device, stages ...driver.Stage) driver.Work {
	t.Helper()
	w, err := d.Record(stages...)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func submit(t *testing.T, d driver.Device, works ...driver.Work) driver.Fence {
	t.Helper()
	f, err := d.Submit(works...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func wait(t *testing.T, d driver.Device, f driver.Fence) {
	t.Helper()
	if err := d.Wait(f, timeout); err != nil {
		t.Fatal(err)
	}
}
