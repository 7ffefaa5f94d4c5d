package rdna

type (
	cmov          struct{}
	cmovK         struct{}
	cselect       struct{}
	saveExec      func(a, exec uint64) uint64
	getPC         struct{}
	setPC         struct{}
	getReg        struct{}
	setReg        struct{}
	scalarConvert struct{}
	branch        func(w *wave) bool
	endProgram    struct{}
	modeOp        struct{ at int }
)

// value reads a scalar operand.
func (w *wave) value(in *Inst, i int) uint64 {
	o := &in.src[i]
	x := o.value
	if o.code != constant {
		x = w.scalar(o.code, o.t.registers(w.lanes))
	}
	if o.t == f32 && w.flush32 {
		x = flush(x)
	}
	return x
}

// set writes the scalar result.
func (w *wave) set(in *Inst, x uint64) {
	if in.dst.t == f32 && w.flush32 {
		x = flush(x)
	}
	w.setScalar(in.dst.code, in.dst.t.registers(w.lanes), x)
}

// scalarRunner makes a runner of a function of scalars. The operands of SOPK are its register and its 16 bits.
func scalarRunner(fn any) func(w *wave, in *Inst) {
	second := func(w *wave, in *Inst, i int) uint64 {
		if i < len(in.src) {
			return w.value(in, i)
		}
		return uint64(uint32(in.imm))
	}
	switch f := fn.(type) {
	case scalar1:
		return func(w *wave, in *Inst) { w.set(in, f(second(w, in, 0))) }
	case scalar1scc:
		return func(w *wave, in *Inst) { x, c := f(w.value(in, 0)); w.set(in, x); w.scc = c }
	case scalar2:
		return func(w *wave, in *Inst) { w.set(in, f(w.value(in, 0), second(w, in, 1))) }
	case scalar2scc:
		return func(w *wave, in *Inst) { x, c := f(w.value(in, 0), second(w, in, 1)); w.set(in, x); w.scc = c }
	case scalarIn:
		return func(w *wave, in *Inst) { x, c := f(w.value(in, 0), w.value(in, 1), w.scc); w.set(in, x); w.scc = c }
	case scalarCmp:
		return func(w *wave, in *Inst) { w.scc = f(w.value(in, 0), second(w, in, 1)) }
	case laneCmp:
		return func(w *wave, in *Inst) { w.scc = f(w.value(in, 0), second(w, in, 1)) }
	case laneCmpF:
		return func(w *wave, in *Inst) {
			w.scc = f(number(w.value(in, 0), in.src[0].t), number(w.value(in, 1), in.src[1].t))
		}
	case scalarF1:
		return func(w *wave, in *Inst) { w.set(in, fbits(f(fval(w.value(in, 0))))) }
	case scalarF2:
		return func(w *wave, in *Inst) { w.set(in, fbits(f(fval(w.value(in, 0)), fval(w.value(in, 1))))) }
	case scalarF3:
		return func(w *wave, in *Inst) {
			w.set(in, fbits(f(fval(w.value(in, 0)), fval(w.value(in, 1)), fval(w.value(in, 2)))))
		}
	case laneH2:
		return func(w *wave, in *Inst) {
			w.set(in, w.encode(f(number(w.value(in, 0), f16t), number(w.value(in, 1), f16t)), f16t))
		}
	case laneH3:
		return func(w *wave, in *Inst) {
			w.set(in, w.encode(f(number(w.value(in, 0), f16t), number(w.value(in, 1), f16t), number(w.value(in, 2), f16t)), f16t))
		}
	}
	return nil
}

func (cmov) run(w *wave, in *Inst) {
	if w.scc {
		w.set(in, w.value(in, 0))
	}
}

func (cmovK) run(w *wave, in *Inst) {
	if w.scc {
		w.set(in, uint64(uint32(in.imm)))
	}
}

func (cselect) run(w *wave, in *Inst) {
	if w.scc {
		w.set(in, w.value(in, 0))
	} else {
		w.set(in, w.value(in, 1))
	}
}

func (f saveExec) run(w *wave, in *Inst) {
	a, old := w.value(in, 0), w.exec
	w.exec = f(a, old) & w.all
	w.set(in, old)
	w.scc = w.exec != 0
}

func (getPC) run(w *wave, in *Inst) { w.set(in, codeBase+4*uint64(in.PC+len(in.words))) }

func (setPC) run(w *wave, in *Inst) {
	at := w.value(in, 0) - codeBase
	if at%4 != 0 || at/4 >= uint64(len(w.prog.insts)) || w.prog.insts[at/4] == nil {
		w.fail(in, Unsupported, "a jump to where no instruction was decoded")
		return
	}
	w.pc = int(at / 4)
}

// scalarConvert converts between float16 and float32.
func (scalarConvert) run(w *wave, in *Inst) {
	w.set(in, w.encode(number(w.value(in, 0), in.src[0].t), in.dst.t))
}

func (f branch) run(w *wave, in *Inst) {
	if f(w) {
		w.pc = in.target()
	}
}

func (endProgram) run(w *wave, in *Inst) { w.ended = true }
func (hint) run(w *wave, in *Inst)       {}

// modeRegister is the number of the register that says how to round.
const modeRegister = 1

// A field of a hardware register: its number, its first bit, its width.
func (in *Inst) hardware() (reg, at, n int) {
	k := int(uint16(in.imm))
	return k & 63, k >> 6 & 31, k>>11 + 1
}

func (getReg) run(w *wave, in *Inst) {
	reg, at, n := in.hardware()
	if reg != modeRegister {
		w.fail(in, Unsupported, "hardware register %d", reg)
		return
	}
	w.set(in, uint64(w.mode>>at)&(1<<n-1))
}

func (setReg) run(w *wave, in *Inst) {
	reg, at, n := in.hardware()
	if reg != modeRegister {
		w.fail(in, Unsupported, "hardware register %d", reg)
		return
	}
	field := uint32(1<<n-1) << at
	w.setMode(w.mode&^field | uint32(w.value(in, 0))<<at&field)
}

func (o modeOp) run(w *wave, in *Inst) {
	w.setMode(w.mode&^(15<<o.at) | uint32(in.imm)&15<<o.at)
}

func (unsupported) run(w *wave, in *Inst) { w.fail(in, Unsupported, "not modelled") }
