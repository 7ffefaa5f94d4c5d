package processor

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// least are the features without which this program holds no code for an architecture.
var least = map[string][]string{
	"amd64": {"avx2", "bmi2", "f16c", "fma"},
	"arm64": {"dotprod"},
}

// Usable fails if there can be no machine code in a plan for this processor.
func Usable() error {
	names, known := least[Arch]
	if !known {
		return fmt.Errorf("there is no code for %s", Arch)
	}
	if missing := Missing(names); len(missing) > 0 {
		return fmt.Errorf("this processor lacks %s", strings.Join(missing, ", "))
	}
	return nil
}

// Name is what the system calls the processor; the architecture where it does not say.
func Name() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return Arch
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" && strings.TrimSpace(value) != "" {
			return strings.TrimSpace(value)
		}
	}
	return Arch
}
