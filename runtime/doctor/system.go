package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/gpu"
	"github.com/zincc-dev/zincc/internal/table"
)

// clocks looks at what holds clocks down: levels and power limits of AMD's cards, the profile of the computer, the
// processor's governor.
func clocks(m *Machine) []Finding {
	var all []Finding
	for _, c := range m.cards() {
		switch c.vendor {
		case gpu.AMD:
			all = append(all, m.amdClocks(&c)...)
		case gpu.NVIDIA:
			all = append(all, Finding{State: Note, Found: c.name() + ": only its driver tells clocks and power limits",
				Do: "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE shows them"})
		}
	}
	switch profile := m.read("sys/firmware/acpi/platform_profile"); profile {
	case "":
	case "low-power", "quiet", "cool":
		all = append(all, Finding{State: Problem, Found: "power profile " + profile, Do: "powerprofilesctl set performance"})
	default:
		all = append(all, Finding{State: OK, Found: "power profile " + profile})
	}
	const cpu0 = "sys/devices/system/cpu/cpu0/cpufreq/"
	governor, driver, wish := m.read(cpu0+"scaling_governor"), m.read(cpu0+"scaling_driver"), m.read(cpu0+"energy_performance_preference")
	own := driver == "intel_pstate" || driver == "amd-pstate-epp" // whose powersave means: as the preference says
	found := "processor: governor " + governor
	if own && wish != "" {
		found += ", preference " + wish
	}
	switch {
	case governor == "":
	case governor == "powersave" && !own:
		all = append(all, Finding{State: Problem, Found: found, Do: "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"})
	case own && wish == "power":
		all = append(all, Finding{State: Problem, Found: found, Do: "echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"})
	default:
		all = append(all, Finding{State: OK, Found: found})
	}
	return all
}

func (m *Machine) amdClocks(c *card) []Finding {
	var all []Finding
	file := c.at + "/power_dpm_force_performance_level"
	switch level := m.read(file); level {
	case "":
	case "auto", "high":
		all = append(all, Finding{State: OK, Found: c.name() + ": clocks " + level})
	default:
		all = append(all, Finding{State: Problem, Found: fmt.Sprintf("%s: clocks are held: %s", c.name(), level),
			Do: "echo auto | sudo tee /sys/bus/pci/devices/" + c.slot + "/power_dpm_force_performance_level"})
	}
	caps, _ := fs.Glob(m.Root, c.at+"/hwmon/hwmon*/power1_cap")
	for _, file := range caps {
		now, ok := m.number(file)
		usual, ok2 := m.number(file + "_default")
		if ok && ok2 && now < usual {
			all = append(all, Finding{State: Note, Found: fmt.Sprintf("%s: at most %d W, of %d", c.name(), now/1e6, usual/1e6),
				Do: fmt.Sprintf("if that is not meant: echo %d | sudo tee /%s", usual, file)})
		}
	}
	return all
}

// hugePages looks whether weights in the memory of the processor get pages of 2 MiB.
func hugePages(m *Machine) []Finding {
	switch mode := chosen(m.read("sys/kernel/mm/transparent_hugepage/enabled")); mode {
	case "":
		return nil
	case "never":
		return []Finding{{State: Problem, Found: "transparent huge pages: never; weights of plans for the processor lie in small pages",
			Do: "echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled"}}
	default:
		return []Finding{{State: OK, Found: "transparent huge pages: " + mode}}
	}
}

// limits looks for what the group of this process, or one above it, may have less of than the computer has.
func limits(m *Machine) []Finding {
	memory, cpus := m.groupLimits()
	var all []Finding
	total := m.totalMemory()
	if total > 0 && memory < total {
		all = append(all, Finding{State: Note, Found: fmt.Sprintf("memory: %s, of %s", table.Bytes(memory), table.Bytes(total)),
			Do: "models that need more are refused or end the process: raise the limit of the container (docker run --memory) or the unit (MemoryMax)"})
	}
	if n := float64(m.CPUs); cpus < n {
		all = append(all, Finding{State: Note, Found: fmt.Sprintf("processors: the time of %.1f, of %.0f", cpus, n),
			Do: "on a processor more threads than that wait for each other: raise the limit (docker run --cpus, CPUQuota)"})
	}
	if len(all) == 0 && (m.exists("sys/fs/cgroup")) {
		all = append(all, Finding{State: OK, Found: "no group limits memory or processors"})
	}
	return all
}

// groupLimits are the least limits of the groups of this process: bytes, and processors.
func (m *Machine) groupLimits() (memory int64, cpus float64) {
	memory, cpus = math.MaxInt64, math.Inf(1)
	for line := range strings.Lines(m.read("proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for group := path.Clean("/" + parts[2]); ; group = path.Dir(group) {
			m.limitsOf(parts[1], group, &memory, &cpus)
			if group == "/" {
				break
			}
		}
	}
	return memory, cpus
}

// limitsOf lowers the limits to those of a group, of the second kind of groups if it has no controllers, else of the
// first.
func (m *Machine) limitsOf(controllers, group string, memory *int64, cpus *float64) {
	at := path.Join("sys/fs/cgroup", controllers, group)
	file, quotaFile, periodFile := "memory.max", "cpu.max", ""
	if controllers != "" {
		file, quotaFile, periodFile = "memory.limit_in_bytes", "cpu.cfs_quota_us", "cpu.cfs_period_us"
	}
	if n, ok := m.number(path.Join(at, file)); ok {
		*memory = min(*memory, n)
	}
	quota, ok := m.number(path.Join(at, quotaFile))
	period := m.read(path.Join(at, periodFile))
	if periodFile == "" {
		_, period, _ = strings.Cut(m.read(path.Join(at, quotaFile)), " ")
	}
	if p, err := strconv.ParseInt(period, 10, 64); ok && err == nil && quota > 0 && p > 0 {
		*cpus = min(*cpus, float64(quota)/float64(p))
	}
}

// totalMemory is that of the computer, in bytes; 0 where it is not known.
func (m *Machine) totalMemory() int64 {
	for line := range strings.Lines(m.read("proc/meminfo")) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "MemTotal:" {
			kib, _ := strconv.ParseInt(words[1], 10, 64)
			return kib << 10
		}
	}
	return 0
}

// little is so little room on a disk that plans and what goes with them may not fit.
const little = 1 << 30

// folders looks at the folders that are written to.
func folders(m *Machine) []Finding {
	var all []Finding
	for _, f := range m.Folders {
		switch {
		case f.Path == "":
			all = append(all, Finding{State: Problem, Found: fmt.Sprintf("%s: there is no folder for it: %v", f.Name, f.Err), Do: f.Set})
		case f.Err != nil:
			err := f.Err
			if p := new(fs.PathError); errors.As(err, &p) {
				err = p.Err
			}
			all = append(all, Finding{State: Problem, Found: fmt.Sprintf("%s: %s cannot be written: %v", f.Name, f.Path, err), Do: "let this user write there, or " + f.Set})
		case f.Free >= 0 && f.Free < little:
			all = append(all, Finding{State: Problem, Found: fmt.Sprintf("%s: %s has %s free", f.Name, f.Path, table.Bytes(f.Free)),
				Do: "zincrun plans --prune and zincrun rm make room; or " + f.Set})
		case f.Free >= 0:
			all = append(all, Finding{State: OK, Found: fmt.Sprintf("%s: %s, %s free", f.Name, f.Path, table.Bytes(f.Free))})
		default:
			all = append(all, Finding{State: OK, Found: fmt.Sprintf("%s: %s", f.Name, f.Path)})
		}
	}
	return all
}

// compilers looks for zincc, without which only plans run.
func compilers(m *Machine) []Finding {
	if m.Compiler != nil {
		return []Finding{{State: Problem, Found: m.Compiler.Error() + ": model files cannot be compiled", Do: "put both programs into one folder: make install"}}
	}
	return []Finding{{State: OK, Found: "zincc is there"}}
}
