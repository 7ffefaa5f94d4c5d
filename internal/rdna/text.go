package rdna

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// String is the instruction in the notation of LLVM's disassembler.
func (in *Inst) String() string {
	if in.second != nil {
		return in.dual() + " :: " + in.second.dual()
	}
	if text, ok := in.special(); ok {
		return text
	}
	var b strings.Builder
	b.WriteString(in.Name() + in.suffix())
	for i, o := range in.operandTexts() {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" " + o)
	}
	b.WriteString(in.modifiers())
	return b.String()
}

func (in *Inst) dual() string {
	name := in.Name()
	if in.gen == GFX12 { // rows of VOPD are named as in gfx11
		name = byName[GFX11][in.row.name[GFX11]].name[GFX12]
	}
	return strings.Replace(name, "v_", "v_dual_", 1) + " " + strings.Join(in.operandTexts(), ", ")
}

// suffix tells the encodings of vector instructions apart.
func (in *Inst) suffix() string {
	long := in.long && slices.Contains([]form{vop1, vop2, vopc}, in.row.form)
	switch {
	case in.row.form < vop1 || in.row.form > vop3p:
		return ""
	case in.dpp != nil && in.long:
		return "_e64_dpp"
	case in.dpp != nil:
		return "_dpp"
	case long:
		return "_e64"
	case slices.Contains(in.row.at, literal), in.row.form > vopc, !in.long && slices.Contains(alwaysShort, in.Name()):
		return ""
	}
	return "_e32"
}

// alwaysShort have no long form.
var alwaysShort = []string{"v_readfirstlane_b32", "v_permlane64_b32", "v_swap_b32", "v_swap_b16", "v_pk_fmac_f16"}

// operandTexts are results and operands in their order.
func (in *Inst) operandTexts() (list []string) {
	r := in.row
	switch {
	case r.form == vopc && strings.HasPrefix(in.Name(), "v_cmpx"):
	case r.dst != none:
		list = append(list, in.text(&in.dst))
	}
	if in.sdst.t != none {
		list = append(list, in.text(&in.sdst))
	}
	for i := range in.src {
		if r.at[i] == result && (r.form != sopk || r.dst != none) {
			continue
		}
		if in.implied(i) {
			continue
		}
		list = append(list, in.text(&in.src[i]))
	}
	// What multiplies the literal stands behind it.
	if n := len(list); strings.Contains(in.Name(), "fmamk") {
		list[n-1], list[n-2] = list[n-2], list[n-1]
	}
	return list
}

// implied reports whether operand i has no text: of halves of VOPD VCC has none.
func (in *Inst) implied(i int) bool { return in.row.at[i] == carry && in.half }

// registerName is a register of one.
func registerName(code int) string { return registers(code, 1) }

// pairs are registers that have a name as two.
var pairs = map[int]string{vccLo: "vcc", execLo: "exec"}

var singles = map[int]string{vccLo: "vcc_lo", vccLo + 1: "vcc_hi", nullReg: "null", m0Reg: "m0", execLo: "exec_lo", execLo + 1: "exec_hi", sccCode: "src_scc"}

func registers(code, n int) string {
	kind, at := "s", code
	switch {
	case code >= firstVector:
		kind, at = "v", code-firstVector
	case n == 2 && pairs[code] != "":
		return pairs[code]
	case singles[code] != "":
		return singles[code]
	case code >= 108 && code < nullReg:
		kind, at = "ttmp", code-108
	}
	if n == 1 {
		return fmt.Sprintf("%s%d", kind, at)
	}
	return fmt.Sprintf("%s[%d:%d]", kind, at, at+n-1)
}

func (in *Inst) text(o *operand) string {
	s := ""
	switch {
	case o.code == constant:
		s = o.constantText()
		if o.neg && in.row.form == vop3p {
			return "neg(" + s + ")"
		}
	default:
		s = registers(o.code, o.t.registers(in.wave))
		if _, packed := in.row.fn.(mix); !packed && o.t.half() && o.vector() {
			s += map[bool]string{false: ".l", true: ".h"}[o.hi]
		}
	}
	if in.row.form == vop3p {
		return in.mixText(o, s)
	}
	if o.abs {
		s = "|" + s + "|"
	}
	if o.neg {
		s = "-" + s
	}
	return s
}

// mixText has the signs of v_fma_mix; those of other packed instructions are modifiers.
func (in *Inst) mixText(o *operand, s string) string {
	if _, is := in.row.fn.(mix); !is {
		return s
	}
	if o.raw == literalCode {
		s = "lit(" + s + ")"
	}
	if o.abs {
		s = "|" + s + "|"
	}
	if o.neg {
		s = "-" + s
	}
	return s
}

func (o *operand) constantText() string {
	switch raw := o.raw; {
	case raw >= 128 && raw <= 192:
		return strconv.Itoa(raw - 128)
	case raw >= 193 && raw <= 208:
		return strconv.Itoa(192 - raw)
	case raw == 248:
		return "0.15915494"
	case raw >= 240:
		if raw != literalCode {
			return strconv.FormatFloat(inlineFloats[raw-240], 'f', 1, 64)
		}
	}
	x := o.value
	if o.t == f64 {
		x >>= 32
	}
	return fmt.Sprintf("0x%x", uint32(x))
}

// modifiers are what stands behind the operands.
func (in *Inst) modifiers() string {
	var b strings.Builder
	if in.row.form == vop3p {
		b.WriteString(in.packedModifiers())
	} else if in.long {
		b.WriteString(in.longModifiers())
	}
	if in.dpp != nil {
		b.WriteString(in.dpp.text())
	}
	return b.String()
}

func list(name string, bits []bool, most bool) string {
	if !slices.Contains(bits, !most) {
		return ""
	}
	words := make([]string, len(bits))
	for i, b := range bits {
		words[i] = strconv.FormatUint(bit(b), 10)
	}
	return " " + name + ":[" + strings.Join(words, ",") + "]"
}

func (in *Inst) packedModifiers() (s string) {
	var low, high, neg, negHi []bool
	for i := range in.src {
		o := &in.src[i]
		low, high, neg, negHi = append(low, o.hi), append(high, o.hiHi), append(neg, o.neg), append(negHi, o.negHi)
	}
	_, isMix := in.row.fn.(mix)
	s = list("op_sel", low, false) + list("op_sel_hi", high, !isMix)
	if !isMix {
		s += list("neg_lo", neg, false) + list("neg_hi", negHi, false)
	}
	if in.clamp {
		s += " clamp"
	}
	return s
}

func (in *Inst) longModifiers() (s string) {
	switch in.row.fn.(type) {
	case permlane16, permlaneVar:
		s += list("op_sel", []bool{in.src[0].hi, in.src[1].hi}, false)
	}
	if in.clamp {
		s += " clamp"
	}
	return s + [...]string{"", " mul:2", " mul:4", " div:2"}[in.omod]
}

func (d *dpp) text() (s string) {
	if d.eight {
		var words []string
		for i := range 8 {
			words = append(words, strconv.Itoa(int(d.ctrl>>(3*i)&7)))
		}
		s = " dpp8:[" + strings.Join(words, ",") + "]"
		if d.fetchInactive {
			s += " fi:1"
		}
		return s
	}
	n := d.ctrl & 15
	switch c := d.ctrl; {
	case c < 0x100:
		s = fmt.Sprintf(" quad_perm:[%d,%d,%d,%d]", c&3, c>>2&3, c>>4&3, c>>6&3)
	case c == 0x140:
		s = " row_mirror"
	case c == 0x141:
		s = " row_half_mirror"
	default:
		s = fmt.Sprintf(" %s:%d", map[uint32]string{0x10: "row_shl", 0x11: "row_shr", 0x12: "row_ror", 0x15: "row_share", 0x16: "row_xmask"}[c>>4], n)
	}
	s += fmt.Sprintf(" row_mask:0x%x bank_mask:0x%x", d.rowMask, d.banks)
	if d.zero {
		s += " bound_ctrl:1"
	}
	if d.fetchInactive {
		s += " fi:1"
	}
	return s
}
