package main

import (
	"strings"
	"testing"
)

// TestDigests compares the plans of the smallest models, of -short those of one for some targets; make digests compares all.
func TestDigests(t *testing.T) {
	models, only := []string{"gopher-moe", "llama-1b"}, []string(nil)
	if testing.Short() {
		models, only = models[:1], []string{"host", "llvmpipe", "sm_90", "sm_90-cuda", "gfx1201", "xe2"}
	}
	if err := run("../../..", false, only, models); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	want := []string{"aa  gopher sm_90", "bb  gopher xe2"}
	if err := compare(want, want, true); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		have  []string
		whole bool
		says  string
	}{
		{[]string{"aa  gopher sm_90"}, true, "gopher xe2 is listed only"},
		{[]string{"ab  gopher sm_90"}, false, "gopher sm_90 differs"},
		{[]string{"aa  gopher gfx1201"}, false, "gopher gfx1201 is not listed"},
	} {
		if err := compare(want, c.have, c.whole); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v: %v, want %q", c.have, err, c.says)
		}
	}
	if err := compare(want, want[:1], false); err != nil {
		t.Error(err)
	}
}

func TestModelsAndTargetsByName(t *testing.T) {
	if _, err := compute("../../..", t.TempDir(), []string{"sm_90"}, []string{"nobody"}); err == nil {
		t.Error("a model that is not there gives an empty list")
	}
}
