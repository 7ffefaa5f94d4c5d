package spirv

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

// ErrNoTool is the error of a program of SPIRV-Tools that is not installed.
var ErrNoTool = errors.New("not installed (it is part of spirv-tools)")

// Env is the environment whose rules a module must follow, as SPIRV-Tools name
// it.
type Env string

// Vulkan12 is the least that kernels need.
const Vulkan12 Env = "vulkan1.2"

// Validate checks a module with spirv-val, of one with cooperative matrices a twin
// that older ones know. The error has its first line.
func Validate(words []uint32, env Env) error {
	words, err := twin(words)
	if err != nil {
		return err
	}
	_, err = runTool(words, "spirv-val", "--target-env", string(env), "--scalar-block-layout")
	return err
}

// Bytes returns a module as the bytes of a .spv file, little endian.
func Bytes(words []uint32) []byte {
	out := make([]byte, 0, 4*len(words))
	for _, w := range words {
		out = binary.LittleEndian.AppendUint32(out, w)
	}
	return out
}

// Words is the inverse of Bytes.
func Words(b []byte) ([]uint32, error) {
	if len(b)%4 != 0 {
		return nil, fmt.Errorf("spirv: %d bytes are not whole words", len(b))
	}
	words := make([]uint32, len(b)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return words, nil
}

// runTool runs a program on a module and returns its output.
func runTool(words []uint32, name string, args ...string) ([]byte, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, ErrNoTool)
	}
	var out, problem bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdin = bytes.NewReader(Bytes(words))
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, firstLine(problem.String()))
	}
	return out.Bytes(), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
