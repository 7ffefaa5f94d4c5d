package main

import (
	"go/token"
	"strings"

	"github.com/dave/jennifer/jen"
)

const (
	vkPath   = "github.com/zincc-dev/zincc/runtime/vulkan/vk"
	peerPath = "github.com/vulkan-go/vulkan"
)

func enumFile(m *model) *jen.File {
	f := newFile(vkPath)
	for _, e := range m.enums {
		name := m.goType(e.cName)
		f.Commentf("%s is %s.", name, e.cName)
		f.Type().Id(name).Id(e.goType)
		if len(e.values) == 0 {
			continue
		}
		f.Const().DefsFunc(func(g *jen.Group) {
			for _, v := range e.values {
				g.Id(m.goConstant(v.name)).Id(name).Op("=").Add(value(e, v))
			}
		})
		if named[e.cName] {
			table := strings.ToLower(name[:1]) + name[1:] + "Names"
			f.Commentf("%s are the C names of the values of %s.", table, name)
			f.Var().Id(table).Op("=").Map(jen.Id(name)).String().Values(jen.DictFunc(func(d jen.Dict) {
				for _, v := range e.values {
					d[jen.Id(m.goConstant(v.name))] = jen.Lit(v.name)
				}
			}))
		}
	}
	return f
}

func value(e *goEnum, v enumerant) jen.Code {
	if n := bit(v.value); strings.HasPrefix(e.goType, "u") && n >= 0 {
		return jen.Lit(1).Op("<<").Lit(n)
	}
	return jen.Lit(int(v.value))
}

func structFile(m *model) *jen.File {
	f := newFile(vkPath)
	for _, h := range m.handles {
		name, kind := m.goType(h.cName), "uint64"
		if h.dispatchable {
			kind = "uintptr"
		}
		f.Commentf("%s is the handle %s.", name, h.cName)
		f.Type().Id(name).Id(kind)
	}
	for _, u := range m.unions {
		name := m.goType(u)
		f.Commentf("%s is the union %s; the meaning of its bits is told beside it.", name, u)
		f.Type().Id(name).Id(unions[u])
	}
	for _, s := range m.structs {
		name := m.goType(s.cName)
		f.Commentf("%s is %s.", name, s.cName)
		if s.sType != "" {
			f.Commentf("Its SType is %s.", m.goConstant(s.sType))
		}
		f.Type().Id(name).StructFunc(func(g *jen.Group) {
			for _, x := range s.fields {
				g.Id(exported(x.cName)).Add(x.goType())
			}
		})
	}
	return f
}

// goType is the Go type of a member or parameter.
func (x *goField) goType() *jen.Statement {
	t := &jen.Statement{}
	if x.length != 0 {
		t = jen.Index(jen.Lit(int(x.length)))
	}
	stars := x.pointers
	if x.base == "" {
		stars-- // void* is unsafe.Pointer
	}
	for range stars {
		t.Op("*")
	}
	if x.base == "" {
		return t.Qual("unsafe", "Pointer")
	}
	return t.Id(x.base)
}

// argument is the parameter as it is handed to the C function.
func (x *goField) argument() jen.Code {
	switch {
	case x.cType == "VkAllocationCallbacks":
		return jen.Lit(0)
	case x.base == "" && x.pointers == 1:
		return jen.Uintptr().Call(jen.Id(x.goName()))
	case x.pointers > 0:
		return jen.Uintptr().Call(jen.Qual("unsafe", "Pointer").Call(jen.Id(x.goName())))
	}
	return jen.Uintptr().Call(jen.Id(x.goName()))
}

func (x *goField) goName() string {
	if token.IsKeyword(x.cName) {
		return x.cName + "_"
	}
	return x.cName
}

func commandFile(m *model) *jen.File {
	f := newFile(vkPath)
	for _, l := range levels {
		var commands []*goCommand
		for _, c := range m.commands {
			if c.level == l.name {
				commands = append(commands, c)
			}
		}
		table := strings.ToLower(l.name) + "Table"
		f.Commentf("%sCommands holds the addresses of the %s-level commands.", l.name, strings.ToLower(l.name))
		f.Type().Id(l.name + "Commands").Struct(
			jen.Id("fn").Index(jen.Len(jen.Id(table))).Uintptr(),
		)
		f.Var().Id(table).Op("=").Index(jen.Op("...")).Id("command").ValuesFunc(func(g *jen.Group) {
			for _, c := range commands {
				row := jen.Dict{jen.Id("name"): jen.Lit(c.cName)}
				if c.extension != "" {
					row[jen.Id("extension")] = jen.Lit(c.extension)
				}
				if c.late {
					row[jen.Id("late")] = jen.True()
				}
				g.Line().Values(row)
			}
			g.Line()
		})
		f.Const().DefsFunc(func(g *jen.Group) {
			for i, c := range commands {
				id := g.Id(c.index())
				if i == 0 {
					id.Op("=").Iota()
				}
			}
		})
		for _, c := range commands {
			if !c.manual {
				f.Add(m.method(c))
			}
		}
	}
	return f
}

// index is the name of the constant that is the command's place in its table.
func (c *goCommand) index() string { return "i" + strings.TrimPrefix(c.cName, "vk") }

func (m *model) method(c *goCommand) jen.Code {
	name := strings.TrimPrefix(c.cName, "vk")
	s := jen.Commentf("%s calls %s.", name, c.cName).Line()
	s.Func().Params(jen.Id("c").Op("*").Id(c.level + "Commands")).Id(name).ParamsFunc(func(g *jen.Group) {
		for _, p := range c.params {
			if p.cType != "VkAllocationCallbacks" {
				g.Id(p.goName()).Add(p.goType())
			}
		}
	})
	table := strings.ToLower(c.level) + "Table"
	call := jen.Id("call").CallFunc(func(g *jen.Group) {
		g.Id("address").Call(jen.Id("c").Dot("fn").Index(jen.Id(c.index())), jen.Op("&").Id(table).Index(jen.Id(c.index())))
		for _, p := range c.params {
			g.Add(p.argument())
		}
	})
	result := m.goType(c.result)
	if result == "" {
		return s.Block(call)
	}
	return s.Id(result).Block(jen.Return(jen.Id(result).Call(call)))
}

// layoutFile lists every generated struct and constant for the test that
// compares them with a C compiler.
func layoutFile(m *model) *jen.File {
	f := newFile(vkPath)
	f.Var().Id("structLayouts").Op("=").Index().Id("structLayout").ValuesFunc(func(g *jen.Group) {
		for _, s := range m.structs {
			g.Line().Values(jen.Lit(s.cName), typeFor(vkPath, m.goType(s.cName)), jen.Index().String().ValuesFunc(func(g *jen.Group) {
				for _, x := range s.fields {
					g.Lit(x.cName)
				}
			}))
		}
		g.Line()
	})
	f.Var().Id("constantValues").Op("=").Index().Id("constantValue").ValuesFunc(func(g *jen.Group) {
		for _, e := range m.enums {
			for _, v := range e.values {
				g.Line().Values(jen.Lit(v.name), jen.Int64().Call(jen.Id(m.goConstant(v.name))))
			}
		}
		g.Line()
	})
	return f
}

// pairFile lists the structs and constants of Vulkan 1.0 beside those of the
// peer binding.
func pairFile(m *model) *jen.File {
	f := newFile(vkPath + "/vkcheck")
	f.ImportName(peerPath, "vulkan")
	f.Var().Id("structPairs").Op("=").Index().Id("structPair").ValuesFunc(func(g *jen.Group) {
		for _, s := range m.structs {
			if s.source == "VK_VERSION_1_0" && !notInPeer[s.cName] {
				name := m.goType(s.cName)
				g.Line().Values(jen.Lit(s.cName), typeFor(vkPath, name), typeFor(peerPath, name))
			}
		}
		g.Line()
	})
	f.Var().Id("constantPairs").Op("=").Index().Id("constantPair").ValuesFunc(func(g *jen.Group) {
		for _, e := range m.enums {
			if m.reg.source[e.cName].name != "VK_VERSION_1_0" {
				continue
			}
			for _, v := range e.values {
				if v.source == "VK_VERSION_1_0" && !notInPeer[v.name] {
					name := m.goConstant(v.name)
					g.Line().Values(jen.Lit(v.name),
						jen.Int64().Call(jen.Qual(vkPath, name)), jen.Int64().Call(jen.Qual(peerPath, name)))
				}
			}
		}
		g.Line()
	})
	return f
}

func typeFor(path, name string) jen.Code {
	return jen.Qual("reflect", "TypeFor").Index(jen.Qual(path, name)).Call()
}
