package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/mapped"
)

// Digest identifies the file of a plan by all of its bytes. It is the SHA-256 of the file, as sha256sum prints it; of a
// plan with embedded weights it is the SHA-256 of what stands before them and of the sums of their pieces of 8 MiB,
// which are hashed on all processors.
type Digest [sha256.Size]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes hexadecimal digits.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads them.
func (d *Digest) UnmarshalText(text []byte) error {
	n, err := hex.Decode(d[:], text[:min(len(text), 2*len(d))])
	if err != nil || n != len(d) || len(text) != 2*len(d) {
		return fmt.Errorf("%.80q is no SHA-256", text)
	}
	return nil
}

// Digest returns the digest of the bytes that p was decoded from; false for a plan that was not.
func (p *Plan) Digest() (d Digest, ok bool) {
	if p.digest == nil {
		return d, false
	}
	return *p.digest, true
}

// digestOf hashes a file: what stands before the embedded weights, and these, which may be mapped.
func digestOf(front, embedded []byte) (Digest, error) {
	h := sha256.New()
	h.Write(front)
	sums := make([]Digest, (len(embedded)+hashPiece-1)/hashPiece)
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range sums {
		group.Go(func() error {
			return mapped.Read(func() error {
				sums[i] = sha256.Sum256(embedded[i*hashPiece : min(len(embedded), (i+1)*hashPiece)])
				return nil
			})
		})
	}
	err := group.Wait()
	for _, s := range sums {
		h.Write(s[:])
	}
	return Digest(h.Sum(nil)), err
}
