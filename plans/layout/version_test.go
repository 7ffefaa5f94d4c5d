package layout

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"testing"
)

// TestVersion checks that every layout has the bytes that it had when Version was last raised. What differs needs a new
// version, as programs map weights that others laid out; new types and layouts need only a new sum.
func TestVersion(t *testing.T) {
	const version, want = 2, "f0520e523d7e2a67ed683867fed30aeb984bd8060eb50986afd67b4357fef3de"
	sum := sha256.New()
	for _, r := range recipes {
		const rows = 3
		cols := int64(2 * max(32, r.DType.Block()))
		src := make([]byte, r.DType.Bytes(rows*cols))
		for i := range src {
			src[i] = byte(i*i>>3 ^ i*29)
		}
		names := []string{r.Name}
		if _, ok := images[r.DType]; ok {
			names = append(names, Rows16)
		}
		for _, name := range names {
			l, err := Named(name, r.DType, rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(sum, "%s %s %x\n", r.DType, name, laidOut(t, l, src))
		}
	}
	if got := hex.EncodeToString(sum.Sum(nil)); Version != version || got != want {
		t.Errorf("version %d has sum %s, want version %d and %s", Version, got, version, want)
	}
}
