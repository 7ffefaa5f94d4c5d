package target

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/plans/tuning"
)

// tuned are the tuning files of targets, for the shapes of published models: TARGET.jsonl,
// also for TARGET-nomatrix, and TARGET.DEVICE.jsonl of devices that the target's figures are not of.
// Those of AMD are AMD's compiler's, the others measured.
//
//go:embed tuned/*.jsonl
var tuned embed.FS

// Tuned returns this program's tuning rows for the target. For a probed device, rows
// measured on the same kind of device take precedence over rows of others of its
// architecture.
func (t *Target) Tuned() ([]tuning.Row, error) {
	device, probed := strings.CutPrefix(t.Name, ProbePrefix)
	if !probed {
		rows, err := readTuned(strings.TrimSuffix(t.Name, NoMatrix))
		if err != nil || t.Arch == "" {
			return rows, err
		}
		others, err := readTuned(t.Arch) // through another backend: better than no measurement
		return append(slices.DeleteFunc(others, func(r tuning.Row) bool {
			return slices.ContainsFunc(rows, func(own tuning.Row) bool { return own.Site == r.Site })
		}), rows...), err
	}
	var rows []tuning.Row
	base, err := Lookup(t.Arch)
	if err != nil { // no published target has the architecture
		return nil, nil
	}
	rows, err = base.Tuned()
	if err != nil {
		return nil, err
	}
	device = strings.TrimSuffix(device, WithCUDA)
	more, err := fs.Glob(tuned, "tuned/"+base.Name+".*.jsonl")
	if err != nil {
		return nil, err
	}
	for _, path := range more {
		of, err := readTuned(strings.TrimSuffix(strings.TrimPrefix(path, "tuned/"), ".jsonl"))
		if err != nil {
			return nil, err
		}
		rows = append(rows, slices.DeleteFunc(of, func(r tuning.Row) bool { return r.Device != device })...)
	}
	own := map[string]bool{}
	for _, r := range rows {
		own[r.Site] = own[r.Site] || r.Device == device
	}
	return slices.DeleteFunc(rows, func(r tuning.Row) bool { return own[r.Site] && r.Device != device }), nil
}

func readTuned(name string) ([]tuning.Row, error) {
	path := "tuned/" + name + ".jsonl"
	f, err := tuned.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := tuning.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return rows, nil
}
