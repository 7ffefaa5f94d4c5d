package gguf

import (
	"encoding/binary"
	"fmt"
)

var le = binary.LittleEndian

// reader walks over the header and keeps the first error; after an error every
// method returns zero.
type reader struct {
	data []byte
	pos  int
	cut  bool // data stops at maxHeader, not at the end of the file
	err  error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) bytes(n uint64) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.data)-r.pos) {
		if r.cut {
			r.fail("header is longer than %d MiB", maxHeader>>20)
		} else {
			r.fail("file ends inside the header: %d bytes wanted at %d, file has %d", n, r.pos, len(r.data))
		}
		return nil
	}
	b := r.data[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) u8() uint8 {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.bytes(2); b != nil {
		return le.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.bytes(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.bytes(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

// count reads a 64-bit count of things that take at least size bytes each and
// refuses one that the rest of the header cannot hold.
func (r *reader) count(what string, size uint64) uint64 {
	n := r.u64()
	if left := uint64(len(r.data) - r.pos); r.err == nil && n > left/size {
		r.fail("%d %s cannot fit in the %d bytes left", n, what, left)
		return 0
	}
	return n
}
