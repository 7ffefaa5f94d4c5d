package pull

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"os"
	"sync"

	"github.com/zincc-dev/zincc/internal/outfile"
	"github.com/zincc-dev/zincc/runtime/library"
)

// sum is a checksum of a file: "sha256", or "git", the SHA-1 of a blob with its header. The zero value is none.
type sum struct{ Kind, Hex string }

func (s sum) of(size int64) hash.Hash {
	if s.Kind == "git" {
		h := sha1.New()
		fmt.Fprintf(h, "blob %d\x00", size)
		return h
	}
	return sha256.New()
}

// state is what is known of a file that is not complete: what it is to be, and how much of each piece is there. It lies
// beside the file. After a crash of the system it may say more than what is on disk: then the sum of the file is wrong.
type state struct {
	Size  int64   `json:"size"`
	Sum   sum     `json:"sum"`
	ETag  string  `json:"etag"`
	Chunk int64   `json:"chunk"`
	Done  []int64 `json:"done"` // bytes from the start of each piece

	mu sync.Mutex
}

func newState(it item, chunk int64) *state {
	return &state{Size: it.size, Sum: it.sum, ETag: it.etag, Chunk: chunk, Done: make([]int64, (it.size+chunk-1)/chunk)}
}

// loadState returns the state of the file at path if that is the one to fetch and can go on.
func loadState(path string, it item, chunk int64) *state {
	f, err := os.Open(library.StatePath(path))
	if err != nil {
		return nil
	}
	defer f.Close()
	var s state
	if json.NewDecoder(io.LimitReader(f, 8<<20)).Decode(&s) != nil {
		return nil
	}
	info, err := os.Stat(library.PartPath(path))
	want := newState(it, chunk)
	same := s.Size == want.Size && s.Sum == want.Sum && s.ETag == want.ETag && s.Chunk == want.Chunk && len(s.Done) == len(want.Done)
	if err != nil || !same || info.Size() != s.Size || it.sum == (sum{}) && it.etag == "" {
		return nil
	}
	for i, n := range s.Done {
		if from, to := s.piece(i); n < 0 || n > to-from {
			return nil
		}
	}
	return &s
}

// piece is where piece i begins and ends.
func (s *state) piece(i int) (from, to int64) {
	from = int64(i) * s.Chunk
	return from, min(from+s.Chunk, s.Size)
}

// have is how much of piece i is there.
func (s *state) have(i int) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.Done[i]
}

func (s *state) add(i int, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Done[i] += n
}

// there is how much of the file is there.
func (s *state) there() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.Done {
		n += d
	}
	return n
}

func (s *state) save(path string) error {
	return outfile.Write(library.StatePath(path), func(w io.Writer) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		return json.NewEncoder(w).Encode(s)
	})
}

// check reads the file and compares its sum; arrived gets what was read.
func (s sum) check(path string, size int64, arrived func(int)) (hexSHA256 string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := s.of(size)
	also := sha256.New() // of a file with another sum, or none
	to := io.Writer(h)
	if s.Kind != "sha256" {
		to = io.MultiWriter(h, also)
	} else {
		also = h
	}
	buf := make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		to.Write(buf[:n])
		arrived(n)
		if err == io.EOF {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if got := hex.EncodeToString(h.Sum(nil)); s.Kind != "" && got != s.Hex {
		return "", fmt.Errorf("its %s is %s, and %s was meant", map[string]string{"sha256": "SHA-256", "git": "SHA-1 in git"}[s.Kind], got, s.Hex)
	}
	return hex.EncodeToString(also.Sum(nil)), nil
}
