package gosrc

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// entry is the source of entry i: where its values lie in the arena, and its commands.
func (g *generator) entry(i int) *jen.File {
	e, f := &g.p.Entries[i], newFile()
	c := &commands{generator: g, entry: e, fn: g.p.Program.Func(e.Name), values: map[*ir.Value]string{}}
	c.declareValues(f, g.entryName[i])
	f.Commentf("%s is the command list %s: %d dispatches. Those of one stage may run at once; each", g.entryName[i], e.Name, len(e.Dispatches))
	f.Comment("waits for so many stages as it says.")
	f.Var().Id(g.entryName[i]).Op("=").Add(literal(reflect.ValueOf(*e), func(of reflect.Value, field string) jen.Code {
		switch field {
		case "Logits", "Next":
			return name(g.regions["io"][of.FieldByName(field).String()])
		case "Dispatches":
			return c.dispatches()
		case "Pipeline":
			return g.pipelineName(int(of.FieldByName(field).Int()))
		}
		return nil
	}))
	return f
}

// commands is what the source of one entry is made of.
type commands struct {
	*generator
	entry  *plans.Entry
	fn     *ir.Func
	values map[*ir.Value]string // of the arena -> constant
}

// declareValues declares the offsets of the values that arguments name.
func (c *commands) declareValues(f *jen.File, entry string) {
	var used []*ir.Value
	for i, d := range c.entry.Dispatches {
		for k := range d.Args {
			if v := c.value(i, k); v != nil && !slices.Contains(used, v) {
				used = append(used, v)
			}
		}
	}
	if len(used) == 0 {
		return
	}
	site := map[*ir.Value]string{}
	for _, g := range c.fn.Groups {
		for _, op := range g.Ops {
			if op.Result != nil {
				site[op.Result] = g.Name
			}
		}
	}
	f.Commentf("Where the values of %s lie in the arena.", c.entry.Name)
	f.Const().DefsFunc(func(d *jen.Group) {
		for _, v := range used {
			c.values[v] = c.taken.add(fmt.Sprintf("%s v%d", entry, v.ID))
			d.Id(c.values[v]).Int64().Op("=").Lit(int(v.Offset)).Comment(fmt.Sprintf("%s, %s", v.Type, site[v]))
		}
	})
}

// value is the value of the arena that argument k of dispatch i addresses, or nil.
func (c *commands) value(i, k int) *ir.Value {
	a := &c.entry.Dispatches[i].Args[k]
	if a.Space != ir.Arena.String() || i >= len(c.fn.Groups) || c.fn.Groups[i].Call == nil {
		return nil
	}
	if args := c.fn.Groups[i].Call.Args; k < len(args) && args[k].Class == ir.Arena && args[k].Offset == a.Offset {
		return args[k]
	}
	return nil
}

func (c *commands) dispatches() jen.Code {
	uses := c.fn.Uses()
	return jen.Index().Qual(plansPath, "Dispatch").CustomFunc(lines, func(s *jen.Group) {
		stage := 0
		for i := range c.entry.Dispatches {
			d := &c.entry.Dispatches[i]
			text := jen.Null()
			if i > 0 {
				text.Line()
			}
			if d.Stage != stage {
				stage = d.Stage
				text.Comment(fmt.Sprintf("Stage %d.", stage)).Line()
			}
			for _, line := range c.describe(i, uses) {
				text.Comment(line).Line()
			}
			s.Add(text.Add(body(reflect.ValueOf(*d), c.override(i))))
		}
	})
}

// describe says what dispatch i computes: its ops, with the values that come out.
func (c *commands) describe(i int, uses map[*ir.Value][]*ir.Op) []string {
	d := &c.entry.Dispatches[i]
	group := c.fn.Groups[i]
	var ops, outputs []string
	for _, op := range group.Ops {
		ops = append(ops, op.Kind.Name)
	}
	for _, v := range group.Outputs(uses) {
		outputs = append(outputs, v.Type.String())
	}
	line := strings.Join(ops, ", ")
	if len(outputs) > 0 {
		line += ": " + strings.Join(outputs, ", ")
	}
	list := []string{line}
	if t := d.Cost.Predicted; t != (plans.Times{}) {
		list = append(list, fmt.Sprintf("%.1f us predicted; %s", 1e6*float64(max(t.Bytes, t.Operations)+t.Stage), printable.Line(d.Why)))
	}
	return list
}

// override names what dispatch i refers to.
func (c *commands) override(i int) override {
	return func(of reflect.Value, field string) jen.Code {
		switch field {
		case "Pipeline":
			return c.pipelineName(int(of.FieldByName(field).Int()))
		case "Args":
			if of.FieldByName(field).Len() > 0 {
				return c.args(i)
			}
		}
		return nil
	}
}

// args is the arguments of dispatch i.
func (c *commands) args(i int) jen.Code {
	return jen.Index().Qual(plansPath, "Arg").CustomFunc(lines, func(s *jen.Group) {
		for k, a := range c.entry.Dispatches[i].Args {
			s.Add(body(reflect.ValueOf(a), func(_ reflect.Value, field string) jen.Code {
				switch field {
				case "Space":
					return name(c.spaces[a.Space])
				case "Region":
					return name(c.regions[a.Space][a.Region])
				case "Offset":
					return name(c.values[c.value(i, k)])
				}
				return nil
			}))
		}
	})
}

// name is the identifier, or nil if there is none.
func name(id string) jen.Code {
	if id == "" {
		return nil
	}
	return jen.Id(id)
}

// pipelineName is the constant of a pipeline, or nil for -1: none.
func (g *generator) pipelineName(i int) jen.Code {
	if i < 0 || i >= len(g.pipeline) {
		return nil
	}
	return jen.Id(g.pipeline[i])
}
