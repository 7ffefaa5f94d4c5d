package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/internal/models"
	"github.com/zincc-dev/zincc/internal/printable"
	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
	"github.com/zincc-dev/zincc/plans"
)

// kind is what a file is by its first bytes, whatever it is called.
type kind string

const (
	modelFile   kind = "a GGUF model"
	programFile kind = "a .zir program"
	planFile    kind = "a plan"
	otherFile   kind = ""
)

// magics are the first bytes of each kind.
var magics = []struct {
	kind  kind
	bytes string
}{{modelFile, "GGUF"}, {programFile, "zir "}, {planFile, "zinccpln"}}

// input returns the path of what a command is to read: a file, or a model by its name, which is fetched if it is not
// here.
func input(ctx context.Context, args []string, what string) (string, error) {
	arg, err := cli.OneArg(args, what)
	if err != nil || filepath.Ext(arg) == ".zir" || arg == "-" {
		return arg, err
	}
	return models.Path(ctx, arg)
}

// kindOf looks into the file.
func kindOf(path string) (kind, error) {
	info, err := os.Stat(path)
	if err != nil {
		return otherFile, err
	}
	if !info.Mode().IsRegular() {
		return otherFile, nil // one may be able to read it only once
	}
	f, err := os.Open(path)
	if err != nil {
		return otherFile, err
	}
	defer f.Close()
	var head [8]byte
	n, err := io.ReadFull(f, head[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return otherFile, err
	}
	for _, m := range magics {
		if bytes.HasPrefix(head[:n], []byte(m.bytes)) {
			return m.kind, nil
		}
	}
	return otherFile, nil
}

// butIs says what a file is that is none of them, if that is known.
func butIs(path string) string {
	if is := gguf.What(path); is != "" {
		return ", but " + is
	}
	return ""
}

// readProgramFile reads a program in text form.
func readProgramFile(path string) (*ir.Program, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	p, err := ir.Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// mayReplace fails if path is a file and not what this program wrote of the same kind, a
// plan or a program, from the model whose fingerprint is source.
func mayReplace(path string, want kind, source string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil
	}
	have, err := kindOf(path)
	if err != nil {
		return err
	}
	if have != want {
		return cli.Usagef("%s: exists and is not %s; --force overwrites it", path, want)
	}
	of, name := "", ""
	if have == planFile {
		p, err := plans.Read(path)
		if err != nil {
			return nil // of another version, or damaged: nobody can use it
		}
		defer p.Close()
		of, name = p.Header.Model.Fingerprint, p.Header.Model.Name
	} else {
		p, err := readProgramFile(path)
		if err != nil {
			return cli.Usagef("%s: exists and cannot be read; --force overwrites it", path)
		}
		of, name = p.Source, p.Name
	}
	if of != source {
		return cli.Usagef("%s: exists and belongs to another model, %s; --force overwrites it", path, printable.Name(name))
	}
	return nil
}
