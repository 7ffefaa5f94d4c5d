package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// machines holds for each machine what sets the word at p, which lies at address from, as a
// relocation to address to says. All others than those that code of one piece needs are refused.
var machines = map[elf.Machine]func(p []byte, kind uint32, to, from int64) error{
	elf.EM_X86_64:  patchAMD64,
	elf.EM_AARCH64: patchARM64,
}

// patchAMD64: System V ABI, AMD64 supplement, section 4.4.
func patchAMD64(p []byte, kind uint32, to, from int64) error {
	switch k := elf.R_X86_64(kind); k {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		d := to - from
		if int64(int32(d)) != d {
			return fmt.Errorf("%v over %d bytes", k, d)
		}
		binary.LittleEndian.PutUint32(p, uint32(d))
		return nil
	default:
		return fmt.Errorf("relocation %v: code of one piece has none", k)
	}
}

// patchARM64: ELF for the Arm 64-bit Architecture, section 5.7.
func patchARM64(p []byte, kind uint32, to, from int64) error {
	word := binary.LittleEndian.Uint32(p)
	low := func(shift int) error { // the low 12 bits of the address, in units of 1<<shift bytes
		offset := uint32(to) & 0xfff
		if offset&(1<<shift-1) != 0 {
			return fmt.Errorf("relocation %v to address %#x, which is not aligned", elf.R_AARCH64(kind), to)
		}
		word = word&^(0xfff<<10) | offset>>shift<<10
		return nil
	}
	var err error
	switch k := elf.R_AARCH64(kind); k {
	case elf.R_AARCH64_ADR_PREL_PG_HI21: // both instructions have 21 bits of pages
		pages := to>>12 - from>>12
		if pages < -1<<20 || pages >= 1<<20 {
			return fmt.Errorf("%v over %d pages", k, pages)
		}
		word = word&^(3<<29|0x7ffff<<5) | uint32(pages)&3<<29 | uint32(pages>>2)&0x7ffff<<5
	case elf.R_AARCH64_ADD_ABS_LO12_NC, elf.R_AARCH64_LDST8_ABS_LO12_NC:
		err = low(0)
	case elf.R_AARCH64_LDST16_ABS_LO12_NC:
		err = low(1)
	case elf.R_AARCH64_LDST32_ABS_LO12_NC:
		err = low(2)
	case elf.R_AARCH64_LDST64_ABS_LO12_NC:
		err = low(3)
	case elf.R_AARCH64_LDST128_ABS_LO12_NC:
		err = low(4)
	case elf.R_AARCH64_CALL26, elf.R_AARCH64_JUMP26:
		d := to - from
		if d%4 != 0 || d < -1<<27 || d >= 1<<27 {
			return fmt.Errorf("%v over %d bytes", k, d)
		}
		word = word&^0x3ffffff | uint32(d>>2)&0x3ffffff
	default:
		return fmt.Errorf("relocation %v: code of one piece has none", k)
	}
	binary.LittleEndian.PutUint32(p, word)
	return err
}
