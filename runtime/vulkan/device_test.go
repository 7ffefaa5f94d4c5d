package vulkan

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/driver"
	"github.com/zincc-dev/zincc/runtime/vulkan/vk"
)

func TestEnumerate(t *testing.T) {
	infos := must[[]DeviceInfo](t)(Enumerate())
	if len(infos) == 0 {
		t.Fatal("no Vulkan device; mesa-vulkan-drivers has lavapipe")
	}
	for _, info := range infos {
		if info.Name == "" || info.Type == "" || info.Driver == "" || len(info.UUID) != 32 {
			t.Errorf("incomplete identity: %+v", info)
		}
		if info.Limits.WorkgroupInvocations == 0 || info.Limits.AllocationSize == 0 || info.Subgroup.Default == 0 || len(info.Heaps) == 0 {
			t.Errorf("incomplete limits: %+v", info)
		}
		text := must[[]byte](t)(json.Marshal(info))
		var back DeviceInfo
		check(t, json.Unmarshal(text, &back))
		if back.Name != info.Name || back.Features["bufferDeviceAddress"] != info.Features["bufferDeviceAddress"] {
			t.Errorf("JSON does not round-trip: %s", text)
		}
	}
}

func TestRequirements(t *testing.T) {
	info := DeviceInfo{
		Name: "toy", api: vk.Version12, API: "1.2.0",
		Features:   map[string]bool{"bufferDeviceAddress": true, "timelineSemaphore": true, "shaderInt8": false, "cooperativeMatrix": false},
		Extensions: []string{"VK_A", "VK_B"},
		Subgroup:   SubgroupInfo{Default: 32, Min: 16, Max: 32},
		Limits:     Limits{WorkgroupInvocations: 256, SharedMemory: 1024},
		Heaps:      []Heap{{Size: 100, DeviceLocal: true}, {Size: 1000}},
	}
	for _, c := range []struct {
		name string
		need plans.VulkanRequirements
		want string // part of the error; empty for none
	}{
		{"nothing", plans.VulkanRequirements{}, ""},
		{"all there", plans.VulkanRequirements{Extensions: []string{"VK_B"}, Subgroup: [2]int{16, 32}, Workgroup: 256, Shared: 1024}, ""},
		{"feature", plans.VulkanRequirements{Features: []string{"shaderInt8"}}, "device toy: lacks the feature shaderInt8"},
		{"matrices", plans.VulkanRequirements{Features: []string{"cooperativeMatrix"}}, "lacks the feature cooperativeMatrix; zincc compiles for such drivers with --target NAME-nomatrix"},
		{"unknown feature", plans.VulkanRequirements{Features: []string{"fastMath"}}, "feature fastMath is not known"},
		{"extension", plans.VulkanRequirements{Extensions: []string{"VK_C"}}, "lacks the extension VK_C"},
		{"subgroup", plans.VulkanRequirements{Subgroup: [2]int{64, 64}}, "subgroups of 16 to 32, 64 to 64 are needed"},
		{"workgroup", plans.VulkanRequirements{Workgroup: 512}, "256 invocations of a workgroup, 512 are needed"},
		{"shared", plans.VulkanRequirements{Shared: 2048}, "1024 bytes of shared memory, 2048 are needed"},
	} {
		err := info.Check(c.need)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	for memory, want := range map[int64]string{100: "", 101: "100 bytes of device memory, 101 are needed"} {
		err := info.Meets(&plans.Requirements{Memory: memory, Vulkan: &plans.VulkanRequirements{}})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%d bytes: error %v, want %q", memory, err, want)
		}
	}
	info.api, info.API = vk.Version11, "1.1.0"
	if err := info.Check(plans.VulkanRequirements{}); err == nil {
		t.Error("Vulkan 1.1 is accepted")
	}
}

func TestOpenRefuses(t *testing.T) {
	if _, err := Open(99, plans.VulkanRequirements{}); err == nil || !strings.Contains(err.Error(), "device 99") {
		t.Errorf("index 99: %v", err)
	}
	_, err := Open(0, plans.VulkanRequirements{Extensions: []string{"VK_NOT_there"}})
	if err == nil || !strings.Contains(err.Error(), "VK_NOT_there") {
		t.Errorf("missing extension: %v", err)
	}
}

// TestOpenWithEverything enables every feature that the device has.
func TestOpenWithEverything(t *testing.T) {
	info := must[[]DeviceInfo](t)(Enumerate())[0]
	var need plans.VulkanRequirements
	for name, have := range info.Features {
		if have {
			need.Features = append(need.Features, name)
		}
	}
	d := must[*Device](t)(Open(0, need))
	d.Close()
	for _, m := range d.ValidationMessages() {
		t.Errorf("validation: %s", m)
	}
}

func TestAlloc(t *testing.T) {
	d := openTest(t)
	for _, kind := range []MemoryKind{DeviceLocal, Upload, Readback} {
		b := must[*Buffer](t)(d.Alloc(1000, kind))
		if b.Address() == 0 || b.Size() != 1000 {
			t.Errorf("%s: address %#x, size %d", memoryKinds[kind].name, b.Address(), b.Size())
		}
		if mapped := len(b.Bytes()); kind == DeviceLocal && mapped != 0 || kind != DeviceLocal && mapped != 1000 {
			t.Errorf("%s: %d bytes mapped", memoryKinds[kind].name, mapped)
		}
		b.Free()
		b.Free() // once is enough
	}
	for _, c := range []struct {
		size int64
		want string
	}{
		{0, "allocate 0 bytes"},
		{-1, "allocate -1 bytes"},
		{1 << 50, "limited to"},
	} {
		if _, err := d.Alloc(c.size, DeviceLocal); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Alloc(%d): %v, want %q", c.size, err, c.want)
		}
	}
}

// TestFreeWhilePending frees what a submission uses while it runs. It goes when that has ended.
func TestFreeWhilePending(t *testing.T) {
	d := openTest(t)
	big := must[*Buffer](t)(d.Alloc(64<<20, DeviceLocal))
	stamps := must[*Timestamps](t)(d.NewTimestamps(1))
	slow := recorded(t, d, func(c *Commands) {
		c.ResetTimestamps(stamps, 0, stamps.count)
		for range 40 {
			c.Fill(big, 0, big.Size(), 1)
			c.Barrier(Transfer, Transfer)
		}
		c.Timestamp(stamps, 0)
	})
	n := must[uint64](t)(d.Submit(0, slow))
	slow.Free()
	stamps.Free()
	big.Free()
	big.Free() // once is enough
	if done := must[uint64](t)(d.Completed()); done >= n {
		t.Fatal("the submission has ended before its memory was freed")
	}
	if waiting := d.owned.Ending(); waiting != 3 {
		t.Errorf("%d resources wait for the submission, want 3", waiting)
	}
	check(t, d.Wait(n, testTimeout))
	must[*Buffer](t)(d.Alloc(16, DeviceLocal)).Free()
	if waiting := d.owned.Ending(); waiting != 0 {
		t.Errorf("%d resources wait for nothing", waiting)
	}
}

func TestHeapText(t *testing.T) {
	d := openTest(t)
	if got := d.heapText(0); !strings.HasPrefix(got, "heap 0 has ") {
		t.Errorf("heap text %q", got)
	}
	for n, want := range map[uint64]string{17: "17 bytes", 3 << 19: "1.50 MiB", 5 << 29: "2.50 GiB"} {
		if got := bytesText(n); got != want {
			t.Errorf("%d is %q, want %q", n, got, want)
		}
	}
}

// TestQueueError: a lost device is told in one line that names it.
func TestQueueError(t *testing.T) {
	d := &Device{Info: DeviceInfo{Name: "toy"}}
	err := d.queueError(vk.ErrorDeviceLost, "wait for", 12)
	if !errors.Is(err, vk.ErrorDeviceLost) || !errors.Is(err, driver.ErrLost) || !strings.HasPrefix(err.Error(), "device toy: wait for submission 12: VK_ERROR_DEVICE_LOST: ") {
		t.Errorf("error %v", err)
	}
}

func affine(t *testing.T, d *Device, multiplier, addend uint32) *Pipeline {
	t.Helper()
	info := PipelineInfo{
		Name: "affine", Words: assemble(t, "affine"),
		Constants:     map[uint32]uint32{0: 64, 1: multiplier, 2: addend},
		SubgroupSize:  d.Info.Subgroup.Max,
		FullSubgroups: true,
	}
	return must[[]*Pipeline](t)(d.CreatePipelines([]PipelineInfo{info}))[0]
}

func TestDispatch(t *testing.T) {
	d := openTest(t)
	words := make([]uint32, 64*33)
	for i := range words {
		words[i] = uint32(i * i)
	}
	x := upload(t, d, words)
	y := must[*Buffer](t)(d.Alloc(x.Size(), DeviceLocal))
	args := argBlock(t, d, x, y)
	p := affine(t, d, 7, 5)
	run(t, d, func(c *Commands) {
		c.Bind(p)
		c.Push(args.Address())
		c.Dispatch(33, 1, 1)
	})
	wantWords(t, download(t, d, y), func(i int) uint32 { return uint32(i*i)*7 + 5 })
}

func TestDispatchIndirect(t *testing.T) {
	d := openTest(t)
	x := upload(t, d, make([]uint32, 256))
	args := argBlock(t, d, x, x)
	grid := must[*Buffer](t)(d.Alloc(16, Upload))
	for i, n := range []uint32{0, 2, 1, 1} {
		binary.LittleEndian.PutUint32(grid.Bytes()[i*4:], n)
	}
	p := affine(t, d, 1, 9)
	run(t, d, func(c *Commands) {
		c.Barrier(Host, Indirect)
		c.Bind(p)
		c.Push(args.Address())
		c.DispatchIndirect(grid, 4)
	})
	wantWords(t, download(t, d, x), func(i int) uint32 {
		if i < 128 {
			return 9
		}
		return 0
	})
}

// TestReplay submits one command buffer 1000 times, several ahead, while the
// garbage collector runs all the time.
func TestReplay(t *testing.T) {
	const replays, ahead = 1000, 4
	d := openTest(t)
	x := upload(t, d, make([]uint32, 64*4))
	y := must[*Buffer](t)(d.Alloc(x.Size(), DeviceLocal))
	there, back := argBlock(t, d, x, y), argBlock(t, d, y, x)
	p := affine(t, d, 3, 1)
	c := recorded(t, d, func(c *Commands) {
		c.Barrier(Compute|Transfer, Compute)
		c.Bind(p)
		c.Push(there.Address())
		c.Dispatch(4, 1, 1)
		c.Barrier(Compute, Compute)
		c.Push(back.Address())
		c.Dispatch(4, 1, 1)
	})

	var stop atomic.Bool
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for !stop.Load() {
			runtime.GC()
		}
	}()
	for i := 0; i < replays; i += 2 {
		n := must[uint64](t)(d.Submit(0, c, c)) // twice in one submission, too
		if n > ahead {
			check(t, d.Wait(n-ahead, testTimeout))
		}
	}
	n := must[uint64](t)(d.Submit(0))
	check(t, d.Wait(n, testTimeout))
	if done := must[uint64](t)(d.Completed()); done != n {
		t.Errorf("%d submissions completed, want %d", done, n)
	}
	stop.Store(true)
	<-collected

	want := uint32(0)
	for range 2 * replays {
		want = want*3 + 1
	}
	wantWords(t, download(t, d, x), func(int) uint32 { return want })
}

// TestSubmitAfter orders submissions without barriers by waiting for one.
func TestSubmitAfter(t *testing.T) {
	d := openTest(t)
	x := must[*Buffer](t)(d.Alloc(64, DeviceLocal))
	y := must[*Buffer](t)(d.Alloc(64, DeviceLocal))
	fill := recorded(t, d, func(c *Commands) { c.Fill(x, 0, 64, 77) })
	move := recorded(t, d, func(c *Commands) { c.Copy(y, 0, x, 0, 64) })
	n := must[uint64](t)(d.Submit(0, fill))
	n = must[uint64](t)(d.Submit(n, move))
	check(t, d.Wait(n, testTimeout))
	wantWords(t, download(t, d, y), func(int) uint32 { return 77 })
	if _, err := d.Submit(n+10, move); err == nil {
		t.Error("waiting for a submission that does not exist is accepted")
	}
	if err := d.Wait(n+10, testTimeout); err == nil {
		t.Error("waiting on the host for a submission that does not exist is accepted")
	}
	slow := recorded(t, d, func(c *Commands) {
		big := must[*Buffer](t)(d.Alloc(64<<20, DeviceLocal))
		for range 20 {
			c.Fill(big, 0, big.Size(), 1)
			c.Barrier(Transfer, Transfer)
		}
	})
	n = must[uint64](t)(d.Submit(0, slow))
	if err := d.Wait(n, time.Microsecond); !errors.Is(err, vk.Timeout) {
		t.Errorf("waiting too short: %v", err)
	}
	check(t, d.Wait(n, testTimeout))
}

// TestMissingBarrier: the synchronization checks of the layer are on.
func TestMissingBarrier(t *testing.T) {
	d := must[*Device](t)(Open(0, plans.VulkanRequirements{}))
	defer d.Close()
	x := must[*Buffer](t)(d.Alloc(64, DeviceLocal))
	y := must[*Buffer](t)(d.Alloc(64, DeviceLocal))
	run(t, d, func(c *Commands) {
		c.Fill(x, 0, 64, 1)
		c.Barrier(Transfer, Transfer)
		c.Copy(y, 0, x, 0, 64)
	})
	if m := d.ValidationMessages(); len(m) != 0 {
		t.Fatalf("with the barrier: %q", m)
	}
	run(t, d, func(c *Commands) {
		c.Barrier(Transfer, Transfer)
		c.Fill(x, 0, 64, 1)
		c.Copy(y, 0, x, 0, 64)
	})
	m := d.ValidationMessages()
	if len(m) == 0 || !strings.Contains(m[0], "SYNC-HAZARD-READ-AFTER-WRITE") {
		t.Errorf("without the barrier: %q, want a hazard", m)
	}
}

func TestTimestamps(t *testing.T) {
	d := openTest(t)
	x := must[*Buffer](t)(d.Alloc(1<<20, DeviceLocal))
	s := must[*Timestamps](t)(d.NewTimestamps(2))
	run(t, d, func(c *Commands) {
		c.ResetTimestamps(s, 0, s.count)
		c.Timestamp(s, 0)
		c.Fill(x, 0, x.Size(), 3)
		c.Timestamp(s, 1)
	})
	times := must[[]time.Duration](t)(s.Read())
	if times[0] != 0 || times[1] <= 0 || times[1] > testTimeout {
		t.Errorf("times are %v", times)
	}
}

// TestPipelines makes many pipelines of one module, and errors name theirs.
func TestPipelines(t *testing.T) {
	d := openTest(t)
	words := assemble(t, "affine")
	var infos []PipelineInfo
	for i := range uint32(64) {
		infos = append(infos, PipelineInfo{Name: "affine", Words: words, Constants: map[uint32]uint32{2: i}})
	}
	pipelines := must[[]*Pipeline](t)(d.CreatePipelines(infos))
	x := upload(t, d, make([]uint32, 64))
	args := argBlock(t, d, x, x)
	run(t, d, func(c *Commands) {
		c.Push(args.Address())
		for _, p := range pipelines {
			c.Bind(p)
			c.Dispatch(1, 1, 1)
			c.Barrier(Compute, Compute)
		}
	})
	wantWords(t, download(t, d, x), func(int) uint32 { return 64 * 63 / 2 })

	for _, c := range []struct {
		info PipelineInfo
		want string
	}{
		{PipelineInfo{Name: "hollow"}, "pipeline hollow: no SPIR-V"},
		{PipelineInfo{Name: "wide", Words: words, SubgroupSize: 1 << 20}, "pipeline wide: needs subgroups of 1048576"},
	} {
		if _, err := d.CreatePipelines([]PipelineInfo{infos[0], c.info}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.info.Name, err, c.want)
		}
	}
}

// TestPipelineCache: the cache is written, survives damage, and is used again.
func TestPipelineCache(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	affine(t, openTest(t), 2, 2)
	files, err := filepath.Glob(filepath.Join(dir, "zincc", "pipelines", "*"))
	if err != nil || len(files) != 1 || filepath.Ext(files[0]) != ".bin" {
		t.Fatalf("cache files %v, %v", files, err)
	}
	good := must[[]byte](t)(os.ReadFile(files[0]))
	sum := sha256.Sum256(good[sha256.Size:])
	for name, data := range map[string][]byte{
		"planted": append(sum[:], good[sha256.Size:]...), // with a sum that anybody can make
		"empty":   {},
		"short":   good[:10],
		"damaged": append(append([]byte{}, good[:len(good)-1]...), good[len(good)-1]^1),
		"whole":   good,
	} {
		check(t, os.WriteFile(files[0], data, 0o666))
		d := openTest(t)
		var c pipelineCache
		if got := c.read(d); (len(got) > 0) != (name == "whole") {
			t.Errorf("%s: %d bytes go to the driver", name, len(got))
		}
		affine(t, d, 2, 2)
		if got := c.read(d); len(got) == 0 {
			t.Errorf("%s: the cache was not written again", name)
		}
	}
}

func TestProbe(t *testing.T) {
	t.Setenv("ZINC_VALIDATE", "1")
	d := must[*Device](t)(Open(0, ProbeRequirements()))
	r, err := d.Probe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d.Close()
	for _, m := range d.ValidationMessages() {
		t.Errorf("validation: %s", m)
	}
	if r.ReadBandwidth <= 0 || r.ReadWorkgroups == 0 || r.SubmitBest <= 0 || r.SubmitMean < r.SubmitBest || len(r.Dispatches) != len(probeWorkgroups) {
		t.Errorf("probe result %+v", r)
	}
	for _, p := range r.Dispatches {
		if p.Alone <= 0 || p.Barrier <= 0 {
			t.Errorf("dispatch %+v", p)
		}
	}
}
