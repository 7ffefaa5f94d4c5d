package gosrc

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/plans"
)

// generator knows what everything is called.
type generator struct {
	p         *plans.Plan
	taken     names
	spaces    map[string]string            // space -> constant
	regions   map[string]map[string]string // space, region -> constant
	pipeline  []string                     // by index
	entryName []string                     // by index
}

func newGenerator(p *plans.Plan) *generator {
	g := &generator{p: p, taken: names{}, spaces: map[string]string{}, regions: map[string]map[string]string{}}
	for _, reserved := range []string{"main", "files", "model", "pipelines", "weights", "embedded", "plans", "ir", "standalone", "embed", "math", "init", "string", "int64"} {
		g.taken[reserved] = true
	}
	for _, c := range []ir.Class{ir.Arena, ir.Weight, ir.Table, ir.KV, ir.State, ir.Step, ir.IO} {
		g.spaces[c.String()] = g.taken.add(c.String())
	}
	for _, w := range p.Weights {
		g.region("weight", w.Name, w.Name)
	}
	m := &p.Memory
	for _, s := range []struct {
		space   string
		regions []plans.Region
	}{{"kv", m.KV}, {"state", m.State}, {"table", m.Tables}, {"step", m.Step}, {"io", m.IO}} {
		for _, r := range s.regions {
			g.region(s.space, r.Name, s.space+" "+strings.ReplaceAll(r.Name, ":%", " v"))
		}
	}
	for i, x := range p.Pipelines {
		// A kernel's name begins with what it is; the numbers of its shape follow.
		name, _, _ := strings.Cut(p.Modules[x.Module].Name, "=")
		if i := strings.LastIndexByte(name, ' '); i > 0 && strings.Contains(p.Modules[x.Module].Name, "=") {
			name = name[:i]
		}
		g.pipeline = append(g.pipeline, g.taken.add(fmt.Sprintf("%s p%d", name, i)))
	}
	for _, e := range p.Entries {
		g.entryName = append(g.entryName, g.taken.add(e.Name))
	}
	return g
}

func (g *generator) region(space, name, text string) {
	if g.regions[space] == nil {
		g.regions[space] = map[string]string{}
	}
	g.regions[space][name] = g.taken.add(text)
}

func newFile() *jen.File {
	f := jen.NewFile("main")
	f.HeaderComment(header)
	for _, p := range []string{plansPath, irPath, standalonePath} {
		f.ImportName(p, path.Base(p))
	}
	return f
}

// plain overrides nothing.
func plain(reflect.Value, string) jen.Code { return nil }

func (g *generator) main() *jen.File {
	h := &g.p.Header
	f := newFile()
	f.PackageComment(fmt.Sprintf("Command %s continues texts: the model %s, compiled for %s by %s.", g.commandName(), printable.Name(h.Model.Name), printable.Name(h.Target), printable.Name(h.Compiler)))
	if g.p.Embedded == nil {
		f.PackageComment("Its weights come from the model file.")
	}
	f.Func().Id("main").Params().Block(jen.Qual(standalonePath, "Main").Call(jen.Op("&").Id("model")))
	return f
}

func (g *generator) commandName() string {
	if w := words(printable.Name(g.p.Header.Model.Name)); len(w) > 0 {
		return strings.ToLower(strings.Join(w, "-"))
	}
	return "model"
}

func (g *generator) plan() *jen.File {
	f := newFile()
	f.Comment("model is the plan: what is not here is in the files that are embedded.")
	f.Var().Id("model").Op("=").Qual(standalonePath, "Model").Custom(lines,
		jen.Id("Plan").Op(":").Qual(plansPath, "Plan").CustomFunc(lines, func(s *jen.Group) {
			s.Id("Header").Op(":").Add(literal(reflect.ValueOf(g.p.Header), plain))
			s.Id("Require").Op(":").Add(literal(reflect.ValueOf(g.p.Require), plain))
			s.Id("Pipelines").Op(":").Id("pipelines").Index(jen.Op(":"))
			s.Id("Memory").Op(":").Id("memory")
			s.Id("Weights").Op(":").Id("weights")
			s.Id("Entries").Op(":").Index().Qual(plansPath, "Entry").CustomFunc(lines, func(s *jen.Group) {
				for _, name := range g.entryName {
					s.Id(name)
				}
			})
		}),
		jen.Id("Kernels").Op(":").Index().Qual(standalonePath, "Kernel").CustomFunc(lines, func(s *jen.Group) {
			for i, m := range g.p.Modules {
				s.Values(jen.Id("Name").Op(":").Lit(m.Name), jen.Id("Format").Op(":").Lit(m.Format),
					jen.Id("Interface").Op(":").Add(literal(reflect.ValueOf(m.Interface), plain)), jen.Id("File").Op(":").Lit(g.moduleFile(i)))
			}
		}),
		jen.Id("Program").Op(":").Lit(ProgramFile),
		jen.Id("Vocab").Op(":").Lit(vocabFile),
		jen.Id("Files").Op(":").Id("files"),
		g.embedded(),
	)
	return f
}

func (g *generator) embedded() jen.Code {
	if g.p.Embedded == nil {
		return jen.Null()
	}
	return jen.Id("Weights").Op(":").Id("embedded")
}

// files declares what is embedded.
func (g *generator) files() *jen.File {
	f := newFile()
	list := []string{ProgramFile, vocabFile}
	text := "files holds the op program behind the dispatches and the vocabulary."
	if len(g.p.Modules) > 0 {
		list = append([]string{kernelDir}, list...)
		text = "files holds the kernels, the op program behind the dispatches and the vocabulary."
	}
	f.Comment(text).Line().Comment("//").Line().Comment("//go:embed " + strings.Join(list, " "))
	f.Var().Id("files").Qual("embed", "FS")
	if g.p.Embedded != nil {
		f.Comment("embedded holds the weights as they are in the GGUF.").Line().Comment("//").Line().Comment("//go:embed " + weightsFile)
		f.Var().Id("embedded").Index().Byte()
	}
	return f
}

func (g *generator) pipelines() *jen.File {
	f := newFile()
	p := g.p.Pipelines
	if len(p) > 0 {
		f.Comment("The pipelines, by what dispatches call them.")
		f.Const().DefsFunc(func(d *jen.Group) {
			for i, name := range g.pipeline {
				if i == 0 {
					d.Id(name).Int().Op("=").Iota()
				} else {
					d.Id(name)
				}
			}
		})
	}
	f.Comment("pipelines are kernels with their specialization constants.")
	f.Var().Id("pipelines").Op("=").Index(jen.Op("...")).Qual(plansPath, "Pipeline").CustomFunc(lines, func(s *jen.Group) {
		for i := range p {
			s.Comment("Kernel " + printable.Line(g.p.Modules[p[i].Module].Name)).Line().Id(g.pipeline[i]).Op(":").Add(body(reflect.ValueOf(p[i]), plain))
		}
	})
	return f
}

func (g *generator) weights() *jen.File {
	f := newFile()
	g.constants(f, "The weights, by what arguments call them.", "weight", len(g.p.Weights), func(i int) (string, string) {
		w := &g.p.Weights[i]
		return w.Name, fmt.Sprintf("%s%d", w.DType, w.Shape)
	})
	f.Comment("weights says where each lies in the model file and how it is laid out on the device.")
	f.Var().Id("weights").Op("=").Index().Qual(plansPath, "Weight").CustomFunc(lines, func(s *jen.Group) {
		for i := range g.p.Weights {
			s.Add(body(reflect.ValueOf(g.p.Weights[i]), func(of reflect.Value, field string) jen.Code {
				if field == "Name" {
					return jen.Id(g.regions["weight"][of.FieldByName(field).String()])
				}
				return nil
			}))
		}
	})
	return f
}

// constants declares the names of n regions of a space.
func (g *generator) constants(f *jen.File, title, space string, n int, of func(i int) (name, comment string)) {
	if n == 0 {
		return
	}
	f.Comment(title)
	f.Const().DefsFunc(func(d *jen.Group) {
		for i := range n {
			name, comment := of(i)
			s := d.Id(g.regions[space][name]).String().Op("=").Lit(name)
			if comment != "" {
				s.Comment(comment)
			}
		}
	})
}

func (g *generator) memory() *jen.File {
	f := newFile()
	f.Comment("The address spaces.")
	f.Const().DefsFunc(func(d *jen.Group) {
		for _, c := range []ir.Class{ir.Arena, ir.Weight, ir.Table, ir.KV, ir.State, ir.Step, ir.IO} {
			d.Id(g.spaces[c.String()]).String().Op("=").Lit(c.String())
		}
	})
	m := &g.p.Memory
	region := func(list []plans.Region) func(i int) (string, string) {
		return func(i int) (string, string) { return list[i].Name, fmt.Sprintf("%d bytes", list[i].Bytes) }
	}
	g.constants(f, "The caches of keys and values.", "kv", len(m.KV), region(m.KV))
	g.constants(f, "The recurrent states.", "state", len(m.State), region(m.State))
	g.constants(f, "The tables that are computed at load.", "table", len(m.Tables), region(m.Tables))
	g.constants(f, "The step block: what changes from one step to the next.", "step", len(m.Step), region(m.Step))
	g.constants(f, "What the host reads.", "io", len(m.IO), region(m.IO))
	spaces := map[string]string{"KV": "kv", "State": "state", "Tables": "table", "Step": "step", "IO": "io"}
	f.Comment("memory is the size of every buffer but the weights, in bytes.")
	f.Var().Id("memory").Op("=").Add(literal(reflect.ValueOf(*m), func(of reflect.Value, field string) jen.Code {
		if space, ok := spaces[field]; ok && of.Type() == reflect.TypeFor[plans.Memory]() && of.FieldByName(field).Len() > 0 {
			return g.regionList(of.FieldByName(field), space)
		}
		return nil
	}))
	return f
}

func (g *generator) regionList(list reflect.Value, space string) jen.Code {
	return literal(list, func(of reflect.Value, field string) jen.Code {
		if field == "Name" {
			return jen.Id(g.regions[space][of.FieldByName(field).String()])
		}
		return nil
	})
}
