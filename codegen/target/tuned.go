package target

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/plans/tuning"
)

// Tuned returns this program's tuning rows for the target, those of TARGET.jsonl, also for TARGET-nomatrix. Rows of AMD
// are AMD's compiler's, the others measured. For a probed device, rows measured on the same kind of device
// (TARGET.DEVICE.jsonl) take precedence over rows of others of its architecture.
func Tuned(t *Target) ([]tuning.Row, error) {
	device, probed := strings.CutPrefix(t.Name, ProbePrefix)
	if !probed {
		rows, err := readTuned(t, strings.TrimSuffix(t.Name, NoMatrix))
		if err != nil || t.Arch == "" {
			return rows, err
		}
		others, err := readTuned(t, t.Arch) // through another backend: better than no measurement
		return append(slices.DeleteFunc(others, func(r tuning.Row) bool {
			return slices.ContainsFunc(rows, func(own tuning.Row) bool { return own.Site == r.Site })
		}), rows...), err
	}
	var rows []tuning.Row
	base, err := Lookup(t.Arch)
	if err != nil { // no published target has the architecture
		return nil, nil
	}
	rows, err = Tuned(base)
	if err != nil {
		return nil, err
	}
	device = strings.TrimSuffix(device, WithCUDA)
	for _, name := range othersTuned(base) {
		of, err := readTuned(base, name)
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

// othersTuned names the tuning files of a target that are of other devices than its figures.
func othersTuned(t *Target) (names []string) {
	if t.Tuned == nil {
		return nil
	}
	paths, _ := fs.Glob(t.Tuned, t.Name+".*.jsonl") // the pattern is good
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(path, ".jsonl"))
	}
	return names
}

func readTuned(t *Target, name string) ([]tuning.Row, error) {
	if t.Tuned == nil {
		return nil, nil
	}
	path := name + ".jsonl"
	f, err := t.Tuned.Open(path)
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
