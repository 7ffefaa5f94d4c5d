package ir

import "fmt"

// AddGlobal appends a global to p and returns it.
func (p *Program) AddGlobal(name string, class Class, t Type) *Value {
	v := &Value{Name: name, Class: class, Type: t, Offset: -1}
	p.Globals = append(p.Globals, v)
	return v
}

// Builder appends ops to a function, one group each.
type Builder struct {
	Func *Func
	next int
}

// NewBuilder returns a builder that continues f.
func NewBuilder(f *Func) *Builder {
	b := &Builder{Func: f}
	for _, op := range f.Ops() {
		if op.Result != nil && op.Result.ID >= b.next {
			b.next = op.Result.ID + 1
		}
	}
	return b
}

// Op appends an op and returns its result, nil for ops without one.
func (b *Builder) Op(kind string, attrs Attrs, args ...*Value) (*Value, error) {
	op, err := b.Make(kind, attrs, args...)
	if err != nil {
		return nil, err
	}
	b.Func.Groups = append(b.Func.Groups, &Group{Ops: []*Op{op}})
	return op.Result, nil
}

// Make is Op without appending: the caller places the op.
func (b *Builder) Make(kind string, attrs Attrs, args ...*Value) (*Op, error) {
	k := LookupOp(kind)
	if k == nil {
		return nil, fmt.Errorf("unknown op %q", kind)
	}
	op := &Op{Kind: k, Args: args, Attrs: attrs}
	t, err := op.check()
	if err != nil {
		return nil, err
	}
	if t.DType != Invalid {
		op.Result = &Value{ID: b.next, Type: t, Def: op, Offset: -1}
		b.next++
	}
	return op, nil
}

// checkAttrs holds the attributes against the op's row: in its order, of which optional ones
// may be missing.
func (op *Op) checkAttrs() error {
	at := 0
	for _, spec := range op.Kind.Attrs {
		switch {
		case at < len(op.Attrs) && op.Attrs[at].Name == spec.Name:
			if !spec.Kind.accepts(op.Attrs[at].Value) {
				return fmt.Errorf("attribute %q is %v", spec.Name, op.Attrs[at].Value)
			}
			at++
		case !spec.Optional:
			return fmt.Errorf("attribute %d is not %q", at+1, spec.Name)
		}
	}
	if at < len(op.Attrs) {
		return fmt.Errorf("%d attributes, want %d", len(op.Attrs), at)
	}
	return nil
}

// check holds an op against its row of the table and returns its result type.
func (op *Op) check() (Type, error) {
	k := op.Kind
	if n := len(op.Args); n > len(k.Params) || n < len(k.Params)-k.Optional {
		return Type{}, fmt.Errorf("%s: %d operands, want %d", k.Name, n, len(k.Params))
	}
	if err := op.checkAttrs(); err != nil {
		return Type{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	t, err := k.Infer(op)
	if err != nil {
		return Type{}, fmt.Errorf("%s: %w", k.Name, err)
	}
	return t, nil
}
