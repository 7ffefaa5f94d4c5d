package plans

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
)

// Module is the code of a kernel. Where the format leaves specialization constants open, one
// module serves many pipelines.
type Module struct {
	Name      string // of the kernel
	Format    string // row of Formats
	Bytes     []byte
	Interface Interface
}

// Interface is what a module needs from whoever loads it.
type Interface struct {
	Entry string // name of the entry point
	Args  int    // addresses that it takes
	Open  []OpenConst
	// Workgroup and Shared are the invocations and the bytes of shared memory of a workgroup,
	// if the code fixes them; 0 if constants do.
	Workgroup, Shared int
}

// OpenConst is a specialization constant whose value comes from a pipeline.
type OpenConst struct {
	ID   uint32
	Name string
}

// Format is a format of code.
type Format struct {
	Name string
	Doc  string // for people
	Ext  string // of files that hold it, with the dot
	// Open: modules leave specialization constants open. Otherwise the code contains their values, and a
	// pipeline repeats them for people.
	Open bool
	// valid returns an error for bytes of another format; it does not read all of them.
	valid func(code []byte) error
}

// SPIRV is the format of code that Vulkan drivers compile.
const SPIRV = "spirv"

// Formats are the formats of modules. Package plans/modules reads them.
var Formats = []Format{
	{Name: SPIRV, Doc: "SPIR-V", Ext: ".spv", Open: true, valid: validSPIRV},
	{Name: "elf-x86-64", Doc: "machine code of x86-64", Ext: ".o", Open: true, valid: validObject(elf.EM_X86_64)},
	{Name: "elf-aarch64", Doc: "machine code of arm64", Ext: ".o", Open: true, valid: validObject(elf.EM_AARCH64)},
	{Name: PTX, Doc: "PTX", Ext: ".ptx", valid: validPTX},
}

// FormatOf returns the row of a name. The error names the formats that are known.
func FormatOf(name string) (*Format, error) {
	i := slices.IndexFunc(Formats, func(f Format) bool { return f.Name == name })
	if i < 0 {
		var known []string
		for _, f := range Formats {
			known = append(known, f.Name)
		}
		return nil, fmt.Errorf("code in unknown format %q; this program reads %s", name, strings.Join(known, ", "))
	}
	return &Formats[i], nil
}

// validSPIRV looks at the header of a module (specification, section 2.3): whole words, the first
// of which is the magic number.
func validSPIRV(code []byte) error {
	const magic, header = 0x07230203, 5 * 4
	if len(code) < header || len(code)%4 != 0 || le.Uint32(code) != magic {
		return fmt.Errorf("not SPIR-V")
	}
	return nil
}

func validateModules(p *Plan) error {
	type identity struct {
		name string
		sum  uint32
	}
	seen := map[identity]bool{}
	for i, m := range p.Modules {
		id := identity{m.Name, checksum(m.Bytes)}
		if m.Name == "" || seen[id] {
			return fmt.Errorf("module %d %q: empty or repeated name", i, m.Name)
		}
		seen[id] = true
		if err := m.Validate(); err != nil {
			return fmt.Errorf("module %d %q: %w", i, m.Name, err)
		}
	}
	return nil
}

// Validate returns an error for an unknown format, for code that is clearly of another one, and for an
// interface out of range.
func (m *Module) Validate() error {
	f, err := FormatOf(m.Format)
	if err == nil {
		err = f.valid(m.Bytes)
	}
	if err == nil {
		err = m.Interface.valid(f)
	}
	return err
}

func (in *Interface) valid(f *Format) error {
	if in.Args < 0 || in.Args > maxArgs || in.Workgroup < 0 || in.Workgroup > maxWorkgroup || in.Shared < 0 || in.Shared > maxShared {
		return fmt.Errorf("interface: %d arguments, workgroup of %d or %d bytes of shared memory out of range", in.Args, in.Workgroup, in.Shared)
	}
	if !f.Open && len(in.Open) > 0 {
		return fmt.Errorf("interface: %d open constants in %s", len(in.Open), f.Doc)
	}
	for i, k := range in.Open {
		if i > 0 && k.ID <= in.Open[i-1].ID {
			return fmt.Errorf("interface: constant id %d after %d", k.ID, in.Open[i-1].ID)
		}
	}
	return nil
}

// checkModules holds the interfaces of modules against the pipelines and dispatches that use them.
// Whether the code has such an interface, package plans/audit reads.
func checkModules(c *checker) {
	for i, pl := range c.plan.Pipelines {
		m := &c.plan.Modules[pl.Module]
		in := &m.Interface
		if f, err := FormatOf(m.Format); err == nil && f.Open {
			c.constants(i, in)
		}
		if in.Workgroup != 0 && in.Workgroup != pl.Workgroup || in.Shared != 0 && in.Shared != pl.Shared {
			c.add("module", "", m.Name, "workgroup of %d with %d bytes of shared memory, pipeline %d has %d and %d", in.Workgroup, in.Shared, i, pl.Workgroup, pl.Shared)
		}
	}
	for i := range c.sites {
		s := &c.sites[i]
		if in := &c.plan.Modules[c.plan.Pipelines[s.Pipeline].Module].Interface; in.Args != len(s.Args) {
			c.addAt("module", s, "%d arguments, the module takes %d", len(s.Args), in.Args)
		}
	}
}

// constants holds the open constants of a module against those that pipeline i sets.
func (c *checker) constants(i int, in *Interface) {
	pl := &c.plan.Pipelines[i]
	name := c.plan.Modules[pl.Module].Name
	for _, k := range pl.Consts {
		at := slices.IndexFunc(in.Open, func(o OpenConst) bool { return o.ID == k.ID })
		if at < 0 {
			c.add("module", "", name, "has no specialization constant %d, which pipeline %d sets as %s", k.ID, i, k.Name)
		} else if have := in.Open[at].Name; have != k.Name {
			c.add("module", "", name, "specialization constant %d is %s, pipeline %d sets it as %s", k.ID, have, i, k.Name)
		}
	}
	for _, o := range in.Open {
		if !slices.ContainsFunc(pl.Consts, func(k Const) bool { return k.ID == o.ID }) {
			c.add("module", "", name, "specialization constant %d, %s, has no value in pipeline %d", o.ID, o.Name, i)
		}
	}
}
