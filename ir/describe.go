package ir

import (
	"fmt"
	"strings"
)

// Description is a program for JSON: what Print shows, as data.
type Description struct {
	Stage, Arch, Name, Path, Source, Target string
	Ctx, Slots, Layers                      int
	Globals                                 []ValueDescription
	Funcs                                   []FuncDescription
}

// FuncDescription is a Func for JSON.
type FuncDescription struct {
	Name      string
	Rows      int
	Sequences string
	Run       int
	Class     string
	Part      int `json:",omitempty"`
	Groups    []GroupDescription
}

// GroupDescription is a Group for JSON.
type GroupDescription struct {
	Name string `json:",omitempty"`
	Order
	Candidate string   `json:",omitempty"`
	Kernel    string   `json:",omitempty"`
	Consts    []Const  `json:",omitempty"`
	Grid      []int    `json:",omitempty"`
	Wave      int      `json:",omitempty"`
	Args      []string `json:",omitempty"`
	Form      *Form    `json:",omitempty"`
	Overlap   *Overlap `json:",omitempty"`
	Why       string   `json:",omitempty"`
	Ops       []OpDescription
}

// OpDescription is an Op for JSON.
type OpDescription struct {
	Op     string
	Args   []string
	Attrs  map[string]any    `json:",omitempty"`
	Result *ValueDescription `json:",omitempty"`
}

// ValueDescription is a Value for JSON.
type ValueDescription struct {
	Value  string
	Class  string
	Type   string
	Attrs  map[string]any `json:",omitempty"`
	Layout string         `json:",omitempty"` // of a weight
	Offset *int64         `json:",omitempty"` // in the arena
}

// Describe returns p as data.
func Describe(p *Program) *Description {
	d := &Description{Stage: p.Stage.String(), Arch: p.Arch, Name: p.Name, Path: p.Path, Source: p.Source, Target: p.Target,
		Ctx: p.Ctx, Slots: p.Slots, Layers: p.Layers}
	for _, g := range p.Globals {
		d.Globals = append(d.Globals, describeValue(g))
	}
	for _, f := range p.Funcs {
		fd := FuncDescription{Name: f.Name, Rows: f.Rows, Sequences: f.Sequences.String(), Run: f.Run, Class: f.Class.String(), Part: f.Part}
		for _, g := range f.Groups {
			fd.Groups = append(fd.Groups, describeGroup(g))
		}
		d.Funcs = append(d.Funcs, fd)
	}
	return d
}

func describeGroup(g *Group) GroupDescription {
	d := GroupDescription{Name: g.Name, Order: g.Order}
	if c := g.Call; c != nil {
		d.Candidate, d.Kernel, d.Consts, d.Grid, d.Wave, d.Args, d.Why = c.Candidate, c.Kernel, c.Consts, c.Grid[:], c.Wave, valueNames(c.Args), c.Why
		if c.Form != (Form{}) {
			d.Form = &c.Form
		}
		if !c.Overlap.none() {
			d.Overlap = &c.Overlap
		}
	}
	for _, op := range g.Ops {
		od := OpDescription{Op: op.Kind.Name, Args: valueNames(op.Args), Attrs: describeAttrs(op.Attrs)}
		if op.Result != nil {
			r := describeValue(op.Result)
			od.Result = &r
		}
		d.Ops = append(d.Ops, od)
	}
	return d
}

func describeValue(v *Value) ValueDescription {
	d := ValueDescription{Value: v.String(), Class: v.Class.String(), Type: v.Type.String(), Layout: v.Layout, Attrs: describeAttrs(v.Attrs)}
	if v.Offset >= 0 {
		d.Offset = &v.Offset
	}
	return d
}

func describeAttrs(attrs Attrs) map[string]any {
	if len(attrs) == 0 {
		return nil
	}
	m := map[string]any{}
	for _, a := range attrs {
		m[a.Name] = a.Value
	}
	return m
}

func valueNames(vs []*Value) []string {
	names := make([]string, len(vs))
	for i, v := range vs {
		names[i] = v.String()
	}
	return names
}

// Dot returns p's functions as a graph in the language of Graphviz: a node per
// group, an edge per value that goes from one to another.
func Dot(p *Program) string {
	var b strings.Builder
	b.WriteString("digraph zir {\n  node [shape=box, fontname=monospace]\n")
	for fi, f := range p.Funcs {
		fmt.Fprintf(&b, "  subgraph cluster_%d {\n    label=%q\n", fi, f.Name)
		made := map[*Value]int{}
		for gi, g := range f.Groups {
			var lines []string
			if g.Name != "" {
				lines = append(lines, g.Name+":")
			}
			for _, op := range g.Ops {
				lines = append(lines, op.Kind.Name)
			}
			fmt.Fprintf(&b, "    n%d_%d [label=%q]\n", fi, gi, strings.Join(lines, "\n"))
			for _, v := range g.Inputs() {
				if from, ok := made[v]; ok {
					fmt.Fprintf(&b, "    n%d_%d -> n%d_%d [label=%q]\n", fi, from, fi, gi, v.String()+" "+v.Type.String())
				}
			}
			for _, op := range g.Ops {
				if op.Result != nil {
					made[op.Result] = gi
				}
				for _, i := range op.Kind.Writes {
					made[op.Args[i]] = gi
				}
			}
		}
		b.WriteString("  }\n")
	}
	b.WriteString("}\n")
	return b.String()
}
