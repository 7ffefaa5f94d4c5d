package fleet

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Steps are the measured times of a server's steps.
type Steps struct {
	Model string `json:"model"` // for people, as Device
	// Device is what they were measured on.
	Device string  `json:"device"`
	Slots  int     `json:"slots"`
	Ctx    int     `json:"ctx"`
	HostMS float64 `json:"host_ms"` // of a step beside the device's time: tokens are chosen and sent
	Times  []Time  `json:"times"`
}

// Time is the mean time of a step of an entry behind so many tokens.
type Time struct {
	Kind  string  `json:"kind"` // "decode" or "prefill"
	Rows  int     `json:"rows"`
	Depth int     `json:"depth"`
	MS    float64 `json:"ms"`
}

// Bounds of what a file may say.
const (
	maxFile  = 1 << 20
	maxSlots = 1 << 16
	maxCtx   = 1 << 28
	maxTimes = 1 << 12
	maxMS    = 1e6
)

// Read reads steps as JSON. The error is one line.
func Read(r io.Reader) (*Steps, error) {
	s := &Steps{}
	d := json.NewDecoder(io.LimitReader(r, maxFile))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	return s, s.check()
}

func (s *Steps) check() error {
	if s.Slots < 1 || s.Slots > maxSlots || s.Ctx < 1 || s.Ctx > maxCtx || len(s.Times) > maxTimes {
		return fmt.Errorf("%d slots of %d positions, %d times: out of range", s.Slots, s.Ctx, len(s.Times))
	}
	if !(s.HostMS >= 0 && s.HostMS <= maxMS) {
		return fmt.Errorf("host_ms is %g", s.HostMS)
	}
	kinds := map[string]int{"decode": 0, "prefill": 0}
	for i, t := range s.Times {
		if _, ok := kinds[t.Kind]; !ok || t.Rows < 1 || t.Rows > s.Ctx || t.Depth < 0 || t.Depth > s.Ctx || !(t.MS > 0 && t.MS <= maxMS) {
			return fmt.Errorf("times[%d]: %+v: want decode or prefill, rows and depth within the context, and a time", i, t)
		}
		kinds[t.Kind]++
	}
	for kind, n := range kinds {
		if n == 0 {
			return fmt.Errorf("times: there is none of %s", kind)
		}
	}
	return nil
}

// curve is what steps of so many rows take, by depth.
type curve struct {
	rows   int
	points []Time // by depth
}

// curves returns those of a kind, by rows.
func (s *Steps) curves(kind string) (list []curve) {
	for _, t := range s.Times {
		if t.Kind != kind {
			continue
		}
		i := slices.IndexFunc(list, func(c curve) bool { return c.rows == t.Rows })
		if i < 0 {
			i = len(list)
			list = append(list, curve{rows: t.Rows})
		}
		list[i].points = append(list[i].points, t)
	}
	for _, c := range list {
		slices.SortFunc(c.points, func(a, b Time) int { return a.Depth - b.Depth })
	}
	slices.SortFunc(list, func(a, b curve) int { return a.rows - b.rows })
	return list
}

// at is the time behind so many tokens in seconds: on the line through the two nearest points, never less than the
// first.
func (c curve) at(depth int) float64 {
	p := c.points
	i := 1
	for i < len(p)-1 && p[i].Depth < depth {
		i++
	}
	if i >= len(p) || p[i].Depth == p[i-1].Depth {
		return p[0].MS / 1e3
	}
	slope := (p[i].MS - p[i-1].MS) / float64(p[i].Depth-p[i-1].Depth)
	return math.Max(p[0].MS, p[i-1].MS+slope*float64(depth-p[i-1].Depth)) / 1e3
}
