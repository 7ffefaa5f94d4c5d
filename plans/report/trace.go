package report

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// Pass is the title of a column.
type Pass struct {
	Name, Stage, Doc string
}

// Trace is a program after each of the passes that changed it.
type Trace struct {
	steps []step
}

type step struct {
	pass  Pass
	funcs map[string]*column
}

// Add records p as it is after the pass.
func (t *Trace) Add(pass Pass, p *ir.Program) {
	s := step{pass, map[string]*column{}}
	for _, f := range p.Funcs {
		s.funcs[f.Name] = newColumn(f)
	}
	t.steps = append(t.steps, s)
}

// column is a function after a pass.
type column struct {
	groups []shown
	sum    [sha256.Size]byte         // of all its text
	layers map[int][sha256.Size]byte // of a layer's text but for what tells layers apart
}

// shown is a group as text.
type shown struct {
	layer int
	order ir.Order
	site  string
	call  *Call
	ops   []string
}

// The places of groups that are of no layer.
const (
	before = -1
	behind = -2
)

// Call is the kernel chosen for a group.
type Call struct {
	Candidate string
	Kernel    string
	Consts    string
	Wave      int
	Grid      [3]int
	Why       string
}

func newColumn(f *ir.Func) *column {
	c := &column{layers: map[int][sha256.Size]byte{}}
	all := sha256.New()
	layers := map[int]*folded{}
	at := before
	for _, g := range f.Groups {
		at = layerOf(g, at)
		one := layers[at]
		if one == nil {
			one = newFolded(at)
			layers[at] = one
		}
		s := shown{layer: at, order: g.Order, site: g.Name, call: newCall(g.Call)}
		fmt.Fprintf(all, "%q %s %v\n", g.Name, g.Order, s.call)
		fmt.Fprintf(one.sum, "%q %v\n", one.name(g.Name), s.call)
		for _, op := range g.Ops {
			text := op.String()
			s.ops = append(s.ops, text)
			io.WriteString(all, text+"\n")
			one.op(op)
		}
		c.groups = append(c.groups, s)
	}
	for layer, one := range layers {
		c.layers[layer] = [sha256.Size]byte(one.sum.Sum(nil))
	}
	all.Sum(c.sum[:0])
	return c
}

func newCall(k *ir.Call) *Call {
	if k == nil {
		return nil
	}
	var consts []string
	for _, c := range k.Consts {
		consts = append(consts, c.String())
	}
	return &Call{Candidate: k.Name(), Kernel: k.Kernel, Consts: strings.Join(consts, " "), Wave: k.Wave, Grid: k.Grid, Why: k.Why}
}

// layerOf is the layer whose tensors the group reads or writes, else that of the
// group before: at.
func layerOf(g *ir.Group, at int) int {
	for _, op := range g.Ops {
		for _, v := range op.Args {
			if !v.IsGlobal() {
				continue
			}
			var layer int
			if _, err := fmt.Sscanf(v.Name, "blk.%d.", &layer); err == nil && layer >= 0 {
				return layer
			}
			if v.Class == ir.Weight && at >= 0 {
				return behind
			}
		}
	}
	return at
}

// folded is the text of a layer without what tells it from another: its number, the
// numbers of values and their offsets.
type folded struct {
	layer string
	sum   hash.Hash
	ids   map[*ir.Value]int
}

func newFolded(layer int) *folded {
	return &folded{fmt.Sprintf("blk.%d.", layer), sha256.New(), map[*ir.Value]int{}}
}

func (f *folded) name(s string) string {
	if rest, ok := strings.CutPrefix(s, f.layer); ok {
		return "blk.*." + rest
	}
	return s
}

func (f *folded) op(op *ir.Op) {
	io.WriteString(f.sum, op.Kind.Name+op.Attrs.String())
	for _, v := range op.Args {
		f.value(v)
	}
	if op.Result != nil {
		f.value(op.Result)
	}
	io.WriteString(f.sum, "\n")
}

func (f *folded) value(v *ir.Value) {
	name := f.name(v.Name)
	if !v.IsGlobal() {
		id, ok := f.ids[v]
		if !ok {
			id = len(f.ids)
			f.ids[v] = id
		}
		name = fmt.Sprint(id)
	}
	io.WriteString(f.sum, " "+name+" "+v.Type.String())
}
