package radv

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/zincc-dev/zincc/internal/private"
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

// cache keeps results in memory and in the user's cache folder, a file each. It only saves time: what cannot be read or
// written is compiled again.
type cache struct {
	kept *private.Cache // nil: memory only
	mu   *sync.Mutex
	mem  map[key]Result
}

func newCache(family, driver string) cache {
	c := cache{mu: &sync.Mutex{}, mem: map[key]Result{}}
	version := strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' {
			return '-'
		}
		return r
	}, driver)
	if kept, err := private.Open("radv/" + version + "/" + family); err == nil {
		c.kept = kept
	}
	return c
}

// file is the name of a result's file.
func (k key) file() string { return hex.EncodeToString(k[:]) + ".json" }

func (c *cache) get(k key) (Result, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r, ok := c.mem[k]; ok {
		return r, true
	}
	if c.kept == nil {
		return Result{}, false
	}
	r, ok := decodeResult(c.kept.Read(k.file()))
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

// put keeps a result, in memory alone unless disk is set.
func (c *cache) put(k key, r Result, disk bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mem[k] = r
	if !disk || c.kept == nil {
		return
	}
	if data, err := json.Marshal(r); err == nil {
		_ = c.kept.Write(k.file(), data) // it only saves time
	}
}
