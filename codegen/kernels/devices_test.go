package kernels

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFamiliesNameNoDevice holds that families ask for facts of a target and for no maker or architecture: which
// devices a fact is of stands in target/facts.go.
func TestFamiliesNameNoDevice(t *testing.T) {
	named := regexp.MustCompile(`\.(CUDA|AMD|Vendor|Arch)\b`)
	files := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "kerneltest" { // which says what the devices at hand run
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files++
		text, err := os.ReadFile(path)
		for i, line := range strings.Split(string(text), "\n") {
			if named.MatchString(line) {
				t.Errorf("%s:%d names a device: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 100 {
		t.Errorf("only %d files found", files)
	}
}
