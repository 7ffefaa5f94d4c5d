package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const core = `{"major_version": 1, "minor_version": 6, "revision": 1,
"instructions": [
	{"opname": "OpDotNEW", "opcode": 9, "operands": [{"kind": "IdResultType"}, {"kind": "IdResult"}, {"kind": "Access", "quantifier": "?"}]},
	{"opname": "OpDot", "opcode": 9, "operands": [{"kind": "IdResultType"}, {"kind": "IdResult"}, {"kind": "Access", "quantifier": "?"}]},
	{"opname": "OpNop", "opcode": 0}],
"operand_kinds": [
	{"category": "BitEnum", "kind": "Access", "enumerants": [
		{"enumerant": "None", "value": "0x0"},
		{"enumerant": "Aligned", "value": "0x0002", "parameters": [{"kind": "LiteralInteger"}]}]},
	{"category": "ValueEnum", "kind": "Dim", "enumerants": [{"enumerant": "Dim2D", "value": 1}]},
	{"category": "Id", "kind": "IdResultType"}, {"category": "Id", "kind": "IdResult"},
	{"category": "Literal", "kind": "LiteralInteger"},
	{"category": "Composite", "kind": "Pair", "bases": ["IdResult", "LiteralInteger"]}]}`

const glsl = `{"instructions": [{"opname": "Sqrt", "opcode": 31}, {"opname": "Exp", "opcode": 27}]}`

func TestRun(t *testing.T) {
	in, out := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"spirv.core.grammar.json": core, "extinst.glsl.std.450.grammar.json": glsl} {
		if err := os.WriteFile(filepath.Join(in, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(in, out); err != nil {
		t.Fatal(err)
	}
	for name, wants := range map[string][]string{
		"zop.go": {
			"Code generated", "from the SPIR-V grammar 1.6 revision 1. DO NOT EDIT.",
			"OpDotNEW Op = 9", "OpDot Op = 9", "OpCooperativeMatrixMulAddKHR Op = 4459",
			// The table is sorted and has the shorter name of an opcode.
			`{OpNop, "OpNop", nil}, {OpDot, "OpDot", []operandDesc{{kindIdResultType, one}, {kindIdResult, one}, {kindAccess, optional}}}, {OpTypeCoop`,
		},
		"zenum.go": {
			"AccessAligned Access = 2", "CooperativeMatrixUseMatrixBKHR CooperativeMatrixUse = 1", "Dim2D Dim = 1", "type Dim = uint32",
			`{2, "Aligned", []operandDesc{{kindLiteralInteger, one}}}`,
			"bases: []operandKind{kindIdResult, kindLiteralInteger}",
		},
		"zglsl.go": {"GLSLSqrt uint32 = 31", `GLSLExp: "Exp"`},
	} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		flat := strings.Join(strings.Fields(string(text)), " ")
		for _, want := range wants {
			if !strings.Contains(flat, want) {
				t.Errorf("%s: %q is not in\n%s", name, want, text)
			}
		}
	}
}

func TestRunRefuses(t *testing.T) {
	if err := run(t.TempDir(), t.TempDir()); err == nil || !strings.Contains(err.Error(), "spirv.core.grammar.json") {
		t.Errorf("error %v, want one that names the file", err)
	}
}
