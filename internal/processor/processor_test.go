package processor_test

import (
	"slices"
	"testing"

	"github.com/zincc-dev/zincc/internal/processor"
)

func TestMissing(t *testing.T) {
	if got := processor.Missing([]string{"no such feature"}); !slices.Equal(got, []string{"no such feature"}) {
		t.Errorf("missing: %q", got)
	}
	foreign := map[string]string{"amd64": "dotprod", "arm64": "avx2"}[processor.Arch]
	if got := processor.Missing([]string{foreign}); len(got) != 1 {
		t.Errorf("%s has %s", processor.Arch, foreign)
	}
	for _, name := range processor.Known() {
		if m := processor.Missing([]string{name}); len(m) > 1 {
			t.Errorf("missing of %s: %q", name, m)
		}
	}
}
