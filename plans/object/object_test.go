package object

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// machineFlags are what llc needs for each machine.
var machineFlags = map[elf.Machine][]string{
	elf.EM_X86_64:  {"-mtriple=x86_64-unknown-linux-gnu"},
	elf.EM_AARCH64: {"-mtriple=aarch64-unknown-linux-gnu", "-mattr=+reserve-x18,+reserve-x28"},
}

// compile returns the object that llc makes of IR.
func compile(t testing.TB, m elf.Machine, ir string, flags ...string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out.o")
	if flags == nil {
		flags = []string{"--stack-size-section", "-relocation-model=pic"}
	}
	cmd := exec.Command("llc-19", append(append([]string{"-O2", "-filetype=obj", "-o", out}, flags...), machineFlags[m]...)...)
	cmd.Stdin = strings.NewReader(ir)
	if msg, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("llc-19 (Debian's llvm-19): %v: %s", err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// twoFuncs has a call, constants and a jump table.
const twoFuncs = `
@table = private unnamed_addr constant [4 x i64] [i64 3, i64 5, i64 7, i64 11], align 32
define internal i64 @inner(i64 %x) noinline nounwind {
  %i = and i64 %x, 3
  %p = getelementptr i64, ptr @table, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}
define i64 @first(i64 %x) nounwind {
  %a = call i64 @inner(i64 %x)
  %b = call i64 @inner(i64 %a)
  %c = add i64 %a, %b
  ret i64 %c
}
define <4 x i32> @second(<4 x i32> %x) nounwind {
  %a = mul <4 x i32> %x, <i32 1001, i32 1002, i32 77, i32 9>
  ret <4 x i32> %a
}
`

func TestRead(t *testing.T) {
	for m := range machineFlags {
		o, err := Read(compile(t, m, twoFuncs))
		if err != nil {
			t.Fatalf("%v: %v", m, err)
		}
		if o.Machine != m || o.Align < 32 || o.Stack <= 0 || len(o.Funcs) != 2 || o.Funcs[0].Name != "first" || o.Funcs[1].Name != "second" {
			t.Errorf("%v: %+v", m, o)
		}
		if _, err := o.Func("inner"); err == nil {
			t.Errorf("%v: a local function can be called", m)
		}
		// The second constant of the product lies where the code looks for it, wherever that is.
		for _, at := range []int{0, 3 * o.Align, PageSize, 5*PageSize + o.Align} {
			code := make([]byte, o.Size)
			if err := o.Link(code, at); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(code), string(binary.LittleEndian.AppendUint32(nil, 1002))) {
				t.Errorf("%v: the constants are not linked", m)
			}
		}
		if err := o.Link(make([]byte, o.Size), 1); err == nil {
			t.Errorf("%v: linked at an address that is not aligned", m)
		}
	}
}

// TestRefused checks that what is not code of one piece is refused, with a reason.
func TestRefused(t *testing.T) {
	good := compile(t, elf.EM_X86_64, twoFuncs)
	for _, c := range []struct {
		name, want string
		data       []byte
	}{
		{"no object", "not an ELF object", []byte("hello")},
		{"cut short", "", good[:len(good)/2]},
		{"a call", `symbol "memset" is not defined`, compile(t, elf.EM_X86_64, "declare void @memset()\ndefine void @f() nounwind {\n call void @memset()\n ret void\n}")},
		{"a variable", "code has no variables", compile(t, elf.EM_X86_64, "@v = global i32 1\ndefine i32 @f() nounwind {\n %a = load i32, ptr @v\n ret i32 %a\n}")},
		{"no variable's bytes", "code has no variables", compile(t, elf.EM_X86_64, "@v = internal global i32 0\ndefine void @f(i32 %a) nounwind {\n store volatile i32 %a, ptr @v\n ret void\n}")},
		{"absolute addresses", "relocation R_X86_64_32S: code of one piece has none", compile(t, elf.EM_X86_64, twoFuncs, "--stack-size-section", "-relocation-model=static")},
		{"a large frame", "more than 65536 bytes of stack", compile(t, elf.EM_X86_64, "define void @f() nounwind {\n %a = alloca [70000 x i8]\n store volatile i8 1, ptr %a\n ret void\n}")},
		{"no sizes of frames", "0 of 3 functions say how much stack", compile(t, elf.EM_X86_64, twoFuncs, "-relocation-model=pic")},
		{"no function", "no code", compile(t, elf.EM_X86_64, "")},
		{"another machine", "want x86-64 or aarch64", patched(good, 18, 8)},
		{"an executable", "want a relocatable object", patched(good, 16, 2)},
	} {
		if _, err := Read(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
}

func patched(data []byte, at int, b byte) []byte {
	data = append([]byte(nil), data...)
	data[at] = b
	return data
}

// TestARM64Patches checks the bits of each instruction: Arm Architecture Reference Manual, C6.2.
func TestARM64Patches(t *testing.T) {
	for _, c := range []struct {
		kind     elf.R_AARCH64
		word     uint32
		to, from int64
		want     uint32 // 0: refused
	}{
		{elf.R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0x5123, 0x1ff0, 0x90000020}, // adrp x0, +4 pages
		{elf.R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 0x1000, 0x2ff0, 0xf0ffffe0}, // adrp x0, -1 page
		{elf.R_AARCH64_ADR_PREL_PG_HI21, 0x90000000, 1 << 33, 0, 0},              // too far
		{elf.R_AARCH64_ADD_ABS_LO12_NC, 0x91000000, 0x5123, 0, 0x91048c00},       // add x0, x0, #0x123
		{elf.R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, 0x5120, 0, 0x3dc04800},   // ldr q0, [x0, #0x120]
		{elf.R_AARCH64_LDST128_ABS_LO12_NC, 0x3dc00000, 0x5128, 0, 0},            // not aligned
		{elf.R_AARCH64_LDST64_ABS_LO12_NC, 0xf9400000, 0x5128, 0, 0xf9409400},    // ldr x0, [x0, #0x128]
		{elf.R_AARCH64_LDST32_ABS_LO12_NC, 0xb9400000, 0x5124, 0, 0xb9412400},    // ldr w0, [x0, #0x124]
		{elf.R_AARCH64_CALL26, 0x94000000, 0x1000, 0x1010, 0x97fffffc},           // bl .-16
		{elf.R_AARCH64_JUMP26, 0x14000000, 0x1010, 0x1000, 0x14000004},           // b .+16
		{elf.R_AARCH64_ABS64, 0, 0x1010, 0x1000, 0},                              // an address
	} {
		p := binary.LittleEndian.AppendUint32(nil, c.word)
		err := patchARM64(p, uint32(c.kind), c.to, c.from)
		if got := binary.LittleEndian.Uint32(p); (err == nil) != (c.want != 0) || err == nil && got != c.want {
			t.Errorf("%v to %#x from %#x: %#x, %v, want %#x", c.kind, c.to, c.from, got, err, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	for m := range machineFlags {
		f.Add(compile(f, m, twoFuncs))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := Read(data)
		if err != nil {
			return
		}
		for _, fn := range o.Funcs {
			if fn.Offset < 0 || fn.Size < 0 || fn.Offset+fn.Size > o.Size {
				t.Fatalf("function %+v in %d bytes", fn, o.Size)
			}
		}
		if err := o.Link(make([]byte, o.Size), 0); err != nil {
			t.Fatal(err)
		}
	})
}
