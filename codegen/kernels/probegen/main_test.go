package main

import (
	"bytes"
	"os"
	"testing"
)

// TestUpToDate: what the runtime embeds is what the kernels are now.
func TestUpToDate(t *testing.T) {
	want, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	have, err := os.ReadFile("../../../runtime/vulkan/zprobe.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(have, want) {
		t.Error("runtime/vulkan/zprobe.go is stale; run go generate ./codegen/kernels")
	}
}
