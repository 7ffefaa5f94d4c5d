package plans

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"sync"

	"github.com/zincc-dev/zincc/ir"
)

// The file, little endian:
//
//	magic "zinccpln", u32 format version, u32 schema, u32 sections, u32 checksum
//	for each section: u32 id, u32 checksum, u64 offset, u64 length, u64 length unpacked
//	the sections in order, each at a multiple of 64, zeros between them
//
// Sections are packed, all but the one that is used in place. Checksums are CRC-32C; that of the head covers all before
// the first section but itself. The schema is a checksum of the names and types of the encoded structs, so that a plan
// of an unreleased format is never misread.

const (
	magic = "zinccpln"
	// Version is the version of the encoding and of its meaning.
	Version = 7

	headSize     = 24
	tocEntrySize = 32
	sectionAlign = 64
	// maxSection bounds one unpacked section, maxSections all sections but the
	// embedded weights. They bound the memory that a hostile file can claim.
	maxSection  = 64 << 20
	maxSections = 96 << 20
)

// section is one row of the table of sections.
type section struct {
	name   string
	encode func(p *Plan) []byte
	// decode reads the unpacked section. It is nil for the one that is not packed
	// but used in place: Plan.Embedded.
	decode func(p *Plan, data string) error
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
		decode: func(p *Plan, data string) (err error) {
			p.Program, err = ir.Parse(data)
			return err
		},
	},
	fields("vocab", func(p *Plan) any { return &p.Vocab }),
	fields("dialect", func(p *Plan) any { return &p.Dialect }),
	{name: "embedded", encode: func(p *Plan) []byte { return p.Embedded }},
}

// fields makes the section of the struct or slice that of points to.
func fields(name string, of func(p *Plan) any) section {
	return section{
		name:   name,
		encode: func(p *Plan) []byte { return appendValue(nil, reflect.ValueOf(of(p)).Elem()) },
		decode: func(p *Plan, data string) error {
			return decodeSection(data, reflect.ValueOf(of(p)).Elem())
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
	Dialect   Dialect
}]())))

// align rounds n up to a multiple of sectionAlign.
func align(n int) int { return (n + sectionAlign - 1) / sectionAlign * sectionAlign }

// Write encodes p after validating it. The same plan gives the same bytes.
func Write(w io.Writer, p *Plan) error {
	front, err := encode(p)
	if err != nil {
		return err
	}
	return writeFile(w, front, p.Embedded)
}

// writeFile writes what stands before the embedded weights, these, and zeros up to the end.
func writeFile(w io.Writer, front, embedded []byte) error {
	var zeros [sectionAlign]byte
	for _, b := range [][]byte{front, embedded, zeros[:align(len(embedded))-len(embedded)]} {
		if _, err := w.Write(b); err != nil {
			return err
		}
	}
	return nil
}

// encode makes all of a file before the embedded weights.
func encode(p *Plan) ([]byte, error) {
	if err := validate(p); err != nil {
		return nil, fmt.Errorf("plan: %w", err)
	}
	parts := make([]part, len(sections))
	if err := each(func(i int, s section) error {
		parts[i] = makePart(s, s.encode(p))
		return nil
	}); err != nil {
		return nil, err
	}
	return join(parts)
}

// part is a section as it is in the file.
type part struct {
	data     []byte
	unpacked int // bytes
}

func makePart(s section, data []byte) part {
	if s.decode == nil {
		return part{data, len(data)}
	}
	return part{pack(data), len(data)}
}

// each calls f for every section, several at a time, and returns the error of the
// first in file order.
func each(f func(i int, s section) error) error {
	errs := make([]error, len(sections))
	var wg sync.WaitGroup
	for i, s := range sections {
		wg.Go(func() { errs[i] = f(i, s) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("section %s: %w", sections[i].name, err)
		}
	}
	return nil
}

// bound checks the sizes of unpacked sections, given in file order.
type bound int

func (total *bound) add(s section, n uint64) error {
	if s.decode == nil {
		return nil
	}
	if n > maxSection || uint64(*total)+n > maxSections {
		return fmt.Errorf("section %s: %d bytes, the limit is %d, and %d for all", s.name, n, maxSection, maxSections)
	}
	*total += bound(n)
	return nil
}

// join makes the head and puts the sections behind it, but for the last.
func join(parts []part) ([]byte, error) {
	head := make([]byte, headSize, tocEnd)
	copy(head, magic)
	le.PutUint32(head[8:], Version)
	le.PutUint32(head[12:], schemaSum)
	le.PutUint32(head[16:], uint32(len(sections)))
	at, total := align(tocEnd), bound(0)
	for i, s := range sections {
		p := parts[i]
		if err := total.add(s, uint64(p.unpacked)); err != nil {
			return nil, fmt.Errorf("plan: %w", err)
		}
		head = le.AppendUint32(head, uint32(i+1))
		head = le.AppendUint32(head, checksum(p.data))
		head = le.AppendUint64(head, uint64(at))
		head = le.AppendUint64(head, uint64(len(p.data)))
		head = le.AppendUint64(head, uint64(p.unpacked))
		at = align(at + len(p.data))
	}
	le.PutUint32(head[20:], headSum(head))
	front := make([]byte, frontEnd(head))
	copy(front, head)
	for i := range parts[:len(parts)-1] {
		copy(front[le.Uint64(head[headSize+i*tocEntrySize+8:]):], parts[i].data)
	}
	return front, nil
}

// headSum is the checksum of head and table of contents.
func headSum(head []byte) uint32 {
	return crc32.Update(checksum(head[:20]), castagnoli, head[headSize:])
}

// tocEnd is where head and table of contents end.
var tocEnd = headSize + len(sections)*tocEntrySize

// Decode reads a plan from the bytes of a file; Plan.Embedded is a part of data.
// Errors are one line that names the section and, where there is one, the field.
func Decode(data []byte) (*Plan, error) {
	if err := checkHead(data); err != nil {
		return nil, err
	}
	at := max(tocEnd, int(min(frontEnd(data), uint64(len(data)))))
	return decode(data[:at:at], data[at:])
}

var errNoPlan = errors.New("not a zincc plan")

// checkHead judges head and table of contents, with which data begins.
func checkHead(data []byte) error {
	if len(data) < len(magic) || string(data[:len(magic)]) != magic {
		return fmt.Errorf("%w (begins with %.8q)", errNoPlan, data[:min(8, len(data))])
	}
	if len(data) < headSize {
		return fmt.Errorf("head: file ends after %d bytes", len(data))
	}
	switch v := le.Uint32(data[8:]); {
	case v > Version:
		return fmt.Errorf("head: plan format %d is newer than this program's %d; use a newer program", v, Version)
	case v < Version:
		return fmt.Errorf("head: plan format %d is older than this program's %d; compile the model again", v, Version)
	case le.Uint32(data[12:]) != schemaSum:
		return fmt.Errorf("head: plan format %d of another development version; compile the model again", v)
	case le.Uint32(data[16:]) != uint32(len(sections)):
		return fmt.Errorf("head: %d sections, want %d", le.Uint32(data[16:]), len(sections))
	case len(data) < tocEnd:
		return fmt.Errorf("head: file ends after %d bytes", len(data))
	case le.Uint32(data[20:]) != headSum(data[:tocEnd]):
		return fmt.Errorf("head: checksum does not match; the file is damaged")
	}
	return nil
}

// frontEnd is where the last section begins, that of embedded weights, by a table of contents that nobody has judged.
func frontEnd(head []byte) uint64 { return le.Uint64(head[tocEnd-tocEntrySize+8:]) }

// decode reads a plan from the two parts of a file: all before the embedded weights, and these. Its head is known to be
// right.
func decode(front, rest []byte) (*Plan, error) {
	parts, err := split(front, rest)
	if err != nil {
		return nil, err
	}
	p := &Plan{}
	var digest Digest
	hashed := make(chan error, 1)
	go func() {
		var err error
		digest, err = digestOf(front, parts[len(parts)-1].data)
		hashed <- err
	}()
	err = each(func(i int, s section) error {
		if s.decode == nil {
			if len(parts[i].data) > 0 {
				p.Embedded = parts[i].data
			}
			return nil
		}
		data, err := unpack(parts[i].data, parts[i].unpacked)
		if err != nil {
			return err
		}
		return s.decode(p, data)
	})
	if hashErr := <-hashed; err == nil {
		err = hashErr
	}
	if err == nil {
		err = Validate(p)
	}
	if err != nil {
		return nil, err
	}
	p.digest = &digest
	return p, nil
}

// split returns each section once the table of contents, the checksums and the
// padding are known to be right and the sizes to be in bounds.
func split(front, rest []byte) ([]part, error) {
	parts := make([]part, len(sections))
	end, total, size := tocEnd, bound(0), len(front)+len(rest)
	for i, s := range sections {
		entry := front[headSize+i*tocEntrySize:]
		at, n, unpacked := align(end), le.Uint64(entry[16:]), le.Uint64(entry[24:])
		if le.Uint32(entry) != uint32(i+1) || le.Uint64(entry[8:]) != uint64(at) {
			return nil, fmt.Errorf("section %s: id %d at %d, want %d at %d", s.name, le.Uint32(entry), le.Uint64(entry[8:]), i+1, at)
		}
		if at > size || n > uint64(size-at) {
			return nil, fmt.Errorf("section %s: file ends early: %d bytes at %d, file has %d", s.name, n, at, size)
		}
		if s.decode == nil && unpacked != n {
			return nil, fmt.Errorf("section %s: %d bytes, unpacked %d", s.name, n, unpacked)
		}
		if err := total.add(s, unpacked); err != nil {
			return nil, err
		}
		data, from := front, at
		if i == len(sections)-1 {
			data, from = rest, at-len(front)
		}
		if from < 0 || uint64(from)+n > uint64(len(data)) {
			return nil, fmt.Errorf("section %s: %d bytes at %d reach into another", s.name, n, at)
		}
		piece := data[from : from+int(n) : from+int(n)]
		if checksum(piece) != le.Uint32(entry[4:]) {
			return nil, fmt.Errorf("section %s: checksum does not match; the file is damaged", s.name)
		}
		if len(bytes.Trim(front[end:min(at, len(front))], "\x00")) > 0 {
			return nil, fmt.Errorf("section %s: bytes before it are not zero; the file is damaged", s.name)
		}
		parts[i] = part{piece, int(unpacked)}
		end = at + len(piece)
	}
	if size != align(end) || len(bytes.Trim(rest[end-len(front):], "\x00")) > 0 {
		return nil, fmt.Errorf("file has %d bytes, want %d and zeros after the last section", size, align(end))
	}
	return parts, nil
}
