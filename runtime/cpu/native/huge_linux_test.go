package native

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestHugePages: where the system has huge pages, large memory lies in them to its end, which the last one need not
// fill.
func TestHugePages(t *testing.T) {
	if _, err := os.Stat("/sys/kernel/mm/transparent_hugepage"); err != nil {
		return // the system has none
	}
	for _, size := range []int64{HugePage, HugePage + 1, 3 * HugePage / 2, 5*HugePage - 1} {
		m, err := AllocMemory(size)
		if err != nil {
			t.Fatal(err)
		}
		first := uint64(address(m.Bytes))
		end := first + uint64(size+HugePage-1)/HugePage*HugePage
		if first%HugePage != 0 || int64(len(m.Bytes)) != size {
			t.Errorf("%d bytes: %d at %#x", size, len(m.Bytes), first)
		}
		if from, to := huge(t, first); from > first || to < end {
			t.Errorf("%d bytes at %#x: huge pages from %#x to %#x", size, first, from, to)
		}
		m.Free()
	}
}

// huge is the mapping at an address, if it is to have huge pages.
func huge(t *testing.T, address uint64) (from, to uint64) {
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var a, b uint64
		if n, _ := fmt.Sscanf(lines.Text(), "%x-%x ", &a, &b); n == 2 {
			from, to = a, b
		}
		if flags, ok := strings.CutPrefix(lines.Text(), "VmFlags:"); ok && from <= address && address < to {
			if strings.Contains(flags+" ", " hg ") {
				return from, to
			}
			return 0, 0
		}
	}
	return 0, 0
}
