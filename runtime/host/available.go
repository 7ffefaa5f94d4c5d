package host

import (
	"bufio"
	"math"
	"os"
	"strconv"
	"strings"
)

// Available is the memory that this process can get: what the system has available, and
// what the limits of its address space and of its group leave, where Linux tells. The Go runtime ends the process
// when an allocation fails, so that one must know before.
func Available() int64 {
	most := int64(math.MaxInt64)
	if kib, ok := field("/proc/meminfo", "MemAvailable:", 1); ok {
		most = min(most, kib<<10)
	}
	if limit, ok := field("/proc/self/limits", "Max address space", 3); ok {
		if kib, ok := field("/proc/self/status", "VmSize:", 1); ok {
			most = min(most, max(0, limit-kib<<10))
		}
	}
	if limit, ok := field("/sys/fs/cgroup/memory.max", "", 0); ok {
		if used, ok := field("/sys/fs/cgroup/memory.current", "", 0); ok {
			most = min(most, max(0, limit-used))
		}
	}
	return most
}

// field is the number that is word n of the line that begins so; words count from 0.
func field(path, line string, n int) (int64, bool) {
	f, err := os.Open(path)
	if err != nil {
		return 0, false
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), line) {
			continue
		}
		words := strings.Fields(lines.Text())
		if n >= len(words) {
			return 0, false
		}
		v, err := strconv.ParseInt(words[n], 10, 64)
		return v, err == nil
	}
	return 0, false
}
