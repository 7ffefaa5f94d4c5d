package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestUpToDate holds that runtimes have what the kernels are now; go generate writes it.
func TestUpToDate(t *testing.T) {
	for backend, generate := range generators {
		want, err := generate()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("..", "..", "..", "runtime", backend, "zprobe.go")
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(have, want) {
			t.Errorf("%s is not up to date: go generate ./codegen/kernels", path)
		}
	}
}
