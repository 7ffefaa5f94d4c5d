package spirv

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Disassemble prints a module in the assembly language of SPIRV-Tools, which
// spirv-as turns back into an equal module. IDs have the names that the module
// gives them, types and constants names that say what they are, others numbers.
func Disassemble(words []uint32) (string, error) {
	m, err := Parse(words)
	if err != nil {
		return "", err
	}
	return m.String(), nil
}

// resultColumn is where the instructions begin.
const resultColumn = 18

// String prints the module like Disassemble.
func (m *Module) String() string {
	p := printer{m: m, names: friendlyNames(m)}
	fmt.Fprintf(&p.out, "; SPIR-V\n; Version: %d.%d\n; Generator: %d\n; Bound: %d\n; Schema: 0\n",
		m.Version>>16&0xff, m.Version>>8&0xff, m.Generator, m.Bound)
	for i := range m.Insts {
		p.inst(&m.Insts[i])
	}
	return p.out.String()
}

type printer struct {
	m     *Module
	names map[ID]string
	out   strings.Builder
}

func (p *printer) inst(in *Inst) {
	if in.Op == OpFunction {
		p.out.WriteByte('\n')
	}
	lhs := ""
	if in.Result != 0 {
		lhs = p.id(in.Result) + " = "
	}
	fmt.Fprintf(&p.out, "%*s%v", resultColumn, lhs, in.Op)
	for _, o := range in.operands {
		if o.kind == kindIdResult {
			continue
		}
		p.out.WriteByte(' ')
		p.out.WriteString(p.operand(in, o))
	}
	p.out.WriteByte('\n')
}

func (p *printer) id(id ID) string {
	if name, ok := p.names[id]; ok {
		return "%" + name
	}
	return "%" + strconv.FormatUint(uint64(id), 10)
}

func (p *printer) operand(in *Inst, o word) string {
	desc := &kindTable[o.kind]
	w := o.words[0]
	switch desc.category {
	case idOperand:
		return p.id(w)
	case valueEnum:
		return desc.find(w).name
	case bitEnum:
		return maskString(desc, w)
	}
	switch o.kind {
	case kindLiteralString:
		return quote(stringOf(o.words))
	case kindLiteralContextDependentNumber:
		d := decoder{m: p.m, in: in}
		return number(p.m.scalars[d.numberType()], o.words)
	case kindLiteralExtInstInteger:
		return extInst(w)
	case kindLiteralSpecConstantOpInteger:
		return strings.TrimPrefix(Op(w).String(), "Op")
	}
	return strconv.FormatUint(uint64(w), 10)
}

// maskString joins the names of the bits of a mask.
func maskString(desc *kindDesc, w uint32) string {
	if w == 0 {
		return "None"
	}
	var names []string
	for mask := w; mask != 0; mask &= mask - 1 {
		names = append(names, desc.find(mask&-mask).name)
	}
	return strings.Join(names, "|")
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// extInst names an instruction of GLSL.std.450, the one set that modules here
// import; the assembler takes numbers too.
func extInst(code uint32) string {
	if name, ok := glslNames[code]; ok {
		return name
	}
	return strconv.FormatUint(uint64(code), 10)
}

// number prints a literal of type s.
func number(s scalar, w []uint32) string {
	bits := uint64(w[0])
	if len(w) > 1 {
		bits |= uint64(w[1]) << 32
	}
	switch {
	case s.float && s.width == 32:
		return floatString(float64(math.Float32frombits(w[0])), w[0]>>31 != 0, uint64(w[0]&(1<<23-1)), 23, 127, 32)
	case s.float && s.width == 64:
		return floatString(math.Float64frombits(bits), bits>>63 != 0, bits&(1<<52-1), 52, 1023, 64)
	case s.float && s.width == 16:
		return floatString(halfValue(w[0]), w[0]>>15&1 != 0, uint64(w[0]&(1<<10-1)), 10, 15, 32)
	case s.signed && s.width <= 32:
		return strconv.FormatInt(int64(int32(w[0])), 10)
	case s.signed:
		return strconv.FormatInt(int64(bits), 10)
	}
	return strconv.FormatUint(bits, 10)
}

// halfValue returns the value of a 16-bit float.
func halfValue(bits uint32) float64 {
	sign := 1 - 2*float64(bits>>15&1)
	exp, mantissa := int(bits>>10&31), float64(bits&1023)
	switch exp {
	case 0:
		return sign * math.Ldexp(mantissa, -24)
	case 31:
		return math.Inf(1) // or NaN: floatString prints both from the bits
	}
	return sign * math.Ldexp(1024+mantissa, exp-25)
}

// floatString prints the shortest decimal that reads back equal. The assembler
// knows infinities and NaNs as hexadecimal floats with the exponent after the
// last.
func floatString(f float64, negative bool, mantissa uint64, mantissaBits, maxExp, size int) string {
	if !math.IsNaN(f) && !math.IsInf(f, 0) {
		return strconv.FormatFloat(f, 'g', -1, size)
	}
	sign := ""
	if negative {
		sign = "-"
	}
	digits := (mantissaBits + 3) / 4
	hex := fmt.Sprintf("%0*x", digits, mantissa<<(digits*4-mantissaBits))
	if hex = strings.TrimRight(hex, "0"); hex != "" {
		hex = "." + hex
	}
	return fmt.Sprintf("%s0x1%sp+%d", sign, hex, maxExp+1)
}
