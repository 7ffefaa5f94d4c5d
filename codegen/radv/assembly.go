package radv

import (
	"context"
	"regexp"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Assembly returns the instructions of each kernel, empty for those that the driver
// does not compile for the family. It asks the driver, whatever is known. For families
// that the driver's disassembler does not know, they are in the compiler's own notation.
func (c *Compiler) Assembly(ctx context.Context, kernels []Kernel) ([]string, error) {
	if c.driver == "" {
		return nil, ErrNoDriver
	}
	texts := make([]string, len(kernels))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range kernels {
		if !c.takes(&kernels[i]) {
			continue
		}
		group.Go(func() error {
			a, err := c.compile(ctx, &kernels[i], wantAssembly)
			texts[i] = a.Assembly
			return err
		})
	}
	return texts, group.Wait()
}

var (
	// encoding is the comment with an instruction's words.
	encoding = regexp.MustCompile(` *; [0-9a-f]{8}( [0-9a-f]{8})*$`)
	// The compiler's own notation has a type and a number for each register:
	// "v2: %15:v[0-1] = v_lshlrev_b64_e64 4, %13:v[0-1]".
	valueType   = regexp.MustCompile(`(^|, +|:: )[vs][0-9]+b?: `)
	valueNumber = regexp.MustCompile(`%[0-9]+:`)
	// preamble are lines before its instructions.
	preamble = regexp.MustCompile(`^(Shader disassembly|After lowering|ACO shader stage|/\* )`)
)

// tidy leaves instructions and labels, one a line.
func tidy(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = encoding.ReplaceAllString(strings.TrimSpace(line), "")
		if line == "" || preamble.MatchString(line) {
			continue
		}
		label := strings.HasPrefix(line, "BB")
		line = valueNumber.ReplaceAllString(valueType.ReplaceAllString(line, "$1"), "")
		if !label {
			b.WriteString("  ")
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}
