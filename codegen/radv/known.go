package radv

import (
	"bufio"
	"embed"
	"encoding/base64"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// known are results for the kernels of published models, a file a family, so that
// plans of these come out the same without Mesa, or with another one. Package
// codegen/radvgen writes them. The first line is the driver; every other one is a
// key, the figures in the order of fields, and the family that stands in, if any.
//
//go:embed known/*.txt
var known embed.FS

// fields are the figures in the order of the statistics and of the files.
func (f *Figures) fields() []*int {
	return []*int{
		&f.SGPRs, &f.VGPRs, &f.Pressure, &f.SGPRSpills, &f.VGPRSpills, &f.Scratch, &f.LDS, &f.Code,
		&f.Instructions, &f.VALU, &f.SALU, &f.VMEM, &f.SMEM, &f.Latency, &f.InverseThroughput,
	}
}

// readKnown returns the results that the program knows of a family.
func readKnown(family string) (map[key]Result, error) {
	file, err := known.Open("known/" + family + ".txt")
	if err != nil {
		return nil, nil // none are known
	}
	defer file.Close()
	results, err := parseKnown(file)
	if err != nil {
		return nil, fmt.Errorf("known/%s.txt: %w", family, err)
	}
	return results, nil
}

func parseKnown(r io.Reader) (map[key]Result, error) {
	s := bufio.NewScanner(r)
	if !s.Scan() {
		return nil, fmt.Errorf("no line with the driver")
	}
	driver := s.Text()
	results := map[key]Result{}
	for n := 2; s.Scan(); n++ {
		words := strings.Fields(s.Text())
		r := Result{Known: true, Driver: driver}
		fields := r.fields()
		switch len(words) - len(fields) {
		case 1:
		case 2:
			r.StandIn = words[1+len(fields)]
		default:
			return nil, fmt.Errorf("line %d: %d words, want %d", n, len(words), 1+len(fields))
		}
		k, err := base64.RawURLEncoding.DecodeString(words[0])
		if err != nil || len(k) != len(key{}) {
			return nil, fmt.Errorf("line %d: bad key %q", n, words[0])
		}
		for i, at := range fields {
			if *at, err = strconv.Atoi(words[1+i]); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
		}
		results[key(k)] = r
	}
	return results, s.Err()
}

// Save writes what the driver was asked since the oracle was opened, for known.
func (o *Oracle) Save(w io.Writer) error {
	o.cache.mu.Lock()
	defer o.cache.mu.Unlock()
	lines := map[string]bool{}
	for k, r := range o.cache.mem {
		if r.Refused != "" {
			continue
		}
		line := base64.RawURLEncoding.EncodeToString(k[:])
		for _, at := range r.fields() {
			line += " " + strconv.Itoa(*at)
		}
		if r.StandIn != "" {
			line += " " + r.StandIn
		}
		lines[line] = true
	}
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, o.driver)
	for _, line := range slices.Sorted(maps.Keys(lines)) {
		fmt.Fprintln(b, line)
	}
	return b.Flush()
}
