package main

import (
	"testing"

	"github.com/zincc-dev/zincc/codegen/objects"
)

// TestNothingIsMissing holds the objects in the program against the kernels of today: a change of a kernel wants `make objects`.
func TestNothingIsMissing(t *testing.T) {
	list, err := wanted(t.Context(), "../..", processors(nil))
	if err != nil {
		t.Fatal(err)
	}
	missing := 0
	for _, w := range list {
		code, err := objects.Held(w.Machine, w.key)
		if err != nil {
			t.Fatal(err)
		}
		if code == nil {
			if missing++; missing <= 5 {
				t.Errorf("kernel %q for %s is not held: `make objects` writes the objects anew", w.Kernel, w.Machine.Name)
			}
		}
	}
	if missing > 5 {
		t.Errorf("%d of %d kernels are not held", missing, len(list))
	}
}
