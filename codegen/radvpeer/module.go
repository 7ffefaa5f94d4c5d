package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
)

// module is a SPIR-V module of the peer's.
type module []uint32

const (
	magic       = 0x07230203
	headerWords = 5
)

// Instructions that are looked at, by their numbers in the specification.
const (
	opExtension     = 10
	opExecutionMode = 16
	opCapability    = 17
	opFunctionEnd   = 56
	lastOpcode      = 8191
)

// findModules returns the modules in a file: from the magic number on as long as there are
// instructions. Those whose digests are the same are one.
func findModules(file []byte) map[string]module {
	found := map[string]module{}
	start := binary.LittleEndian.AppendUint32(nil, magic)
	for at := 0; ; at += len(start) {
		i := bytes.Index(file[at:], start)
		if i < 0 {
			return found
		}
		at += i
		if m := readModule(file[at:]); m != nil {
			found[m.digest()] = m
		}
	}
}

// readModule reads the module at the start of data; nil if there is none.
func readModule(data []byte) module {
	word := func(i int) uint32 { return binary.LittleEndian.Uint32(data[4*i:]) }
	count, end := len(data)/4, 0
	for at := headerWords; at < count; {
		n, op := int(word(at)>>16), word(at)&0xffff
		if n == 0 || op == 0 || op > lastOpcode || n > count-at {
			break
		}
		at += n
		if op == opFunctionEnd {
			end = at
		}
	}
	var m module
	for i := range end {
		m = append(m, word(i))
	}
	return m
}

// each calls f with the place and the number of each instruction.
func (m module) each(f func(at int, op uint32)) {
	for at := headerWords; at < len(m) && m[at]>>16 > 0; at += int(m[at] >> 16) {
		f(at, m[at]&0xffff)
	}
}

// digest tells modules apart. What the peer adds to a module for the device it runs on,
// such as how to round, does not count.
func (m module) digest() string {
	var b []byte
	m.each(func(at int, op uint32) {
		if op != opCapability && op != opExtension && op != opExecutionMode {
			for _, w := range m[at : at+int(m[at]>>16)] {
				b = binary.LittleEndian.AppendUint32(b, w)
			}
		}
	})
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}
