package radv

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"
)

// Machine is the machine code of a kernel and what a launch has to put into registers. Code is what the
// device executes: instructions, and behind them the tables that they read relative to the program counter.
type Machine struct {
	Code         []uint32
	Rsrc1, Rsrc2 uint32 // COMPUTE_PGM_RSRC1 and 2
	Wave         int    // lanes of a wave
	LDS          int    // bytes of a workgroup
	Scratch      int    // bytes of a wave

	// The dwords of push constants that lie in scalar registers: Inline has a bit for each of the first 64, and they
	// follow one another from register InlineAt on. Of the others the code loads those that it needs, from an address
	// whose low half is in register PushAt and whose high half it knows. GridAt is the first of three registers with
	// the size of the grid. SetAt has the low half of the address of the first set of descriptors, which kernels of
	// others have. -1 is none.
	Inline                          uint64
	InlineAt, PushAt, GridAt, SetAt int
}

// Machines returns the machine code of each kernel, nil for those that the driver does not compile for the family, be
// it for a feature that it lacks or since it refuses. It asks the driver, whatever is known.
func (c *Compiler) Machines(ctx context.Context, kernels []Kernel) ([]*Machine, error) {
	if c.driver == "" {
		return nil, ErrNoDriver
	}
	list := make([]*Machine, len(kernels))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range kernels {
		if !c.takes(&kernels[i]) {
			continue
		}
		group.Go(func() error {
			a, err := c.compile(ctx, &kernels[i], wantMachine)
			if err == nil && a.Refused != "" {
				err = fmt.Errorf("%s: %s", kernels[i].Name, a.Refused)
			}
			list[i] = a.Machine
			return err
		})
	}
	return list, group.Wait()
}

// What Mesa 25.0 keeps of a pipeline: the common header of Vulkan, the number of objects, and the objects, each with a
// key of its own. One of them, whose key has 32 bytes, is the driver's binary: a record of fixed size and then the
// code. Offsets are in bytes.
const (
	objectsAt     = 36 // behind the header and the number
	binaryKey     = 32
	ldsAt         = 24
	scratchAt     = 40
	rsrc1At       = 44
	rsrc2At       = 48
	inlineAt      = 56
	waveAt        = 76
	setAt         = 80   // such a pair, of the first set of descriptors
	registersAt   = 144  // pairs of bytes, the first register and how many, of what the driver puts into registers:
	pushPair      = 1    // the address of the push constants
	inlinePair    = 2    // push constants
	gridPair      = 18   // the size of the grid
	sizeAt        = 1168 // of the whole binary
	statisticsAt  = 1172 // bytes of statistics, which would be before the code
	codeAt        = 1176 // bytes of code, with tables
	instructionAt = 1180 // bytes of instructions, behind which the driver pads
	recordBytes   = 1200
	ldsGranule    = 512
	maxPairRegs   = 16
	maxBinary     = 64 << 20
	endOfCode     = 0xbf9f0000 // s_code_end, with which the driver fills up
	paddingOfCode = 5
)

var errBinary = errors.New("the driver's cache has no code in the form that Mesa 25.0 gives it")

// machineOf reads a pipeline's code from the data of a cache that has it alone.
func machineOf(data []byte) (*Machine, error) {
	word := func(at int) int { return int(binary.LittleEndian.Uint32(data[at:])) }
	for at := objectsAt; at+12 <= len(data); {
		key, size := word(at+4), word(at+8)
		if key > len(data) || size > maxBinary {
			return nil, errBinary
		}
		body := (at + 12 + key + 7) &^ 7
		if body+size > len(data) {
			return nil, errBinary
		}
		if key == binaryKey && size >= recordBytes {
			return machineIn(data[body : body+size])
		}
		at = (body + size + 3) &^ 3
	}
	return nil, errBinary
}

// machineIn reads the driver's binary.
func machineIn(data []byte) (*Machine, error) {
	word := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	size, end := int(word(codeAt)), int(word(instructionAt))
	if int(word(sizeAt)) != len(data) || word(statisticsAt) != 0 || size%4 != 0 || end%4 != 0 || end+4*paddingOfCode > size || recordBytes+size > len(data) {
		return nil, errBinary
	}
	first := func(pair, most int) (int, error) {
		at, n := int(data[pair]), int(data[pair+1])
		switch {
		case n == 0:
			return -1, nil
		case n > most || at+n > maxPairRegs:
			return 0, errBinary
		}
		return at, nil
	}
	m := &Machine{Rsrc1: word(rsrc1At), Rsrc2: word(rsrc2At), Wave: int(word(waveAt)), LDS: int(word(ldsAt)) * ldsGranule, Scratch: int(word(scratchAt)),
		Inline: binary.LittleEndian.Uint64(data[inlineAt:])}
	if m.Wave != 32 && m.Wave != 64 {
		return nil, errBinary
	}
	var errs [4]error
	m.InlineAt, errs[0] = first(registersAt+2*inlinePair, maxPairRegs)
	m.PushAt, errs[1] = first(registersAt+2*pushPair, 1)
	m.GridAt, errs[2] = first(registersAt+2*gridPair, 3)
	m.SetAt, errs[3] = first(setAt, 1)
	if m.InlineAt < 0 {
		m.Inline = 0
	}
	m.Code = make([]uint32, size/4)
	for i := range m.Code {
		m.Code[i] = word(recordBytes + 4*i)
	}
	for n := range paddingOfCode {
		if m.Code[end/4+n] != endOfCode {
			return nil, errBinary
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return m, nil
}
