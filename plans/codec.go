package plans

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"

	"github.com/zincc-dev/zincc/ir"
)

// The file, little endian:
//
//	magic "zinccpln", u32 format version, u32 schema, u32 sections, u32 checksum
//	for each section: u32 id, u32 checksum, u64 offset, u64 length
//	the sections in order, each at a multiple of 64, zeros between them
//
// Checksums are CRC-32C; that of the head covers all before the first section but
// itself. The schema is a checksum of the names and types of the encoded structs,
// so that a plan of an unreleased format is never misread.

const (
	magic = "zinccpln"
	// Format is the version of the encoding and of its meaning.
	Format = 1

	headSize     = 24
	tocEntrySize = 24
	sectionAlign = 64
	// maxSection and maxSections bound one section and all but the embedded
	// weights, and with them the memory that a hostile file can claim.
	maxSection  = 32 << 20
	maxSections = 64 << 20
)

// section is one row of the table of sections.
type section struct {
	name   string
	encode func(p *Plan) []byte
	decode func(p *Plan, data []byte) error
	large  bool // not decoded but used in place
}

// sections is in file order; a section's id is its index plus one.
var sections = []section{
	fields("header", func(p *Plan) any { return &p.Header }),
	fields("requirements", func(p *Plan) any { return &p.Require }),
	fields("modules", func(p *Plan) any { return &p.Modules }),
	fields("pipelines", func(p *Plan) any { return &p.Pipelines }),
	fields("memory", func(p *Plan) any { return &p.Memory }),
	fields("weights", func(p *Plan) any { return &p.Weights }),
	fields("entries", func(p *Plan) any { return &p.Entries }),
	{
		name:   "program",
		encode: func(p *Plan) []byte { return []byte(ir.Print(p.Program)) },
		decode: func(p *Plan, data []byte) (err error) {
			p.Program, err = ir.Parse(string(data))
			return err
		},
	},
	fields("vocab", func(p *Plan) any { return &p.Vocab }),
	{
		name:   "embedded",
		encode: func(p *Plan) []byte { return p.Embedded },
		decode: func(p *Plan, data []byte) error {
			if len(data) > 0 {
				p.Embedded = data
			}
			return nil
		},
		large: true,
	},
}

// fields makes the section of the struct or slice that of points to.
func fields(name string, of func(p *Plan) any) section {
	return section{
		name:   name,
		encode: func(p *Plan) []byte { return appendValue(nil, reflect.ValueOf(of(p)).Elem()) },
		decode: func(p *Plan, data []byte) error {
			return decodeSection(string(data), reflect.ValueOf(of(p)).Elem())
		},
	}
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

var schemaSum = checksum([]byte(schema(reflect.TypeFor[struct {
	Header    Header
	Require   Requirements
	Modules   []Module
	Pipelines []Pipeline
	Memory    Memory
	Weights   []Weight
	Entries   []Entry
	Vocab     Vocab
}]())))

// align rounds n up to a multiple of sectionAlign.
func align(n int) int { return (n + sectionAlign - 1) / sectionAlign * sectionAlign }

// Write encodes p after validating it. The same plan gives the same bytes.
func Write(w io.Writer, p *Plan) error {
	if err := validate(p); err != nil {
		return fmt.Errorf("plan: %w", err)
	}
	parts := make([][]byte, len(sections))
	for i, s := range sections {
		parts[i] = s.encode(p)
	}
	return writeSections(w, parts)
}

func writeSections(w io.Writer, parts [][]byte) error {
	head := make([]byte, headSize, headSize+len(sections)*tocEntrySize)
	copy(head, magic)
	le.PutUint32(head[8:], Format)
	le.PutUint32(head[12:], schemaSum)
	le.PutUint32(head[16:], uint32(len(sections)))
	at, total := align(cap(head)), 0
	for i, s := range sections {
		n := len(parts[i])
		if !s.large {
			total += n
			if n > maxSection || total > maxSections {
				return fmt.Errorf("plan: section %s has %d bytes, the limit is %d, and %d for all", s.name, n, maxSection, maxSections)
			}
		}
		head = le.AppendUint32(head, uint32(i+1))
		head = le.AppendUint32(head, checksum(parts[i]))
		head = le.AppendUint64(head, uint64(at))
		head = le.AppendUint64(head, uint64(n))
		at = align(at + n)
	}
	le.PutUint32(head[20:], headSum(head))
	var zeros [sectionAlign]byte
	for _, b := range append([][]byte{head}, parts...) {
		for _, part := range [][]byte{b, zeros[:align(len(b))-len(b)]} {
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
	}
	return nil
}

// headSum is the checksum of head and table of contents.
func headSum(head []byte) uint32 {
	return crc32.Update(checksum(head[:20]), castagnoli, head[headSize:])
}

// Decode reads a plan from the bytes of a file; Plan.Embedded is a part of data.
// Errors are one line that names the section and, where there is one, the field.
func Decode(data []byte) (*Plan, error) {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return nil, fmt.Errorf("not a zincc plan (begins with %.8q)", data[:min(8, len(data))])
	}
	tocEnd := headSize + len(sections)*tocEntrySize
	if len(data) < headSize {
		return nil, fmt.Errorf("head: file ends after %d bytes", len(data))
	}
	switch v := le.Uint32(data[8:]); {
	case v > Format:
		return nil, fmt.Errorf("head: plan format %d is newer than this program's %d; use a newer program", v, Format)
	case v < Format:
		return nil, fmt.Errorf("head: plan format %d is older than this program's %d; compile the model again", v, Format)
	case le.Uint32(data[12:]) != schemaSum:
		return nil, fmt.Errorf("head: plan format %d of another development version; compile the model again", v)
	case le.Uint32(data[16:]) != uint32(len(sections)):
		return nil, fmt.Errorf("head: %d sections, want %d", le.Uint32(data[16:]), len(sections))
	case len(data) < tocEnd:
		return nil, fmt.Errorf("head: file ends after %d bytes", len(data))
	case le.Uint32(data[20:]) != headSum(data[:tocEnd]):
		return nil, fmt.Errorf("head: checksum does not match; the file is damaged")
	}
	parts, err := split(data, tocEnd)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	for i, s := range sections {
		if err := s.decode(p, parts[i]); err != nil {
			return nil, fmt.Errorf("section %s: %w", s.name, err)
		}
	}
	if err := validate(p); err != nil {
		return nil, err
	}
	if bad := checkBounds(p); len(bad) > 0 {
		return nil, fmt.Errorf("entries: %s", bad[0])
	}
	return p, nil
}

// split returns the bytes of each section once the table of contents, the
// checksums and the padding are known to be right.
func split(data []byte, tocEnd int) ([][]byte, error) {
	parts := make([][]byte, len(sections))
	end, total := tocEnd, 0
	for i, s := range sections {
		entry := data[headSize+i*tocEntrySize:]
		at, n := align(end), le.Uint64(entry[16:])
		if le.Uint32(entry) != uint32(i+1) || le.Uint64(entry[8:]) != uint64(at) {
			return nil, fmt.Errorf("section %s: id %d at %d, want %d at %d", s.name, le.Uint32(entry), le.Uint64(entry[8:]), i+1, at)
		}
		if at > len(data) || n > uint64(len(data)-at) {
			return nil, fmt.Errorf("section %s: file ends early: %d bytes at %d, file has %d", s.name, n, at, len(data))
		}
		part := data[at : at+int(n) : at+int(n)]
		if !s.large {
			total += len(part)
			if len(part) > maxSection || total > maxSections {
				return nil, fmt.Errorf("section %s: %d bytes, the limit is %d, and %d for all", s.name, n, maxSection, maxSections)
			}
		}
		if checksum(part) != le.Uint32(entry[4:]) {
			return nil, fmt.Errorf("section %s: checksum does not match; the file is damaged", s.name)
		}
		if len(bytes.Trim(data[end:at], "\x00")) > 0 {
			return nil, fmt.Errorf("section %s: bytes before it are not zero; the file is damaged", s.name)
		}
		parts[i] = part
		end = at + len(part)
	}
	if len(data) != align(end) || len(bytes.Trim(data[end:], "\x00")) > 0 {
		return nil, fmt.Errorf("file has %d bytes, want %d and zeros after the last section", len(data), align(end))
	}
	return parts, nil
}
