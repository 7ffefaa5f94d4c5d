// Package modules reads the code in plans: a row of hooks for each row of plans.Formats.
package modules

import (
	"fmt"

	"github.com/zincc-dev/zincc/plans"
)

// Code is what the bytes of a module tell of it under the constants of a pipeline.
type Code struct {
	// Interface is that of the code; Workgroup and Shared are those under the constants.
	plans.Interface
	// Loads and Stores are of arguments, by number; atomic operations are both. They are nil where the
	// format does not tell.
	Loads, Stores map[int]bool
	// Stray says what it reaches memory through that is no argument; empty if nothing.
	Stray string
	// Overlaps: it may begin while the dispatch before runs, and waits for it. Early are the arguments that it may load
	// before it has; of Cached it may then get what the L1 cache has. Hasty: it may let the next dispatch begin before
	// it has.
	Overlaps      bool
	Early, Cached map[int]bool
	Hasty         bool
	// Opaque: the format tells the entry point alone.
	Opaque bool
	// Faults are what else no module of a plan may have.
	Faults []string
	// lacks lists what it needs that the plan does not require.
	lacks func(r *plans.Requirements) []string
}

// Lacks lists what the code needs that r does not have.
func (c *Code) Lacks(r *plans.Requirements) []string { return c.lacks(r) }

// format is how code of one format is read.
type format struct {
	// read fails for code that is broken.
	read func(code []byte, constants map[uint32]uint32) (*Code, error)
	// disassemble returns text for people; open constants that constants lacks stay open.
	disassemble func(code []byte, constants map[uint32]uint32) (string, error)
}

// formats is by the names of plans.Formats.
var formats = map[string]format{
	plans.SPIRV:                 {readSPIRV, disassembleSPIRV},
	plans.ObjectFormat("amd64"): {readObject, disassembleObject},
	plans.ObjectFormat("arm64"): {readObject, disassembleObject},
	plans.PTX:                   {readPTX, disassemblePTX},
}

// Read reads a module under the constants of a pipeline, by id.
func Read(m *plans.Module, constants map[uint32]uint32) (*Code, error) {
	f, err := formatOf(m)
	if err != nil {
		return nil, err
	}
	return f.read(m.Bytes, constants)
}

// Disassemble returns the module as text, with the values of those constants that are given.
func Disassemble(m *plans.Module, constants map[uint32]uint32) (string, error) {
	f, err := formatOf(m)
	if err != nil {
		return "", err
	}
	return f.disassemble(m.Bytes, constants)
}

// Constants are a pipeline's, by id.
func Constants(p *plans.Pipeline) map[uint32]uint32 {
	byID := map[uint32]uint32{}
	for _, c := range p.Consts {
		byID[c.ID] = c.Value
	}
	return byID
}

func formatOf(m *plans.Module) (format, error) {
	f, ok := formats[m.Format]
	if !ok {
		_, err := plans.FormatOf(m.Format)
		if err == nil {
			err = fmt.Errorf("code in format %q cannot be read", m.Format)
		}
		return f, err
	}
	return f, nil
}
