package radv

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// key identifies all that the compiler's result depends on but family and driver.
type key [16]byte

func (k *Kernel) key() key {
	h := sha256.New()
	put := func(v ...uint32) {
		for _, x := range v {
			_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, x))
		}
	}
	full := uint32(0)
	if k.Full {
		full = 1
	}
	put(uint32(k.Wave), full, uint32(len(k.Consts)))
	for _, id := range slices.Sorted(maps.Keys(k.Consts)) {
		put(id, k.Consts[id])
	}
	words := make([]byte, 0, 4*len(k.Words))
	for _, w := range k.Words {
		words = binary.LittleEndian.AppendUint32(words, w)
	}
	_, _ = h.Write(words)
	return key(h.Sum(nil))
}

// cache keeps results in memory and in the user's cache folder, a file each. It
// only saves time: what cannot be read or written is compiled again.
type cache struct {
	dir string // empty: memory only
	mu  *sync.Mutex
	mem map[key]Result
}

func newCache(family, driver string) cache {
	c := cache{mu: &sync.Mutex{}, mem: map[key]Result{}}
	if dir, err := os.UserCacheDir(); err == nil {
		version := strings.Map(func(r rune) rune {
			if r == '/' || r == ' ' {
				return '-'
			}
			return r
		}, driver)
		c.dir = filepath.Join(dir, "zincc", "radv", version, family)
	}
	return c
}

func (c *cache) path(k key) string { return filepath.Join(c.dir, hex.EncodeToString(k[:])+".json") }

func (c *cache) get(k key) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.mem[k]; ok {
		return r, true
	}
	if c.dir == "" {
		return Result{}, false
	}
	data, err := os.ReadFile(c.path(k))
	if err != nil {
		return Result{}, false
	}
	r, ok := decodeResult(data)
	if ok {
		c.mem[k] = r
	}
	return r, ok
}

// maxFigure is above what the compiler says of any kernel.
const maxFigure = 1 << 40

// decodeResult reads what put has written; false if it is anything else.
func decodeResult(data []byte) (Result, bool) {
	var r Result
	if json.Unmarshal(data, &r) != nil || !r.Known {
		return Result{}, false
	}
	for _, figure := range r.fields() {
		if *figure < 0 || *figure > maxFigure {
			return Result{}, false
		}
	}
	return r, true
}

// put writes under another name first: another process may be reading the file.
func (c *cache) put(k key, r Result, disk bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mem[k] = r
	data, err := json.Marshal(r)
	if !disk || c.dir == "" || err != nil || os.MkdirAll(c.dir, 0o755) != nil {
		return
	}
	tmp, err := os.CreateTemp(c.dir, "*.tmp")
	if err != nil {
		return
	}
	defer os.Remove(tmp.Name()) // gone already when all went well
	_, err = tmp.Write(data)
	if tmp.Close() == nil && err == nil {
		_ = os.Rename(tmp.Name(), c.path(k))
	}
}
