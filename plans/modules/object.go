package modules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/plans/object"
)

// readObject checks all that a loader relies on. Machine code does not tell which memory it reaches.
func readObject(code []byte, _ map[uint32]uint32) (*Code, error) {
	o, err := object.Read(code)
	if err != nil {
		return nil, err
	}
	c := &Code{Opaque: true, lacks: func(*plans.Requirements) []string { return nil }}
	if len(o.Funcs) != 1 {
		c.Faults = append(c.Faults, fmt.Sprintf("%d functions, want one", len(o.Funcs)))
	}
	c.Entry = o.Funcs[0].Name
	return c, nil
}

// errNoDisassembler is the error where there is no program that reads machine code.
var errNoDisassembler = errors.New("machine code is disassembled by llvm-objdump, which is not installed (it is part of llvm)")

func disassembleObject(code []byte, _ map[uint32]uint32) (string, error) {
	if _, err := object.Read(code); err != nil {
		return "", err
	}
	var path string
	for _, name := range []string{"llvm-objdump", "llvm-objdump-19"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
		}
	}
	if path == "" {
		return "", errNoDisassembler
	}
	f, err := os.CreateTemp("", "zincc-*.o")
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(code)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return "", err
	}
	var out, say bytes.Buffer
	cmd := exec.Command(path, "--disassemble", "--reloc", "--no-show-raw-insn", "--no-leading-addr", f.Name())
	cmd.Stdout, cmd.Stderr = &out, &say
	if err := cmd.Run(); err != nil {
		first, _, _ := strings.Cut(say.String(), "\n")
		return "", fmt.Errorf("%s: %w: %s", path, err, first)
	}
	_, text, _ := strings.Cut(out.String(), "Disassembly of section")
	return "section" + text, nil
}
