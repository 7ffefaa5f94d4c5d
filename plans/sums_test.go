package plans

import (
	"context"
	"crypto/sha256"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSums(t *testing.T) {
	content := map[string][]byte{"a": make([]byte, 3*hashPiece+5), "b \"\n": []byte("x"), "empty": {}}
	names := []string{"a", "b \"\n", "empty"}
	done := int64(0)
	sums, err := HashTensors(t.Context(), names, func(name string) ([]byte, error) { return content[name], nil }, func(n int64) { done += n })
	if err != nil || done != 3*hashPiece+6 {
		t.Fatalf("%d bytes, %v", done, err)
	}
	for i, s := range sums {
		if s.Tensor != names[i] || s.SHA256 != sha256.Sum256(content[names[i]]) {
			t.Errorf("%q: %x", s.Tensor, s.SHA256)
		}
	}
	path := filepath.Join(t.TempDir(), "sums")
	if err := WriteSums(path, sums); err != nil {
		t.Fatal(err)
	}
	read, err := ReadSums(path)
	if err != nil || !slices.Equal(read, sums) {
		t.Errorf("%v, %v", read, err)
	}
	if d := DifferentSums(read, sums); len(d) != 0 {
		t.Errorf("%q differ", d)
	}
	sums[0].SHA256[31]++
	if d := DifferentSums(read[:2], slices.Delete(slices.Clone(sums), 1, 2)); !slices.Equal(d, []string{"a", "empty", "b \"\n"}) {
		t.Errorf("%q differ", d)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := HashTensors(ctx, names, func(name string) ([]byte, error) { return content[name], nil }, func(int64) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("after an interrupt: %v", err)
	}
}

func FuzzDecodeSums(f *testing.F) {
	line := strings.Repeat("0f", 32) + "  \"a\"\n"
	for _, seed := range []string{line, line + line, "", strings.Repeat("0f", 31) + "  \"a\"", line[:64] + " a", line[:66] + "a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sums, err := decodeSums(strings.NewReader(text))
		if (err == nil) != (len(sums) > 0) || len(DifferentSums(sums, sums)) > 0 {
			t.Errorf("%d sums, %v", len(sums), err)
		}
	})
}
