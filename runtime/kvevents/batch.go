package kvevents

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/vmihailenco/msgpack/v5"
)

// medium is where blocks lie, in vLLM's words: the memory that steps run on, whatever the device is.
const medium = "GPU"

// event is one of BlockStored, BlockRemoved and AllBlocksCleared.
type event struct {
	name   string
	hashes []uint64
	parent uint64 // of the first block; 0: it is the first of a prompt
	tokens []int32
	block  int // tokens of a block
}

// encode makes the bytes of an EventBatch, as vLLM's publisher does: arrays in the order of the fields.
func encode(at time.Time, events []event) ([]byte, error) {
	var buf bytes.Buffer
	enc := msgpack.NewEncoder(&buf)
	enc.UseCompactInts(true)
	enc.UseCompactFloats(false)
	fields := []any{float64(at.UnixMicro()) / 1e6, nil, 0}
	list := make([]any, len(events))
	for i, e := range events {
		switch e.name {
		case "BlockStored":
			var parent any
			if e.parent != 0 {
				parent = e.parent
			}
			// lora_id, medium, lora_name
			list[i] = []any{e.name, e.hashes, parent, e.tokens, e.block, nil, medium, nil}
		case "BlockRemoved":
			list[i] = []any{e.name, e.hashes, medium}
		default:
			list[i] = []any{e.name}
		}
	}
	fields[1] = list
	err := enc.Encode(fields)
	return buf.Bytes(), err
}

// hashes are those of the blocks of a piece behind a block: the first 8 bytes of SHA-256 over the hash before and the
// tokens. The same beginning of a prompt has the same hashes on every server of a model. 0 stays free: it says that
// there is no block before.
func hashes(before uint64, tokens []int32, block int) []uint64 {
	var list []uint64
	buf := make([]byte, 8+4*block)
	for len(tokens) >= block {
		binary.BigEndian.PutUint64(buf, before)
		for i, t := range tokens[:block] {
			binary.BigEndian.PutUint32(buf[8+4*i:], uint32(t))
		}
		before = sum(buf)
		list = append(list, before)
		tokens = tokens[block:]
	}
	return list
}

// sum is never 0.
func sum(b []byte) uint64 {
	h := sha256.Sum256(b)
	return max(1, binary.BigEndian.Uint64(h[:]))
}
