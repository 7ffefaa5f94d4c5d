package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	systemRegistry = "/usr/share/vulkan/registry/vk.xml"
	binding        = "../../vulkan/vk"
)

// TestUpToDate: the files in the tree are what the generator writes.
func TestUpToDate(t *testing.T) {
	dir := t.TempDir()
	if err := generate(systemRegistry, dir); err != nil {
		t.Fatalf("libvulkan-dev is needed: %v", err)
	}
	for _, f := range files {
		want, err := os.ReadFile(filepath.Join(dir, f.path))
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(binding, f.path))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not up to date; run go generate in %s", f.path, binding)
		}
	}
}

// TestRegistry reads a small registry: provider, extension numbering, the
// choice between APIs.
func TestRegistry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "vk.xml")
	text := `<registry>
<types>
  <type category="bitmask" requires="VkAFlagBits">typedef <type>VkFlags</type> <name>VkAFlags</name>;</type>
  <type category="struct" name="VkS"><member>const <type>char</type>* const* <name>list</name></member><member><type>uint8_t</type> <name>id</name>[<enum>VK_UUID_SIZE</enum>]</member></type>
  <type category="struct" name="VkBits"><member><type>uint32_t</type> <name>a</name>:24</member></type>
</types>
<enums name="API Constants"><enum value="16" name="VK_UUID_SIZE"/></enums>
<enums name="VkResult"><enum value="0" name="VK_SUCCESS"/><enum value="-1" name="VK_BAD"/></enums>
<enums name="VkAFlagBits" type="bitmask"><enum bitpos="3" name="VK_A_3_BIT"/></enums>
<commands>
  <command><proto><type>void</type> <name>vkF</name></proto><param api="vulkansc"><type>int32_t</type> <name>no</name></param></command>
  <command name="vkG" alias="vkF"/>
</commands>
<feature api="vulkansc" name="VKSC_VERSION_1_0"><require><command name="vkF"/></require></feature>
<feature api="vulkan" name="VK_VERSION_1_0"><require><command name="vkF"/></require></feature>
<extensions>
  <extension name="VK_X" number="12" type="device" supported="vulkan"><require>
    <enum offset="3" extends="VkResult" dir="-" name="VK_ERROR_X"/>
    <enum offset="1" extnumber="2" extends="VkResult" name="VK_X2"/></require></extension>
  <extension name="VK_OFF" number="13" supported="disabled"><require><enum offset="1" extends="VkResult" name="VK_OFF"/></require></extension>
</extensions>
</registry>`
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := readRegistry(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := r.source["vkF"].name; got != "VK_VERSION_1_0" {
		t.Errorf("vkF is of %q", got)
	}
	if r.flagsOf["VkAFlagBits"] != "VkAFlags" || r.values["VkAFlagBits"][0].value != 8 || r.limits["VK_UUID_SIZE"] != 16 {
		t.Error("flags or limits are wrong")
	}
	want := []enumerant{
		{"VK_SUCCESS", 0, "VK_VERSION_1_0"}, {"VK_BAD", -1, "VK_VERSION_1_0"},
		{"VK_ERROR_X", -1000011003, "VK_X"}, {"VK_X2", 1000001001, "VK_X"},
	}
	got := r.values["VkResult"]
	if len(got) != len(want) {
		t.Fatalf("VkResult has %v, want %v", got, want)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("VkResult has %v, want %v", got[i], want[i])
		}
	}

	m := &model{reg: r, seen: map[string]bool{}, tags: map[string]bool{}}
	if err := m.need("VkS"); err != nil {
		t.Fatal(err)
	}
	fields := m.structs[0].fields
	if f := fields[0]; f.pointers != 2 || f.base != "byte" {
		t.Errorf("const char* const* is %+v", f)
	}
	if f := fields[1]; f.length != 16 || f.base != "uint8" {
		t.Errorf("uint8_t[VK_UUID_SIZE] is %+v", f)
	}
	for name, want := range map[string]string{"VkBits": "bit fields", "VkGone": "not in the registry"} {
		if err := m.need(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

func TestGoConstant(t *testing.T) {
	m := &model{tags: map[string]bool{"KHR": true, "AMD": true}}
	for c, want := range map[string]string{
		"VK_BUFFER_USAGE_TRANSFER_SRC_BIT":    "BufferUsageTransferSrcBit",
		"VK_ERROR_SURFACE_LOST_KHR":           "ErrorSurfaceLostKHR",
		"VK_DRIVER_ID_AMD_PROPRIETARY":        "DriverIdAmdProprietary",
		"VK_STRUCTURE_TYPE_VULKAN_1_1_THINGS": "StructureTypeVulkan11Things",
		"VK_QUERY_RESULT_64_BIT":              "QueryResult64Bit",
	} {
		if got := m.goConstant(c); got != want {
			t.Errorf("%s is %s, want %s", c, got, want)
		}
	}
}
