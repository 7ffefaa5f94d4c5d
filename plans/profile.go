package plans

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Profile is a measured step of an entry, as `zincrun profile --json` writes it.
type Profile struct {
	Device string        `json:"device"`
	Entry  string        `json:"entry"`
	Rows   int           `json:"rows"`
	Depth  int           `json:"depth"` // positions in the KV cache before the step
	Sites  []ProfileSite `json:"sites"` // slowest first
}

// ProfileSite is the measured time of the dispatches of one call site, over all layers that use the same kernel
// there, in microseconds. It includes the barrier of each dispatch.
type ProfileSite struct {
	Site       string  `json:"site"` // as FoldSite writes it
	Kernel     string  `json:"kernel"`
	Dispatches int     `json:"dispatches"`
	Time       float64 `json:"us"`
	Predicted  float64 `json:"predicted_us"`
	Bytes      int64   `json:"bytes"` // that must be read and written
	FLOPs      int64   `json:"flops"`
}

// MaxProfile bounds the file of a profile: a call site takes about 200 bytes.
const MaxProfile = 4 << 20

// ReadProfile reads a Profile and checks its figures.
func ReadProfile(r io.Reader) (*Profile, error) {
	data, err := io.ReadAll(io.LimitReader(r, MaxProfile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > MaxProfile {
		return nil, fmt.Errorf("not a profile: more than %d bytes", MaxProfile)
	}
	p := &Profile{}
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("not what `zincrun profile --json` prints: %w", err)
	}
	if p.Entry == "" || len(p.Sites) == 0 || p.Depth < 0 {
		return nil, errors.New("not what `zincrun profile --json` prints: entry or sites are missing")
	}
	for _, s := range p.Sites {
		if s.Dispatches < 1 || !(s.Time >= 0 && s.Time < 1e12) {
			return nil, fmt.Errorf("profile: site %.80q: %d dispatches in %g us", s.Site, s.Dispatches, s.Time)
		}
	}
	return p, nil
}

// Times returns the measured time of each dispatch of the profile's entry in microseconds, 0
// for dispatches whose kernel was not measured; found is how many were. It returns nil if p has no such entry.
func (m *Profile) Times(p *Plan) (times []float64, found int) {
	each := map[[2]string]float64{}
	for _, s := range m.Sites {
		each[[2]string{s.Site, s.Kernel}] = s.Time / float64(s.Dispatches)
	}
	e := p.entry(m.Entry)
	for i := range e.Dispatches {
		d := &e.Dispatches[i]
		us := 0.0
		if d.Pipeline >= 0 { // the host has none
			t, ok := each[[2]string{FoldSite(d.Site), p.Modules[p.Pipelines[d.Pipeline].Module].Name}]
			if us = t; ok {
				found++
			}
		}
		times = append(times, us)
	}
	return times, found
}
