package codegen

import (
	"fmt"
	"strings"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/target"
	"github.com/zincc-dev/zincc/internal/table"
	"github.com/zincc-dev/zincc/plans"
)

// Contracts returns a table for each kernel at the call sites whose names contain part, in one entry
// or, if entry is empty, in all. A table lists the kernel's signature as the family declares it. It fails for
// plans that this compiler cannot emit again (see Reproducible); host plans have no tables.
func Contracts(p *plans.Plan, entry, part string) ([]*table.Table, error) {
	if err := Reproducible(p); err != nil {
		return nil, err
	}
	t, err := target.OfPlan(&p.Header)
	if err != nil || t.IsHost() {
		return nil, err
	}
	var tables []*table.Table
	seen := map[string]bool{}
	for _, f := range p.Program.Funcs {
		if entry != "" && f.Name != entry {
			continue
		}
		uses := f.Uses()
		for _, g := range f.Groups {
			if !strings.Contains(g.Name, part) || seen[g.Call.Kernel] {
				continue
			}
			seen[g.Call.Kernel] = true
			c, err := findCandidate(p.Program, f, g, uses, t)
			if err != nil {
				return nil, err
			}
			tables = append(tables, contract(fmt.Sprintf("what the kernel takes at %s %s", f.Name, g.Name), c))
		}
	}
	return tables, nil
}

// contract lists what a kernel takes, and what a site binds to it.
func contract(title string, c *kernels.Candidate) *table.Table {
	t := &table.Table{Title: title, Columns: []string{"takes", "name", "access", "value", "which is"}}
	for _, o := range c.Operands {
		what := o.Value.Class.String()
		if o.Value.Name != "" {
			what += " " + o.Value.Name
		}
		t.Add("argument", o.Name, o.Access.String(), o.Value.Type.String(), what)
	}
	for i, k := range c.Consts {
		_, value, _ := strings.Cut(k.String(), "=")
		t.Add("constant", k.Name, "", value, c.Units[i])
	}
	return t
}
