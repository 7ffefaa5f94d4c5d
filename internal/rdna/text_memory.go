package rdna

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// special is the text of instructions that are not results, operands and modifiers.
func (in *Inst) special() (string, bool) {
	switch in.row.form {
	case sopp:
		return in.Name() + in.immediate(), true
	case sopk:
		return in.wordText(), true
	case smem, ds, global, scratch, mubuf:
		return in.Name() + in.memoryText(), true
	}
	return "", false
}

// immediate is the operand of SOPP.
func (in *Inst) immediate() string {
	k := uint16(in.imm)
	switch in.Name() {
	case "s_endpgm", "s_barrier", "s_icache_inv", "s_code_end", "s_wait_idle":
		return ""
	case "s_nop", "s_branch", "s_cbranch_scc0", "s_cbranch_scc1", "s_cbranch_vccz", "s_cbranch_vccnz", "s_cbranch_execz", "s_cbranch_execnz":
		return fmt.Sprintf(" %d", k)
	case "s_delay_alu":
		return " " + delayText(k)
	case "s_waitcnt":
		return waitText(k)
	case "s_sendmsg":
		if k == 3 {
			return " sendmsg(MSG_DEALLOC_VGPRS)"
		}
	}
	return fmt.Sprintf(" 0x%x", k)
}

// waitText has the counters that gfx11's wait asks for.
func waitText(k uint16) (s string) {
	for _, c := range []struct {
		name      string
		at, limit uint16
	}{{"vmcnt", 10, 63}, {"expcnt", 0, 7}, {"lgkmcnt", 4, 63}} {
		if n := k >> c.at & c.limit; n != c.limit {
			s += fmt.Sprintf(" %s(%d)", c.name, n)
		}
	}
	return s
}

func delayText(k uint16) string {
	ids := []string{"NO_DEP", "VALU_DEP_1", "VALU_DEP_2", "VALU_DEP_3", "VALU_DEP_4", "TRANS32_DEP_1", "TRANS32_DEP_2", "TRANS32_DEP_3", "FMA_ACCUM_CYCLE_1",
		"SALU_CYCLE_1", "SALU_CYCLE_2", "SALU_CYCLE_3"}
	skips := []string{"SAME", "NEXT", "SKIP_1", "SKIP_2", "SKIP_3", "SKIP_4"}
	first, skip, second := int(k&15), int(k>>4&7), int(k>>7&15)
	if first >= len(ids) || skip >= len(skips) || second >= len(ids) {
		return fmt.Sprintf("0x%x", k)
	}
	var parts []string
	if first != 0 {
		parts = append(parts, "instid0("+ids[first]+")")
	}
	if skip != 0 {
		parts = append(parts, "instskip("+skips[skip]+")")
	}
	if second != 0 {
		parts = append(parts, "instid1("+ids[second]+")")
	}
	return strings.Join(parts, " | ")
}

// wordText is SOPK: a register and 16 bits.
func (in *Inst) wordText() string {
	k := fmt.Sprintf("0x%x", uint16(in.imm))
	if _, is := in.row.fn.(setReg); is || strings.HasPrefix(in.Name(), "s_getreg") {
		reg, at, n := in.hardware()
		k = fmt.Sprintf("hwreg(%d, %d, %d)", reg, at, n)
		if slices.Contains(in.row.at, literal) {
			return in.Name() + " " + k + ", " + in.text(&in.src[0])
		}
	}
	if len(in.src) > 0 && in.row.dst == none && strings.HasPrefix(in.Name(), "s_setreg") {
		return in.Name() + " " + k + ", " + in.text(&in.src[0])
	}
	return in.Name() + " " + registers(in.dst.code, 1) + ", " + k
}

func (in *Inst) memoryText() string {
	m := &in.mem
	v := func(n, regs int) string { return registers(firstVector+n, regs) }
	words, tail := []string{}, ""
	switch o := in.row.fn.(type) {
	case scalarLoad:
		offset := fmt.Sprintf("0x%x", in.imm)
		if in.imm < 0 {
			offset = fmt.Sprintf("-0x%x", -in.imm)
		}
		if in.gen == GFX11 && in.imm == 0 {
			offset = "null"
		}
		if m.saddr != nullReg {
			offset = registers(m.saddr, 1) + " offset:" + offset
			if in.imm == 0 {
				offset = registers(m.saddr, 1)
			}
		}
		base := 2
		if o.buffer {
			base = 4
		}
		words = []string{registers(in.dst.code, max(1, o.bytes/4)), registers(m.addr, base), offset}
	case transfer:
		data := v(m.data, o.registers())
		if !o.store {
			data = registers(in.dst.code, max(1, o.registers()*len(o.addresses(in))))
		}
		address, rest := in.addressTexts()
		switch {
		case in.row.form == mubuf:
			words = append([]string{data}, append([]string{address}, rest...)...)
		case !o.store:
			words = append([]string{data, address}, rest...)
		default:
			words = append([]string{address, data}, rest...)
			if o.pair > 0 {
				words = append(words, v(m.data2, o.registers()))
			}
		}
		tail = in.offsetText(o.pair > 0)
	case atomic:
		n := o.bytes / 4
		if o.two && in.row.form != ds {
			n *= 2
		}
		address, rest := in.addressTexts()
		if in.returns(o) {
			words = append(words, registers(in.dst.code, o.bytes/4))
		}
		words = append(words, address, v(m.data, n))
		if o.two && in.row.form == ds {
			words = append(words, v(m.data2, n))
		}
		words = append(words, rest...)
		tail = in.offsetText(false)
	case lanesMove:
		words = []string{registers(in.dst.code, 1), v(m.addr, 1)}
		if o.swizzle {
			if offset := m.offsets[0] | m.offsets[1]<<8; offset != 0 {
				tail = " offset:" + swizzleText(offset)
			}
			break
		}
		words = append(words, v(m.data, 1))
		tail = in.offsetText(false)
	}
	if len(words) == 0 {
		return tail + in.cacheText()
	}
	return " " + strings.Join(words, ", ") + tail + in.cacheText()
}

// addressTexts are the operand of lanes and what follows it.
func (in *Inst) addressTexts() (string, []string) {
	m := &in.mem
	switch in.row.form {
	case ds:
		return registers(firstVector+m.addr, 1), nil
	case mubuf:
		address := "off"
		if m.vaddr {
			address = registers(firstVector+m.addr, 1)
		}
		offset := registers(m.saddr, 1)
		if x, ok := inlineConstant(m.soffset, b32); ok {
			offset = fmt.Sprint(x)
		}
		return address, []string{registers(m.resource, 4), offset}
	case scratch:
		address, base := "off", "off"
		if m.vaddr {
			address = registers(firstVector+m.addr, 1)
		}
		if m.saddr != nullReg {
			base = registers(m.saddr, 1)
		}
		return address, []string{base}
	}
	if m.saddr != nullReg {
		return registers(firstVector+m.addr, 1), []string{registers(m.saddr, 2)}
	}
	return registers(firstVector+m.addr, 2), []string{"off"}
}

func (in *Inst) offsetText(two bool) (s string) {
	m := &in.mem
	switch {
	case in.row.form == ds && two:
		for i, n := range m.offsets {
			if n != 0 {
				s += fmt.Sprintf(" offset%d:%d", i, n)
			}
		}
	case in.row.form == ds:
		if n := m.offsets[0] | m.offsets[1]<<8; n != 0 {
			s = fmt.Sprintf(" offset:%d", n)
		}
	default:
		if in.row.form == mubuf && m.vaddr {
			s = " offen"
		}
		if in.imm != 0 {
			s += fmt.Sprintf(" offset:%d", in.imm)
		}
	}
	return s
}

// cacheText says what caches do.
func (in *Inst) cacheText() (s string) {
	m := &in.mem
	if m.th != 0 {
		if _, is := in.row.fn.(atomic); is {
			s += map[int]string{1: " th:TH_ATOMIC_RETURN"}[m.th]
		} else {
			kind := "LOAD"
			if t, ok := in.row.fn.(transfer); ok && t.store {
				kind = "STORE"
			}
			s += " th:TH_" + kind + "_" + []string{"RT", "NT", "HT", "LU", "NT_RT", "RT_NT", "NT_HT", "RT_WB"}[m.th]
		}
	}
	s += []string{"", " scope:SCOPE_SE", " scope:SCOPE_DEV", " scope:SCOPE_SYS"}[m.scope]
	if m.glc {
		s += " glc"
	}
	if m.slc {
		s += " slc"
	}
	if m.dlc {
		s += " dlc"
	}
	return s
}

// swizzleText is the pattern of ds_swizzle: what becomes of each bit of a lane's number.
func swizzleText(offset int) string {
	if offset&0x8000 != 0 {
		return fmt.Sprintf("swizzle(QUAD_PERM,%d,%d,%d,%d)", offset&3, offset>>2&3, offset>>4&3, offset>>6&3)
	}
	and, or, xor := offset&31, offset>>5&31, offset>>10&31
	if and == 31 && or == 0 && bits.OnesCount(uint(xor)) == 1 {
		return fmt.Sprintf("swizzle(SWAP,%d)", xor)
	}
	s := ""
	for b := 4; b >= 0; b-- {
		of := func(x int) int { return (x<<b&and | or) ^ xor }
		zero, one := of(0)>>b&1, of(1)>>b&1
		s += []string{"0", "p", "i", "1"}[2*zero+one]
	}
	return `swizzle(BITMASK_PERM,"` + s + `")`
}
