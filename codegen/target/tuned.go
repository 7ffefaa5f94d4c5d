package target

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/zincc-dev/zincc/plans/tuning"
)

// tuned are the tuning files of targets, for the shapes of published models: TARGET.jsonl,
// also for TARGET-nomatrix.
// Those of AMD are AMD's compiler's, the others measured.
//
//go:embed tuned/*.jsonl
var tuned embed.FS

// Tuned returns what this program knows of the target's candidates. For a device that was
// probed, that is what was measured on such a device.
func (t *Target) Tuned() ([]tuning.Row, error) {
	device, probed := strings.CutPrefix(t.Name, ProbePrefix)
	if !probed {
		return readTuned(strings.TrimSuffix(t.Name, NoMatrix))
	}
	var rows []tuning.Row
	for _, other := range targets {
		all, err := readTuned(other.Name)
		if err != nil {
			return nil, err
		}
		for _, r := range all {
			if r.Device == device || t.AMD != nil && r.Device == t.AMD.Family {
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
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
