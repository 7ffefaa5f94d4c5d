package vulkan

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
)

const testTimeout = time.Minute

// TestMain runs the tests on lavapipe unless VK_DRIVER_FILES names another
// driver, with the validation layer and away from the user's pipeline cache.
func TestMain(m *testing.M) {
	if os.Getenv("VK_DRIVER_FILES") == "" {
		os.Setenv("VK_DRIVER_FILES", "/usr/share/vulkan/icd.d/lvp_icd.json")
	}
	dir, err := os.MkdirTemp("", "zincc-cache-")
	if err != nil {
		panic(err)
	}
	os.Setenv("XDG_CACHE_HOME", dir)
	os.Setenv("XDG_CONFIG_HOME", dir)
	os.Setenv("ZINC_VALIDATE", "1")
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// openTest opens the first device and checks at the end of the test that the
// validation layer had nothing to say.
func openTest(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0, plans.VulkanRequirements{})
	if err != nil {
		t.Fatalf("a Vulkan device (lavapipe, from mesa-vulkan-drivers) and the validation layer are needed: %v", err)
	}
	t.Cleanup(func() {
		d.Close()
		for _, m := range d.ValidationMessages() {
			t.Errorf("validation: %s", m)
		}
	})
	return d
}

// assemble makes SPIR-V of a file in testdata.
func assemble(t *testing.T, name string) []uint32 {
	t.Helper()
	out := filepath.Join(t.TempDir(), name+".spv")
	cmd := exec.Command("spirv-as", "--target-env", "vulkan1.2", "-o", out, filepath.Join("testdata", name+".spvasm"))
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("spirv-as is needed: %v\n%s", err, text)
	}
	if text, err := exec.Command("spirv-val", "--target-env", "vulkan1.2", out).CombinedOutput(); err != nil {
		t.Fatalf("spirv-val: %v\n%s", err, text)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]uint32, len(data)/4)
	if err := binary.Read(bytes.NewReader(data), binary.LittleEndian, words); err != nil {
		t.Fatal(err)
	}
	return words
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run records, submits and waits.
func run(t *testing.T, d *Device, record func(*Commands)) {
	t.Helper()
	c := recorded(t, d, record)
	n := must[uint64](t)(d.Submit(0, c))
	check(t, d.Wait(n, testTimeout))
	c.Free()
}

func recorded(t *testing.T, d *Device, record func(*Commands)) *Commands {
	t.Helper()
	c := must[*Commands](t)(d.NewCommands())
	record(c)
	check(t, c.End())
	return c
}

// upload makes a device-local buffer of those words.
func upload(t *testing.T, d *Device, words []uint32) *Buffer {
	t.Helper()
	b := must[*Buffer](t)(d.Alloc(int64(len(words)*4), DeviceLocal))
	staging := must[*Buffer](t)(d.Alloc(b.Size(), Upload))
	defer staging.Free()
	for i, w := range words {
		binary.LittleEndian.PutUint32(staging.Bytes()[i*4:], w)
	}
	run(t, d, func(c *Commands) {
		c.Copy(b, 0, staging, 0, b.Size())
		c.Barrier(Transfer, Compute|Transfer)
	})
	return b
}

// download reads a buffer back.
func download(t *testing.T, d *Device, b *Buffer) []uint32 {
	t.Helper()
	r := must[*Buffer](t)(d.Alloc(b.Size(), Readback))
	defer r.Free()
	run(t, d, func(c *Commands) {
		c.Barrier(Compute|Transfer, Transfer)
		c.Copy(r, 0, b, 0, b.Size())
		c.Barrier(Transfer, Host)
	})
	words := make([]uint32, b.Size()/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(r.Bytes()[i*4:])
	}
	return words
}

// argBlock makes an argument block of the addresses.
func argBlock(t *testing.T, d *Device, buffers ...*Buffer) *Buffer {
	t.Helper()
	b := must[*Buffer](t)(d.Alloc(int64(len(buffers)*addressSize), Upload))
	for i, x := range buffers {
		binary.LittleEndian.PutUint64(b.Bytes()[i*addressSize:], x.Address())
	}
	return b
}

func wantWords(t *testing.T, got []uint32, want func(i int) uint32) {
	t.Helper()
	for i, g := range got {
		if g != want(i) {
			t.Fatalf("element %d of %d is %d, want %d", i, len(got), g, want(i))
		}
	}
}
