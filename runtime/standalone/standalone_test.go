package standalone

import (
	"bytes"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/plans"
)

func TestAssembleErrors(t *testing.T) {
	vocab, err := (&plans.Vocab{Model: "gpt2", Tokens: []string{"a"}}).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	const program = "zir 1\nstage place\nmodel arch=\"llama\" name=\"\" path=\"\" source=\"\" target=\"host\" ctx=64 slots=1 layers=1\n\nfunc \"decode/1\" rows=1 sequences=many run=1 class=exact {\n}\n"
	for _, c := range []struct{ file, data, want string }{
		{"a.spv", "", "a.spv: file does not exist"},
		{"a.spv", "12345", "a.spv: not SPIR-V"},
		{"p.zir", "", "p.zir: file does not exist"},
		{"p.zir", "zir 2", "p.zir: zir line 1"},
		{"v.bin", "", "v.bin: file does not exist"},
		{"v.bin", "abc", "v.bin: vocab: bad length"},
		{"v.bin", "\xff\xff\xff\xff", "v.bin: vocab: bad length"},
		{"v.bin", string(vocab[:len(vocab)-1]), "v.bin: vocab: unpack"},
		{"", "", "program"}, // no entries
	} {
		files := fstest.MapFS{"a.spv": {Data: append([]byte{3, 2, 0x23, 7}, make([]byte, 16)...)}, "p.zir": {Data: []byte(program)}, "v.bin": {Data: vocab}}
		if c.data == "" {
			delete(files, c.file)
		} else {
			files[c.file] = &fstest.MapFile{Data: []byte(c.data)}
		}
		m := &Model{Kernels: []Kernel{{Name: "a", Format: plans.SPIRV, File: "a.spv"}}, Program: "p.zir", Vocab: "v.bin", Files: files}
		if _, err := m.Assemble(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: error %v, want %q", c.file, c.data, err, c.want)
		}
	}
}

func TestArguments(t *testing.T) {
	m := &Model{Program: "p.zir", Files: fstest.MapFS{}}
	m.Plan.Header.Model.Name = "tiny\x1b[2J\xff"
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--help"}, 0, "model tiny�[2J� for"},
		{[]string{"--nonsense"}, 2, "unknown flag: --nonsense"},
		{[]string{"-n", "-4"}, 2, "-n is -4, want 0 or more"},
		{[]string{"x"}, 2, `unexpected argument "x"`},
		{[]string{"--device", "metal"}, 2, `--device: unknown device "metal"`},
		{nil, 1, "x: open p.zir: file does not exist"},
	} {
		var out, errs bytes.Buffer
		code := cli.Exit(&errs, "x", m.run(t.Context(), append([]string{"x"}, c.args...), strings.NewReader(""), &out, &errs))
		text, silent := &errs, &out
		if c.code == 0 {
			text, silent = silent, text
		}
		if code != c.code || !strings.Contains(text.String(), c.want) || silent.Len() > 0 {
			t.Errorf("%q: code %d, %q and %q, want %d, %q", c.args, code, out.String(), errs.String(), c.code, c.want)
		}
	}
}
