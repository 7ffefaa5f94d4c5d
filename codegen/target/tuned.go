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
// also for TARGET-nomatrix.
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
	device = strings.TrimSuffix(device, WithCUDA)
	own := map[string]bool{}
	for _, r := range rows {
		own[r.Site] = own[r.Site] || r.Device == device
	}
	return slices.DeleteFunc(rows, func(r tuning.Row) bool { return own[r.Site] && r.Device != device }), err
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
