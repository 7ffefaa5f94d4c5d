package site

import (
	"github.com/zincc-dev/zincc/codegen/kernel"
	"github.com/zincc-dev/zincc/ir"
)

// Signature is the interface of a kernel: its arguments, in the order of their addresses, and its
// specialization constants, in the order of their ids. A family declares it in one function,
// which returns the body of the kernel. The function runs twice: for a candidate it lists what
// the site binds to each name, and the body is dropped; while the kernel is built it declares the same
// names in the builder and returns their handles, which the body uses.
type Signature struct {
	b        *kernel.Builder // nil while a candidate is listed, and once all is declared
	operands []Operand
	consts   []ir.Const
	units    []string // of the constants
	prefix   string   // of all names
}

// Kernel declares a kernel's signature and returns its body.
type Kernel func(s *Signature) (body func(b *kernel.Builder))

// Implement gives c its kernel: signature and build function. The name is for listings.
func Implement(c Candidate, name string, declare Kernel) Candidate {
	s := &Signature{operands: make([]Operand, 0, 8), consts: make([]ir.Const, 0, 8), units: make([]string, 0, 8)}
	c.declare = declare
	declare(s)
	c.Operands, c.Consts, c.Units = s.operands, s.consts, s.units
	c.Build = func() (*kernel.Func, error) {
		return kernel.Build(name, func(b *kernel.Builder) {
			s := &Signature{b: b}
			body := declare(s)
			s.b = nil
			body(b)
		})
	}
	return c
}

// Arg declares the next argument, to which the site binds v.
func (s *Signature) Arg(name string, v *ir.Value, access kernel.Access) *kernel.Buffer {
	name = s.prefix + name
	if s.b != nil {
		return s.b.Arg(name, access)
	}
	s.operands = append(s.operands, Operand{Name: name, Value: v, Access: access})
	return nil
}

// Read declares an argument that is only read.
func (s *Signature) Read(name string, v *ir.Value) *kernel.Buffer {
	return s.Arg(name, v, kernel.Read)
}

// Write declares an argument that is only written.
func (s *Signature) Write(name string, v *ir.Value) *kernel.Buffer {
	return s.Arg(name, v, kernel.Write)
}

// Update declares an argument that is read and written.
func (s *Signature) Update(name string, v *ir.Value) *kernel.Buffer {
	return s.Arg(name, v, kernel.ReadWrite)
}

// ReadArgs declares the operands of op by the names that its kind gives them.
func (s *Signature) ReadArgs(op *ir.Op) []*kernel.Buffer {
	list := make([]*kernel.Buffer, len(op.Args))
	for i, v := range op.Args {
		list[i] = s.Read(op.Kind.Params[i], v)
	}
	return list
}

// U32 declares the next constant. The site sets it to value; def is the default of a module that nobody
// specializes. unit says what the constant counts.
func (s *Signature) U32(name string, value, def int, unit string) kernel.Value {
	name = s.prefix + name
	if s.b != nil {
		return s.b.SpecU32(name, uint32(def))
	}
	s.consts, s.units = append(s.consts, ir.Const{Name: name, Value: uint32(value)}), append(s.units, unit)
	return kernel.Value{}
}

// F32 is like U32 for a constant of type f32.
func (s *Signature) F32(name string, value float64, def float32, unit string) kernel.Value {
	name = s.prefix + name
	if s.b != nil {
		return s.b.SpecF32(name, def)
	}
	s.consts, s.units = append(s.consts, ir.FloatConst(name, value)), append(s.units, unit)
	return kernel.Value{}
}
