// Command gen writes the tables of package spirv from the machine-readable
// grammar that Khronos publishes (Debian package spirv-headers).
//
//	go run ./internal/gen -grammar DIR -out DIR
//
// DIR of the grammar holds spirv.core.grammar.json and
// extinst.glsl.std.450.grammar.json. What Debian's grammar is too old for, of the
// extension SPV_KHR_cooperative_matrix, is in supplement.json in the same form.
package main

import (
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
)

type operand struct {
	Kind       string `json:"kind"`
	Quantifier string `json:"quantifier"`
}

type instruction struct {
	Name     string    `json:"opname"`
	Code     uint32    `json:"opcode"`
	Operands []operand `json:"operands"`
}

type enumerant struct {
	Name       string    `json:"enumerant"`
	Value      value     `json:"value"`
	Parameters []operand `json:"parameters"`
}

// value is a JSON number, or for bit masks a string such as "0x0004".
type value uint32

func (v *value) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseUint(strings.Trim(string(text), `"`), 0, 32)
	*v = value(n)
	return err
}

type operandKind struct {
	Category   string      `json:"category"`
	Kind       string      `json:"kind"`
	Enumerants []enumerant `json:"enumerants"`
	Bases      []string    `json:"bases"`
}

type grammar struct {
	Magic        string        `json:"magic_number"`
	Major        int           `json:"major_version"`
	Minor        int           `json:"minor_version"`
	Revision     int           `json:"revision"`
	Instructions []instruction `json:"instructions"`
	Kinds        []operandKind `json:"operand_kinds"`
}

func main() {
	dir := flag.String("grammar", "", "folder with the grammar files")
	out := flag.String("out", ".", "folder of package spirv")
	flag.Parse()
	if err := run(*dir, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir, out string) error {
	var core, glsl grammar
	if err := read(filepath.Join(dir, "spirv.core.grammar.json"), &core); err != nil {
		return err
	}
	if err := read(filepath.Join(dir, "extinst.glsl.std.450.grammar.json"), &glsl); err != nil {
		return err
	}
	if err := core.add(supplement); err != nil {
		return fmt.Errorf("supplement.json: %w", err)
	}
	from := fmt.Sprintf("the SPIR-V grammar %d.%d revision %d", core.Major, core.Minor, core.Revision)
	for _, f := range []struct {
		name  string
		write func(path string) error
	}{
		{"zop.go", func(p string) error { return writeOps(p, from, core.Instructions) }},
		{"zenum.go", func(p string) error { return writeEnums(p, from, core.Kinds) }},
		{"zglsl.go", func(p string) error { return writeGLSL(p, from, glsl.Instructions) }},
	} {
		if err := f.write(filepath.Join(out, f.name)); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return nil
}

//go:embed supplement.json
var supplement []byte

// add adds what g lacks of another grammar: instructions, kinds of operands, and
// values of the kinds that g has.
func (g *grammar) add(text []byte) error {
	var more grammar
	if err := json.Unmarshal(text, &more); err != nil {
		return err
	}
	g.Instructions = merge(g.Instructions, more.Instructions, func(i instruction) string { return i.Name })
	for i := range g.Kinds {
		for _, k := range more.Kinds {
			if k.Kind == g.Kinds[i].Kind {
				g.Kinds[i].Enumerants = merge(g.Kinds[i].Enumerants, k.Enumerants, func(e enumerant) string { return e.Name })
			}
		}
	}
	g.Kinds = merge(g.Kinds, more.Kinds, func(k operandKind) string { return k.Kind })
	return nil
}

// merge appends those of more to all whose names all lacks.
func merge[T any](all, more []T, name func(T) string) []T {
	for _, x := range more {
		if !slices.ContainsFunc(all, func(y T) bool { return name(x) == name(y) }) {
			all = append(all, x)
		}
	}
	return all
}

func read(path string, g *grammar) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, g); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// canonical sorts by code and keeps, of the names of one code, the shortest: the
// one without the suffix of an extension that became core.
func canonical[T any](all []T, code func(T) uint32, name func(T) string) []T {
	sorted := append([]T(nil), all...)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		if code(a) != code(b) {
			return code(a) < code(b)
		}
		return len(name(a)) < len(name(b))
	})
	var kept []T
	for i, x := range sorted {
		if i == 0 || code(x) != code(sorted[i-1]) {
			kept = append(kept, x)
		}
	}
	return kept
}
