package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/spirv"
)

// codeColumns are the sums of a line of code: of the modules of an entry's dispatches without names, of their
// constants, of their grids, and of where their arguments lie. Two commits with the same lines run the same work on the
// same memory, whatever they call it and however a plan says it.
var codeColumns = [...]string{"code", "constants", "grids", "offsets"}

// codes returns a line of code for each entry of a plan.
func codes(p *plans.Plan) ([]string, error) {
	modules := make([][]byte, len(p.Modules))
	for i := range p.Modules {
		modules[i] = withoutNames(&p.Modules[i])
	}
	var lines []string
	for i := range p.Entries {
		entry := &p.Entries[i]
		var sums [len(codeColumns)]hash.Hash
		for c := range sums {
			sums[c] = sha256.New()
		}
		for _, d := range entry.Dispatches {
			if len(p.Pipelines) > 0 {
				pl := &p.Pipelines[d.Pipeline]
				code := sha256.Sum256(modules[pl.Module])
				sums[0].Write(code[:])
				fmt.Fprint(sums[1], pl.Wave, " ")
				for _, c := range pl.Consts {
					fmt.Fprint(sums[1], c.ID, "=", c.Value, " ")
				}
				fmt.Fprintln(sums[1])
			}
			fmt.Fprintln(sums[2], d.Grid)
			for _, a := range d.Args {
				fmt.Fprintln(sums[3], a.Space, a.Region, a.Offset)
			}
		}
		var line []string
		for _, s := range sums {
			line = append(line, fmt.Sprintf("%.4x", s.Sum(nil)))
		}
		lines = append(lines, strings.Join(line, " ")+"  "+entry.Name)
	}
	return lines, nil
}

// withoutNames returns a module's code without what names things for people.
func withoutNames(m *plans.Module) []byte {
	switch m.Format {
	case plans.SPIRV:
		words, err := spirv.Words(m.Bytes)
		if err != nil {
			return m.Bytes
		}
		const header = 5
		kept := append([]uint32(nil), words[:header]...)
		for at := header; at < len(words); {
			n := max(1, int(words[at]>>16))
			if op := words[at] & 0xffff; op != uint32(spirv.OpName) && op != uint32(spirv.OpMemberName) {
				kept = append(kept, words[at:min(at+n, len(words))]...)
			}
			at += n
		}
		return binary.LittleEndian.AppendUint64(spirv.Bytes(kept), uint64(len(kept)))
	case plans.PTX:
		var kept []byte
		for line := range bytes.Lines(m.Bytes) {
			if !bytes.HasPrefix(line, []byte("//")) {
				kept = append(kept, line...)
			}
		}
		return kept
	}
	return m.Bytes
}

// columns says which of the sums of two lines differ, of lines of code.
func columns(before, after string) string {
	was, is := strings.Fields(before), strings.Fields(after)
	if len(was) != len(codeColumns) || len(is) != len(codeColumns) {
		return ""
	}
	var differ []string
	for c := range codeColumns {
		if was[c] != is[c] {
			differ = append(differ, codeColumns[c])
		}
	}
	return " in " + strings.Join(differ, ", ")
}

func listCode(w io.Writer, root string, some selection) error {
	lines, err := compute(root, some, codes)
	if err == nil {
		_, err = fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
	return err
}

// compareCode compares the lines of code of this tree with those that a commit makes with its own digests.
func compareCode(ctx context.Context, root, commit string, some selection) error {
	dir, err := os.MkdirTemp("", "digests-code")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	tree := filepath.Join(dir, "tree")
	if out, err := exec.CommandContext(ctx, "git", "-C", root, "worktree", "add", "--quiet", "--detach", tree, commit).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %s", commit, bytes.TrimSpace(out))
	}
	defer exec.Command("git", "-C", root, "worktree", "remove", "--force", tree).Run()
	args := []string{"run", "./internal/tools/digests", "--print-code"}
	if len(some.targets) > 0 {
		args = append(args, "--only", strings.Join(some.targets, ","))
	}
	if len(some.models) > 0 {
		args = append(args, "--model", strings.Join(some.models, ","))
	}
	theirs := exec.CommandContext(ctx, "go", args...)
	var complaints bytes.Buffer
	theirs.Dir, theirs.Stderr = tree, &complaints
	out, err := theirs.Output()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", commit, err, bytes.TrimSpace(complaints.Bytes()))
	}
	have, err := compute(root, some, codes)
	if err != nil {
		return err
	}
	if err := compare(strings.Split(strings.TrimSpace(string(out)), "\n"), have, true, commit); err != nil {
		return err
	}
	fmt.Printf("%d entries of plans have the code of %s\n", len(have), commit)
	return nil
}
