package radv

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

// fields are the figures in the order of the statistics and of lines of text.
func (f *Figures) fields() []*int {
	return []*int{
		&f.SGPRs, &f.VGPRs, &f.Pressure, &f.SGPRSpills, &f.VGPRSpills, &f.Scratch, &f.LDS, &f.Code,
		&f.Instructions, &f.VALU, &f.SALU, &f.VMEM, &f.SMEM, &f.Latency, &f.InverseThroughput,
	}
}

// Known are results that were once written down, so that plans come out the same without
// Mesa, or with another one. They are of one family.
type Known map[key]Result

// Add adds a line that Line has made, with the driver that said so.
func (n Known) Add(line, driver string) error {
	words := strings.Fields(line)
	r := Result{Known: true, Driver: driver}
	fields := r.fields()
	switch len(words) - len(fields) {
	case 1:
	case 2:
		r.StandIn = words[1+len(fields)]
	default:
		return fmt.Errorf("%d words, want %d", len(words), 1+len(fields))
	}
	k, err := base64.RawURLEncoding.DecodeString(words[0])
	if err != nil || len(k) != len(key{}) {
		return fmt.Errorf("bad key %q", words[0])
	}
	for i, at := range fields {
		if *at, err = strconv.Atoi(words[1+i]); err != nil {
			return err
		}
	}
	n[key(k)] = r
	return nil
}

// Line writes a result down: the key of what was compiled, the figures in the order of
// fields, and the family that stands in, if any.
func Line(k *Kernel, r *Result) string {
	id := k.key()
	words := []string{base64.RawURLEncoding.EncodeToString(id[:])}
	for _, at := range r.fields() {
		words = append(words, strconv.Itoa(*at))
	}
	if r.StandIn != "" {
		words = append(words, r.StandIn)
	}
	return strings.Join(words, " ")
}
