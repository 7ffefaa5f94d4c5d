package plans

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/internal/outfile"
)

// Sum is the SHA-256 of a tensor's data in the GGUF.
type Sum struct {
	Tensor string
	SHA256 [sha256.Size]byte
}

// hashPiece is how many bytes are hashed before a look at the context.
const hashPiece = 8 << 20

// HashTensors hashes the data of tensors, which may be mapped, several at a time. progress is told how many bytes
// are done, from one goroutine at a time.
func HashTensors(ctx context.Context, names []string, data func(name string) ([]byte, error), progress func(n int64)) ([]Sum, error) {
	sums := make([]Sum, len(names))
	done := make(chan int64)
	reported := make(chan struct{})
	go func() {
		defer close(reported)
		for n := range done {
			progress(n)
		}
	}()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		group.Go(func() error {
			return mapped.Read(func() error {
				left, err := data(name)
				if err != nil {
					return err
				}
				h := sha256.New()
				for len(left) > 0 {
					if err := ctx.Err(); err != nil {
						return err
					}
					n := min(len(left), hashPiece)
					h.Write(left[:n])
					left = left[n:]
					done <- int64(n)
				}
				sums[i] = Sum{Tensor: name, SHA256: [sha256.Size]byte(h.Sum(nil))}
				return nil
			})
		})
	}
	err := group.Wait()
	close(done)
	<-reported
	return sums, err
}

// WriteSums writes a line a tensor: the sum in hexadecimal digits, two spaces, the name as
// a Go string.
func WriteSums(path string, sums []Sum) error {
	return outfile.Write(path, func(w io.Writer) error {
		for _, s := range sums {
			if _, err := fmt.Fprintf(w, "%x  %s\n", s.SHA256, strconv.Quote(s.Tensor)); err != nil {
				return err
			}
		}
		return nil
	})
}

// ReadSums reads what WriteSums has written. Errors name path and line.
func ReadSums(path string) ([]Sum, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sums, err := decodeSums(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return sums, nil
}

func decodeSums(r io.Reader) ([]Sum, error) {
	var sums []Sum
	seen := map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		digits, err := hex.DecodeString(sum)
		if !ok || err != nil || len(digits) != sha256.Size {
			return nil, fmt.Errorf("line %d: want a SHA-256, two spaces and a name", n)
		}
		if name, err = strconv.Unquote(name); err != nil || seen[name] {
			return nil, fmt.Errorf("line %d: the name is not quoted, or comes twice", n)
		}
		seen[name] = true
		sums = append(sums, Sum{Tensor: name, SHA256: [sha256.Size]byte(digits)})
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if len(sums) == 0 {
		return nil, errors.New("no sums")
	}
	return sums, nil
}

// DifferentSums returns the tensors of now whose sums differ from the recorded ones, and the tensors
// that are in one list only.
func DifferentSums(recorded, now []Sum) []string {
	left := map[string][sha256.Size]byte{}
	for _, s := range recorded {
		left[s.Tensor] = s.SHA256
	}
	var names []string
	for _, s := range now {
		if was, ok := left[s.Tensor]; !ok || was != s.SHA256 {
			names = append(names, s.Tensor)
		}
		delete(left, s.Tensor)
	}
	for _, s := range recorded {
		if _, ok := left[s.Tensor]; ok {
			names = append(names, s.Tensor)
		}
	}
	return names
}
