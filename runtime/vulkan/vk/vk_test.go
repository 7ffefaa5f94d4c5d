package vk

import (
	"errors"
	"fmt"
	"testing"
)

func TestResult(t *testing.T) {
	for _, c := range []struct {
		r    Result
		text string
		bad  bool
	}{
		{Success, "VK_SUCCESS", false},
		{Timeout, "VK_TIMEOUT", false},
		{ErrorOutOfDeviceMemory, "VK_ERROR_OUT_OF_DEVICE_MEMORY", true},
		{ErrorDeviceLost, "VK_ERROR_DEVICE_LOST", true},
		{-12345, "VkResult(-12345)", true},
	} {
		if got := c.r.Error(); got != c.text {
			t.Errorf("Result(%d) is %q, want %q", int32(c.r), got, c.text)
		}
		if err := c.r.Err(); (err != nil) != c.bad {
			t.Errorf("%s.Err() is %v", c.text, err)
		}
	}
	if err := fmt.Errorf("allocate: %w", ErrorDeviceLost.Err()); !errors.Is(err, ErrorDeviceLost) {
		t.Errorf("%v does not unwrap to its Result", err)
	}
}

func TestStrings(t *testing.T) {
	if got := StringAt(CString("queue")); got != "queue" {
		t.Errorf("StringAt(CString) = %q", got)
	}
	if got := StringAt(nil); got != "" {
		t.Errorf("StringAt(nil) = %q", got)
	}
	if got := String([]byte("ab\x00cd")); got != "ab" {
		t.Errorf("String stops at %q", got)
	}
	if got := VersionString(MakeVersion(1, 3, 239)); got != "1.3.239" {
		t.Errorf("VersionString = %q", got)
	}
}

// TestFill: commands of extensions that are not enabled are not asked for, and
// a missing command is an error.
func TestFill(t *testing.T) {
	table := []command{
		{name: "core"},
		{name: "wanted", extension: "E1"},
		{name: "unwanted", extension: "E2"},
		{name: "late", extension: "E3", late: true},
	}
	enabled := func(e string) bool { return e == "E1" }
	fn := make([]uintptr, len(table))
	have := map[string]uintptr{"core": 1, "wanted": 2, "unwanted": 3}
	lookup := func(name string) (uintptr, error) { return have[name], nil }
	if err := fill(fn, table, enabled, lookup); err != nil {
		t.Fatal(err)
	}
	if want := "[1 2 0 0]"; fmt.Sprint(fn) != want {
		t.Errorf("table is %v, want %s", fn, want)
	}
	delete(have, "wanted")
	if err := fill(fn, table, enabled, lookup); err == nil {
		t.Error("a missing command of an enabled extension is no error")
	}
	defer func() {
		if recover() == nil {
			t.Error("calling a command that was not loaded does not panic")
		}
	}()
	address(0, &table[2])
}
