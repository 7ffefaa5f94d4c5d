package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// Print returns p as .zir text; Parse reads it back to an equal program.
func Print(p *Program) string {
	var b strings.Builder
	fmt.Fprintf(&b, "zir 1\nstage %s\n", p.Stage)
	fmt.Fprintf(&b, "model arch=%q name=%q path=%q source=%q target=%q ctx=%d slots=%d layers=%d\n",
		p.Arch, p.Name, p.Path, p.Source, p.Target, p.Ctx, p.Slots, p.Layers)
	for i, g := range p.Globals {
		if i == 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "%s %s%s : %s", g.Class, globalName(g.Name), g.Attrs, g.Type)
		if g.Layout != "" {
			fmt.Fprintf(&b, " as %s", g.Layout)
		}
		b.WriteByte('\n')
	}
	for _, f := range p.Funcs {
		part := ""
		if f.Part > 0 {
			part = fmt.Sprintf(" part=%d", f.Part)
		}
		fmt.Fprintf(&b, "\nfunc %q rows=%d sequences=%s run=%d class=%s%s {\n", f.Name, f.Rows, f.Sequences, f.Run, f.Class, part)
		for _, g := range f.Groups {
			printGroup(&b, g)
		}
		b.WriteString("}\n")
	}
	return b.String()
}

func printGroup(b *strings.Builder, g *Group) {
	if g.Name == "" && g.Call == nil && g.Order == (Order{}) && len(g.Ops) == 1 {
		printOp(b, "  ", g.Ops[0])
		return
	}
	fmt.Fprintf(b, "  group %q %s {\n", g.Name, g.Order)
	if c := g.Call; c != nil {
		fmt.Fprintf(b, "    call %q kernel=%q wave=%d grid=[%d, %d, %d] const={", c.Candidate, c.Kernel, c.Wave, c.Grid[0], c.Grid[1], c.Grid[2])
		for i, k := range c.Consts {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(k.String())
		}
		b.WriteString("} args=[")
		for i, a := range c.Args {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.String())
		}
		b.WriteByte(']')
		if c.Sums != "" {
			fmt.Fprintf(b, " sums=%q", c.Sums)
		}
		printDecided(b, c)
		fmt.Fprintf(b, " why=%q\n", c.Why)
	}
	for _, op := range g.Ops {
		printOp(b, "    ", op)
	}
	b.WriteString("  }\n")
}

// printDecided writes form and overlap of a call, as far as there is something to say.
func printDecided(b *strings.Builder, c *Call) {
	for _, f := range c.Form.fields() {
		if *f.n != 0 {
			fmt.Fprintf(b, " %s=%d", f.name, *f.n)
		}
	}
	o := c.Overlap
	if o.Waits != NotEarly {
		fmt.Fprintf(b, " overlap=%s", o.Waits)
	}
	if len(o.Loads) > 0 {
		fmt.Fprintf(b, " loads=[%s]", strings.Trim(strings.Join(strings.Fields(fmt.Sprint(o.Loads)), ", "), "[]"))
	}
	if o.LateTrigger {
		b.WriteString(" trigger=late")
	}
}

// String returns the op as a line of .zir text.
func (op *Op) String() string {
	var b strings.Builder
	printOp(&b, "", op)
	return strings.TrimSuffix(b.String(), "\n")
}

func printOp(b *strings.Builder, indent string, op *Op) {
	b.WriteString(indent)
	if op.Result != nil {
		fmt.Fprintf(b, "%s = ", op.Result)
	}
	b.WriteString(op.Kind.Name)
	for i, a := range op.Args {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte(' ')
		b.WriteString(a.String())
	}
	b.WriteString(op.Attrs.String())
	if r := op.Result; r != nil {
		b.WriteString(" : ")
		if r.Class != Arena {
			b.WriteString(r.Class.String() + " ")
		}
		b.WriteString(r.Type.String())
		if r.Offset >= 0 {
			fmt.Fprintf(b, " at %d", r.Offset)
		}
	}
	b.WriteByte('\n')
}

// String returns the name that .zir text uses: "%7" or "@name".
func (v *Value) String() string {
	if v.IsGlobal() {
		return globalName(v.Name)
	}
	return "%" + strconv.Itoa(v.ID)
}

func globalName(name string) string {
	for i := 0; i < len(name); i++ {
		if !isWord(name[i]) {
			return "@" + strconv.Quote(name)
		}
	}
	return "@" + name
}

// isWord reports whether c may stand in an unquoted name.
func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '/' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
