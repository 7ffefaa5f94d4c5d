package cli

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Positions is a flag's number of positions: 4096, or 4k and 128k and 1m in units of
// 1024 and 1024 x 1024. It is positive once set.
type Positions int

// String is the number in digits; "0" when none was given.
func (p *Positions) String() string { return strconv.Itoa(int(*p)) }

// Set parses s.
func (p *Positions) Set(s string) error {
	digits, unit := s, 1
	for _, u := range []struct {
		suffix string
		size   int
	}{{"k", 1 << 10}, {"m", 1 << 20}} {
		if head, ok := strings.CutSuffix(strings.ToLower(s), u.suffix); ok {
			digits, unit = head, u.size
		}
	}
	n, err := strconv.Atoi(digits)
	if err != nil || n <= 0 || n > math.MaxInt32/unit {
		return fmt.Errorf("want a positive number such as 4096, 16k or 1m")
	}
	*p = Positions(n * unit)
	return nil
}

// Type is what help calls the value.
func (p *Positions) Type() string { return "positions" }
