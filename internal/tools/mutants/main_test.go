package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// TestMutantsFit holds that every mutant fits the source, and is in docs/testing.md; `make mutants` tries them.
func TestMutantsFit(t *testing.T) {
	doc, err := os.ReadFile("../../../docs/testing.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		if line := fmt.Sprintf("| %s | %s (%s) |\n", m.what, m.test, m.pkg); !strings.Contains(string(doc), line) {
			t.Errorf("docs/testing.md lacks the row %s", line)
		}
		source, err := os.ReadFile("../../../" + m.file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.apply(string(source)); err != nil {
			t.Errorf("%s: %v", m, err)
		}
	}
}

// TestTry tries a mutant that a test notices, and changes that none can.
func TestTry(t *testing.T) {
	m := mutant{"a test", "internal/version/version.go", `Release = "`, `Release = "0`, "internal/tools/mutants", "TestNothing"}
	if v, err := m.try(t.Context(), "../../..", t.TempDir()); err != nil || v == killed {
		t.Errorf("%s: %q, %v", m, v, err)
	}
	if err := run(t.Context(), io.Discard, "../../..", "no such mutant"); err != nil {
		t.Error(err)
	}
	m.old = "nowhere"
	if _, err := m.try(t.Context(), "../../..", t.TempDir()); err == nil {
		t.Error("a change that does not fit was tried")
	}
}

// TestNothing passes whatever the source is.
func TestNothing(*testing.T) {}
