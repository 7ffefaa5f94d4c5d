package vk

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unsafe"
)

// structLayout is a generated struct with the C names of its fields, in order.
type structLayout struct {
	c      string
	goType reflect.Type
	fields []string
}

type constantValue struct {
	c     string
	value int64
}

// TestLayout compares the size and field offsets of every generated struct and
// the value of every generated constant with what gcc makes of vulkan.h.
func TestLayout(t *testing.T) {
	var src strings.Builder
	var names []string
	var got []int64
	src.WriteString("#include <stddef.h>\n#include <stdio.h>\n#include <vulkan/vulkan.h>\nstatic const long long v[] = {\n")
	add := func(expr string, goValue int64) {
		fmt.Fprintf(&src, "(long long)(%s),\n", expr)
		names = append(names, expr)
		got = append(got, goValue)
	}
	for _, s := range structLayouts {
		add("sizeof("+s.c+")", int64(s.goType.Size()))
		if n := s.goType.NumField(); n != len(s.fields) {
			t.Fatalf("%s: %d fields in Go, %d in the table", s.c, n, len(s.fields))
		}
		for i, f := range s.fields {
			add("offsetof("+s.c+", "+f+")", int64(s.goType.Field(i).Offset))
			add("sizeof((("+s.c+"*)0)->"+f+")", int64(s.goType.Field(i).Type.Size()))
		}
	}
	for _, c := range constantValues {
		add(c.c, c.value)
	}
	add("VK_WHOLE_SIZE", -1)
	add("VK_API_VERSION_1_3", int64(Version13))
	src.WriteString("};\nint main(void) { for (size_t i = 0; i < sizeof v / sizeof *v; i++) printf(\"%lld\\n\", v[i]); }\n")

	dir := t.TempDir()
	file, program := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	if err := os.WriteFile(file, []byte(src.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("gcc with the headers of libvulkan-dev is needed: %v\n%s", err, out)
	}
	out, err := exec.Command(program).Output()
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(string(out))
	if len(lines) != len(got) {
		t.Fatalf("%d values from C, want %d", len(lines), len(got))
	}
	for i, line := range lines {
		if g := fmt.Sprint(got[i]); g != line {
			t.Errorf("%s: %s in Go, %s in C", names[i], g, line)
		}
	}
	t.Logf("%d values of %d structs and %d constants", len(got), len(structLayouts), len(constantValues))
}

// TestManualLayout holds the structs written by hand to the C layout rules:
// the registry and the headers do not know them.
func TestManualLayout(t *testing.T) {
	var f PhysicalDeviceCooperativeMatrixFeaturesKHR
	var p CooperativeMatrixPropertiesKHR
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"sizeof VkPhysicalDeviceCooperativeMatrixFeaturesKHR", unsafe.Sizeof(f), 24},
		{"offsetof cooperativeMatrixRobustBufferAccess", unsafe.Offsetof(f.CooperativeMatrixRobustBufferAccess), 20},
		{"sizeof VkCooperativeMatrixPropertiesKHR", unsafe.Sizeof(p), 56},
		{"offsetof MSize", unsafe.Offsetof(p.MSize), 16},
		{"offsetof AType", unsafe.Offsetof(p.AType), 28},
		{"offsetof scope", unsafe.Offsetof(p.Scope), 48},
	} {
		if c.got != c.want {
			t.Errorf("%s is %d, want %d", c.name, c.got, c.want)
		}
	}
}
