package emulate_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernels"
	"github.com/zincc-dev/zincc/codegen/kernels/kerneltest"
	"github.com/zincc-dev/zincc/codegen/radv"
	"github.com/zincc-dev/zincc/codegen/radv/emulate"
	"github.com/zincc-dev/zincc/internal/rdna"
)

// coded are groups whose code is read beside those of groups: of weights of many types, of few rows and of many.
func coded() []kerneltest.Case {
	list := groups
	for _, d := range []string{"q4_k", "q6_k", "q8_0", "mxfp4", "iq3_s", "f16"} {
		for _, rows := range []int{1, 64} {
			list = append(list, kerneltest.Case{Rows: rows, Globals: "step @x : f32[T, 512]\nweight @m : " + d + "[70, 512]\n", Group: "%0 = linear @x, @m : io f32[T, 70]"})
		}
	}
	return list
}

// TestTexts decodes all instructions of kernels as LLVM does: fields that are taken apart wrongly have another text.
func TestTexts(t *testing.T) {
	const least = 20000
	lines := 0
	for _, name := range []string{"gfx1201", "gfx1200", "gfx1100", "gfx1151"} {
		on := kerneltest.Lookup(t, name)
		d, err := emulate.Open(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		code := map[int][]*rdna.Inst{} // by the lanes of a wave
		for i, c := range coded() {
			if testing.Short() && i%2 == len(name)%2 && name != "gfx1201" && name != "gfx1100" {
				continue
			}
			c.Ctx, c.Slots = 64, 1
			for _, k := range kerneltest.Different(kernels.Candidates(c.Site(t, on))) {
				p := programOf(t, d, k)
				if p != nil {
					p.Insts(func(in *rdna.Inst) { code[p.Wave] = append(code[p.Wave], in) })
				}
			}
		}
		for wave, list := range code {
			lines += len(list)
			compareTexts(t, name, wave, list)
		}
	}
	if lines < least {
		t.Errorf("only %d instructions", lines)
	}
}

// programOf is the decoded code of a candidate, nil if there is none.
func programOf(t *testing.T, d *emulate.Device, c kernels.Candidate) *rdna.Program {
	t.Helper()
	f, spec, module := kerneltest.Lowered(t, c)
	size, err := f.WorkgroupSize(spec)
	if err != nil {
		t.Fatal(err)
	}
	_, p, err := d.Code(t.Context(), &radv.Kernel{Name: c.Kernel, Words: module, Consts: spec, Wave: c.Wave, Full: int(size)%c.Wave == 0})
	if err != nil && err != emulate.ErrNoCode {
		t.Fatal(err)
	}
	return p
}

// compareTexts compares with the disassembler of LLVM 22: earlier ones lose halves of registers.
func compareTexts(t *testing.T, chip string, wave int, list []*rdna.Inst) {
	t.Helper()
	var words strings.Builder
	for _, in := range list {
		for _, w := range in.Code() {
			fmt.Fprintf(&words, "0x%02x,0x%02x,0x%02x,0x%02x,", w&255, w>>8&255, w>>16&255, w>>24)
		}
		words.WriteByte('\n')
	}
	features := "+real-true16"
	if wave == 64 {
		features += ",+wavefrontsize64"
	}
	cmd := exec.CommandContext(t.Context(), "llvm-mc-22", "-triple=amdgcn-amd-amdhsa", "-mcpu="+chip, "-mattr="+features, "--disassemble")
	cmd.Stdin = strings.NewReader(strings.ReplaceAll(words.String(), ",\n", "\n"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("llvm-mc-22, which .ci/packages installs: %v", err)
	}
	texts := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(out), "\n\n", "\n")), "\n")
	if len(texts) != len(list) {
		t.Fatalf("%s, waves of %d: %d lines of %d instructions", chip, wave, len(texts), len(list))
	}
	wrong := 0
	for i, in := range list {
		if want := strings.ReplaceAll(strings.TrimSpace(texts[i]), "\t", " "); in.String() != want && wrong < 10 {
			wrong++
			t.Errorf("%s: %08x is %q, want %q", chip, in.Code(), in, want)
		}
	}
}
