package radv

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/zincc-dev/zincc/plans"
	"github.com/zincc-dev/zincc/runtime/vulkan"
)

// familyVariable is RADV's: it makes a device of that family without hardware.
const familyVariable = "RADV_FORCE_FAMILY"

// childVariable marks the processes that start makes.
const childVariable = "ZINC_RADV_CHILD"

// answerFile is the descriptor that a child answers on: drivers may print on
// standard output.
const answerFile = 3

// request is what a child reads for each kernel, as JSON.
type request struct {
	Name   string
	SPIRV  []byte // words, little endian
	Consts map[uint32]uint32
	Wave   int
	Full   bool
	Want   want
}

// want says what is asked of a kernel.
type want int

const (
	wantFigures  want = iota
	wantAssembly      // beside the figures
	wantMachine       // alone
)

// answer is a Result, or what else was asked for.
type answer struct {
	Result
	Assembly string   `json:",omitempty"`
	Machine  *Machine `json:",omitempty"`
}

// hello is a child's first answer; the others are an answer each.
type hello struct {
	Driver string
	Has    plans.VulkanCapabilities
	Err    string
}

// ready says that Main was called: a program without it would run again as a whole.
var ready bool

// Main turns the process into a child if Open started it as one, and returns
// otherwise. A program that uses this package calls it first in main, a test in
// TestMain.
func Main() {
	if os.Getenv(childVariable) == "" {
		ready = true
		return
	}
	if err := serve(os.Stdin, os.NewFile(answerFile, "answers")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serve answers requests until there are no more.
func serve(r io.Reader, w io.Writer) error {
	in, out := json.NewDecoder(r), json.NewEncoder(w)
	d, err := openDevice()
	if err != nil {
		return out.Encode(hello{Err: err.Error()})
	}
	defer d.Close()
	if err := out.Encode(hello{Driver: d.Info.Driver + " " + d.Info.DriverInfo, Has: d.Info.Capabilities().Vulkan}); err != nil {
		return err
	}
	for {
		var q request
		if err := in.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		a, err := compile(d, &q)
		if err != nil {
			a = answer{Result: Result{Refused: err.Error()}}
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// openDevice opens the device without hardware with all features it has.
func openDevice() (*vulkan.Device, error) {
	all, err := vulkan.Enumerate()
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		// A driver that does not know the variable shows the GPUs that are there.
		if slices.ContainsFunc(info.Heaps, func(h vulkan.Heap) bool { return h.Size > 0 }) {
			continue
		}
		return vulkan.Open(info.Index, plans.VulkanRequirements{Features: featuresOf(&info)})
	}
	return nil, fmt.Errorf("the driver has no device without hardware for family %s", os.Getenv(familyVariable))
}

func featuresOf(info *vulkan.DeviceInfo) []string {
	var names []string
	for name, has := range info.Features {
		if has {
			names = append(names, name)
		}
	}
	return names
}

func compile(d *vulkan.Device, q *request) (answer, error) {
	var a answer
	words := make([]uint32, len(q.SPIRV)/4)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(q.SPIRV[i*4:])
	}
	info := vulkan.PipelineInfo{
		Name: q.Name, Words: words, Constants: q.Consts, SubgroupSize: q.Wave, FullSubgroups: q.Full, Code: q.Want == wantAssembly,
		Bindings: bindings(words),
	}
	if q.Want == wantMachine {
		data, err := d.Cached(info)
		if err == nil {
			a.Machine, err = machineOf(data)
		}
		return a, err
	}
	p, err := d.CreatePipelines([]vulkan.PipelineInfo{info})
	if err != nil {
		return a, err
	}
	defer p[0].Free()
	statistics, err := p[0].Statistics()
	if err != nil {
		return a, err
	}
	if a.Figures, err = figures(statistics); err != nil || q.Want != wantAssembly {
		return a, err
	}
	code, err := p[0].Code()
	a.Assembly = tidy(code["Assembly"])
	return a, err
}

// bindings returns those of a module's buffers, which are of other programs' kernels.
func bindings(words []uint32) []uint32 {
	const header, opDecorate, decorationBinding = 5, 71, 33
	var list []uint32
	for at := header; at < len(words) && words[at]>>16 > 0; at += int(words[at] >> 16) {
		if words[at]&0xffff == opDecorate && at+3 < len(words) && words[at+2] == decorationBinding && !slices.Contains(list, words[at+3]) {
			list = append(list, words[at+3])
		}
	}
	return list
}

// statisticNames are the driver's names in the order of Figures.fields.
var statisticNames = []string{
	"SGPRs", "VGPRs", "Pre-Sched VGPRs", "Spilled SGPRs", "Spilled VGPRs", "Scratch size", "LDS size", "Code size",
	"Instructions", "VALU", "SALU", "VMEM", "SMEM", "Latency", "Inverse Throughput",
}

// figures reads the driver's statistics; all are wanted, so that a driver with
// other names is an error and not a kernel without registers.
func figures(statistics []vulkan.Statistic) (Figures, error) {
	var f Figures
	byName := map[string]float64{}
	for _, s := range statistics {
		byName[s.Name] = s.Value
	}
	for i, at := range f.fields() {
		v, ok := byName[statisticNames[i]]
		if !ok {
			return f, fmt.Errorf("the driver does not tell %q", statisticNames[i])
		}
		*at = int(v)
	}
	return f, nil
}
