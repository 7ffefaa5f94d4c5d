package pull

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/zincc-dev/zincc/runtime/library"
)

func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 0-0/1", "bytes 5-9/10", "bytes */10", "bytes 9-5/10", "bytes 0-10/10", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if first, last, size, err := contentRange(s); err == nil && (first < 0 || first > last || last >= size) {
			t.Errorf("%q: %d-%d/%d", s, first, last, size)
		}
	})
}

// FuzzState holds that whatever lies beside a file, no more is believed to be there than it has.
func FuzzState(f *testing.F) {
	it := item{size: 100, sum: sum{"sha256", "x"}}
	f.Add(`{"size":100,"sum":{"Kind":"sha256","Hex":"x"},"chunk":40,"done":[40,0,20]}`)
	f.Add(`{"size":100,"sum":{"Kind":"sha256","Hex":"x"},"chunk":40,"done":[40,0,21]}`)
	f.Add(`{"size":100,"sum":{"Kind":"sha256","Hex":"x"},"chunk":40,"done":[-1,0,0]}`)
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(t.TempDir(), "m.gguf")
		for p, b := range map[string][]byte{library.StatePath(path): []byte(text), library.PartPath(path): make([]byte, it.size)} {
			if err := os.WriteFile(p, b, 0o666); err != nil {
				t.Fatal(err)
			}
		}
		s := loadState(path, it, 40)
		if s == nil {
			return
		}
		for i := range s.Done {
			from, to := s.piece(i)
			if n := s.have(i); n < 0 || from+n > to || to > it.size {
				t.Errorf("piece %d has %d of %d-%d", i, n, from, to)
			}
		}
	})
}
