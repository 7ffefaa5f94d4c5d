// Package object reads the machine code of kernels: relocatable ELF objects of LLVM
// whose functions call nothing outside. It checks them and links them, without a linker, to
// position-independent code.
package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

const (
	// PageSize is what the address of linked code must be a multiple of.
	PageSize = 4096
	// MaxStack is how many bytes of stack the functions of an object may take.
	MaxStack = 64 << 10

	maxBytes = 16 << 20 // of an object
)

// Object is a checked ELF object.
type Object struct {
	Machine elf.Machine // EM_X86_64 or EM_AARCH64
	Align   int         // of the code, a power of two up to PageSize
	Size    int         // bytes of linked code
	Funcs   []Func      // in the order of their offsets
	Stack   int         // bytes that all functions together take of the stack

	sections []section
}

// Func is a function that can be called from outside.
type Func struct {
	Name   string
	Offset int // in the linked code
	Size   int
}

// section is a part of the linked code.
type section struct {
	at     int
	data   []byte
	relocs []reloc
}

// reloc is a place in a section that holds the distance to, or the address of, a target.
type reloc struct {
	at     int // in the section
	kind   uint32
	target int // in the linked code
}

// Read checks an object and all that Link relies on.
func Read(data []byte) (*Object, error) {
	if len(data) > maxBytes {
		return nil, fmt.Errorf("object of %d bytes, at most %d are read", len(data), maxBytes)
	}
	f, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("not an ELF object: %w", err)
	}
	switch {
	case f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB || f.Type != elf.ET_REL:
		return nil, fmt.Errorf("%v %v of type %v: want a relocatable object of 64 bits, little endian", f.Class, f.Data, f.Type)
	case machines[f.Machine] == nil:
		return nil, fmt.Errorf("object for %v: want x86-64 or aarch64", f.Machine)
	}
	r := reader{file: f, o: &Object{Machine: f.Machine, Align: 16}, at: map[int]int{}}
	for _, step := range []func() error{r.place, r.symbols, r.relocate, r.stack} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := r.o.Link(make([]byte, r.o.Size), 0); err != nil {
		return nil, err
	}
	return r.o, nil
}

// Func returns the function of that name.
func (o *Object) Func(name string) (Func, error) {
	for _, f := range o.Funcs {
		if f.Name == name {
			return f, nil
		}
	}
	return Func{}, fmt.Errorf("the object has no function %q", name)
}

// Link writes the code to dst, Size bytes, for a place that lies at bytes behind an address that
// is a multiple of PageSize; at is a multiple of Align.
func (o *Object) Link(dst []byte, at int) error {
	if len(dst) != o.Size || at < 0 || at%o.Align != 0 {
		return fmt.Errorf("object of %d bytes, aligned to %d, is linked into %d bytes at %d", o.Size, o.Align, len(dst), at)
	}
	clear(dst)
	patch := machines[o.Machine]
	for _, s := range o.sections {
		copy(dst[s.at:], s.data)
		for _, r := range s.relocs {
			if err := patch(dst[s.at+r.at:], r.kind, int64(at+r.target), int64(at+s.at+r.at)); err != nil {
				return err
			}
		}
	}
	return nil
}

// reader turns a file into an Object.
type reader struct {
	file  *elf.File
	o     *Object
	at    map[int]int // where in the code a section lies, by its index
	index []int       // section index of o.sections
	syms  []elf.Symbol
	funcs int // functions, also those that are not visible outside
}

// place lays the sections that belong into memory one behind the other.
func (r *reader) place() error {
	for i, s := range r.file.Sections {
		switch {
		case s.Flags&elf.SHF_ALLOC == 0 || s.Type == elf.SHT_NOTE || s.Name == ".eh_frame" || s.Size == 0:
			continue
		case s.Type != elf.SHT_PROGBITS || s.Flags&(elf.SHF_WRITE|elf.SHF_TLS|elf.SHF_COMPRESSED) != 0:
			return fmt.Errorf("section %s is %v with flags %v: code has no variables", s.Name, s.Type, s.Flags)
		case s.Size > maxBytes || s.Addralign > PageSize || s.Addralign&(s.Addralign-1) != 0:
			return fmt.Errorf("section %s has %d bytes aligned to %d", s.Name, s.Size, s.Addralign)
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		align := max(1, int(s.Addralign))
		at := (r.o.Size + align - 1) / align * align
		r.o.Align = max(r.o.Align, align)
		r.o.Size = at + len(data)
		if r.o.Size > maxBytes {
			return fmt.Errorf("more than %d bytes of code", maxBytes)
		}
		r.at[i] = at
		r.index = append(r.index, i)
		r.o.sections = append(r.o.sections, section{at: at, data: data})
	}
	if r.o.Size == 0 {
		return fmt.Errorf("the object has no code")
	}
	return nil
}

// symbols finds the functions, and refuses what is not there.
func (r *reader) symbols() error {
	syms, err := r.file.Symbols()
	if err != nil {
		return fmt.Errorf("symbols: %w", err)
	}
	r.syms = syms
	seen := map[string]bool{}
	for _, s := range syms {
		kind, index := elf.ST_TYPE(s.Info), int(s.Section)
		if s.Section == elf.SHN_UNDEF {
			return fmt.Errorf("symbol %q is not defined: kernels call nothing outside", s.Name)
		}
		if kind != elf.STT_FUNC {
			continue
		}
		r.funcs++
		at, ok := r.at[index]
		if !ok {
			return fmt.Errorf("function %q is in no section of code", s.Name)
		}
		sec := r.file.Sections[index]
		if sec.Flags&elf.SHF_EXECINSTR == 0 || s.Value > sec.Size || s.Size > sec.Size-s.Value {
			return fmt.Errorf("function %q: bytes [%d, +%d) of section %s, which has %d", s.Name, s.Value, s.Size, sec.Name, sec.Size)
		}
		if elf.ST_BIND(s.Info) == elf.STB_LOCAL {
			continue
		}
		if s.Name == "" || seen[s.Name] {
			return fmt.Errorf("function %q: empty or repeated name", s.Name)
		}
		seen[s.Name] = true
		r.o.Funcs = append(r.o.Funcs, Func{s.Name, at + int(s.Value), int(s.Size)})
	}
	if len(r.o.Funcs) == 0 {
		return fmt.Errorf("the object has no function")
	}
	slices.SortFunc(r.o.Funcs, func(a, b Func) int { return a.Offset - b.Offset })
	return nil
}

// relocate resolves the targets of all relocations of code.
func (r *reader) relocate() error {
	for _, s := range r.file.Sections {
		if s.Type != elf.SHT_RELA && s.Type != elf.SHT_REL {
			continue
		}
		i := slices.Index(r.index, int(s.Info))
		if i < 0 {
			continue // of a section that is left out
		}
		const entry = 24
		if s.Type != elf.SHT_RELA || s.Size%entry != 0 || s.Size > maxBytes || s.Flags&elf.SHF_COMPRESSED != 0 {
			return fmt.Errorf("section %s: not a table of relocations with addends", s.Name)
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		for ; len(data) > 0; data = data[entry:] {
			offset, info := binary.LittleEndian.Uint64(data), binary.LittleEndian.Uint64(data[8:])
			rel, err := r.target(&r.o.sections[i], offset, info, int64(binary.LittleEndian.Uint64(data[16:])))
			if err != nil {
				return fmt.Errorf("section %s: %w", s.Name, err)
			}
			r.o.sections[i].relocs = append(r.o.sections[i].relocs, rel)
		}
	}
	return nil
}

func (r *reader) target(s *section, offset, info uint64, addend int64) (reloc, error) {
	const word = 4 // all kinds patch one
	if len(s.data) < word || offset > uint64(len(s.data)-word) {
		return reloc{}, fmt.Errorf("relocation at %d of %d bytes", offset, len(s.data))
	}
	n := int(info >> 32)
	if n < 1 || n > len(r.syms) { // Symbols leaves out symbol 0
		return reloc{}, fmt.Errorf("relocation at %d: symbol %d of %d", offset, n, len(r.syms))
	}
	sym := r.syms[n-1]
	at, ok := r.at[int(sym.Section)]
	if !ok || sym.Value > maxBytes || addend > maxBytes || addend < -maxBytes {
		return reloc{}, fmt.Errorf("relocation at %d: %q%+d is in no section of code", offset, sym.Name, addend)
	}
	return reloc{int(offset), uint32(info), at + int(sym.Value) + int(addend)}, nil
}

// stack adds up the frames of all functions, which section .stack_sizes lists: an address and a
// size in LEB128 for each.
func (r *reader) stack() error {
	n := 0
	for _, s := range r.file.Sections {
		if s.Name != ".stack_sizes" {
			continue
		}
		if s.Size > maxBytes || s.Flags&elf.SHF_COMPRESSED != 0 || s.Type != elf.SHT_PROGBITS {
			return fmt.Errorf("section .stack_sizes cannot be read")
		}
		data, err := s.Data()
		if err != nil {
			return fmt.Errorf("section .stack_sizes: %w", err)
		}
		for ; len(data) > 0; n++ {
			if len(data) < 9 {
				return fmt.Errorf("section .stack_sizes ends early")
			}
			size, length := binary.Uvarint(data[8:])
			if length <= 0 || size > MaxStack {
				return fmt.Errorf("a function takes more than %d bytes of stack", MaxStack)
			}
			r.o.Stack += int(size) + 16 // with its return address
			data = data[8+length:]
		}
	}
	switch {
	case n < r.funcs:
		return fmt.Errorf("%d of %d functions say how much stack they take: want llc --stack-size-section", n, r.funcs)
	case r.o.Stack > MaxStack:
		return fmt.Errorf("the functions take %d bytes of stack, at most %d are allowed", r.o.Stack, MaxStack)
	}
	return nil
}
