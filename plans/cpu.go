package plans

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/internal/table"
)

// CPURequirements are what a processor must offer.
type CPURequirements struct {
	Arch     string   // as Go names it: "amd64", "arm64"
	Features []string // of instructions, by the names of package processor: "avx2", "dotprod"
}

// CPUCapabilities are what a processor offers.
type CPUCapabilities struct {
	Arch     string
	Features map[string]bool
	Refused  map[string]string // features that the system keeps from programs, and why
}

// objectFormats are the formats of machine code, by architecture.
var objectFormats = map[string]string{"amd64": "elf-x86-64", "arm64": "elf-aarch64"}

// ObjectFormat is the format of machine code for an architecture, as Go names it; empty if there
// is none.
func ObjectFormat(arch string) string { return objectFormats[arch] }

// validObject looks at the header of an ELF file (System V ABI, chapter 4): a relocatable object of
// 64 bits, little endian, for the machine.
func validObject(machine elf.Machine) func(code []byte) error {
	return func(code []byte) error {
		const header = 64
		if len(code) < header || string(code[:4]) != "\x7fELF" || code[4] != 2 || code[5] != 1 || le.Uint16(code[16:]) != 1 || elf.Machine(le.Uint16(code[18:])) != machine {
			return fmt.Errorf("not an ELF object of %v", machine)
		}
		return nil
	}
}

func (r *CPURequirements) valid() error {
	if ObjectFormat(r.Arch) == "" {
		return fmt.Errorf("unknown architecture %q", r.Arch)
	}
	return nil
}

func (r *CPURequirements) missing(c *Capabilities) string {
	has := &c.CPU
	if has.Arch != r.Arch {
		return fmt.Sprintf("is %s, the plan is for %s", has.Arch, r.Arch)
	}
	for _, name := range r.Features {
		if !has.Features[name] {
			what := "lacks the instructions of " + name
			if why := has.Refused[name]; why != "" {
				what += ": " + why
			}
			return what
		}
	}
	return ""
}

func (r *CPURequirements) check(c *checker) {
	want := ObjectFormat(r.Arch)
	for _, m := range c.plan.Modules {
		if m.Format != want {
			c.add("requirements", "", m.Name, "code in format %s, plan requires %s", m.Format, r.Arch)
		}
	}
	if !slices.IsSorted(r.Features) {
		c.add("requirements", "", "", "features %q are not sorted", r.Features)
	}
}

func (r *CPURequirements) describe(t *table.Table) {
	t.Add("architecture", r.Arch)
	t.Add("features", strings.Join(r.Features, " "))
}
