package modules

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/plans"
)

// readPTX follows addresses from the parameters of the entry point through the registers. It knows
// the form that this program writes: one entry point, one instruction a line, and behind memory that is
// asked for its bytes.
func readPTX(code []byte, _ map[uint32]uint32) (*Code, error) {
	r := &ptxReader{
		code: &Code{Loads: map[int]bool{}, Stores: map[int]bool{}},
		from: map[string]map[int]bool{},
	}
	// What a loop carries around is known the second time.
	for range 2 {
		for number, line := range strings.Split(string(code), "\n") {
			line, comment, _ := strings.Cut(line, "//")
			if asked, ok := strings.CutPrefix(line, ".extern .shared "); ok {
				line = ".shared " + strings.Replace(asked, "[]", "["+strings.TrimSpace(comment)+"]", 1)
			}
			if err := r.line(strings.TrimSpace(line)); err != nil {
				return nil, fmt.Errorf("line %d: %w", number+1, err)
			}
		}
		r.known = true
	}
	if r.code.Entry == "" {
		return nil, fmt.Errorf("no entry point")
	}
	if err := r.overlap(string(code)); err != nil {
		return nil, err
	}
	arch, exact := r.arch, r.exact
	r.code.lacks = func(need *plans.Requirements) []string {
		switch {
		case need.CUDA == nil || need.CUDA.Arch < arch:
			return []string{fmt.Sprintf("the architecture sm_%d", arch)}
		case exact && (need.CUDA.Arch != arch || !need.CUDA.Exact):
			return []string{fmt.Sprintf("the architecture sm_%da and no other", arch)}
		}
		return nil
	}
	return r.code, nil
}

type ptxReader struct {
	code  *Code
	from  map[string]map[int]bool // arguments that the address in a register may be of
	arch  int
	exact bool // no later one has the instructions
	known bool // declarations were read
}

func (r *ptxReader) line(line string) error {
	if !strings.HasPrefix(line, ".") {
		return r.instruction(strings.TrimSuffix(line, ";"))
	}
	if r.known {
		return nil
	}
	word, rest, _ := strings.Cut(line, " ")
	var err error
	switch word {
	case ".target":
		rest, r.exact = strings.CutSuffix(rest, "a")
		r.arch, err = strconv.Atoi(strings.TrimPrefix(rest, "sm_"))
	case ".visible":
		if r.code.Entry != "" {
			return fmt.Errorf("a second entry point")
		}
		name, params, _ := strings.Cut(strings.TrimPrefix(rest, ".entry "), "(")
		r.code.Entry, r.code.Args = name, strings.Count(params, ".param .u64 ")
	case ".reqntid":
		size, _, _ := strings.Cut(rest, ",")
		r.code.Workgroup, err = strconv.Atoi(size)
	case ".shared":
		at, end := strings.IndexByte(rest, '['), strings.IndexByte(rest, ']')
		if at < 0 || end < at {
			return fmt.Errorf("a shared array without a length")
		}
		var n int
		n, err = strconv.Atoi(rest[at+1 : end])
		if n < 0 || n > 1<<30 {
			return fmt.Errorf("a shared array of %d bytes", n)
		}
		r.code.Shared += n
	}
	return err
}

// instruction notes what it accesses, and where its result is from.
func (r *ptxReader) instruction(text string) error {
	if strings.HasPrefix(text, "@") {
		_, text, _ = strings.Cut(text, " ")
	}
	name, rest, _ := strings.Cut(text, " ")
	operands := strings.FieldsFunc(rest, func(c rune) bool { return strings.ContainsRune(" ,{}|", c) })
	parts := strings.Split(name, ".")
	if len(operands) == 0 {
		return nil
	}
	switch op := parts[0]; op {
	case "ld", "st", "atom", "red", "prefetch":
		return r.access(op, parts, operands)
	case "cp":
		return r.copy(name, operands)
	case "ldu", "tex", "surf", "suld", "sust":
		r.code.Stray = name
		return nil
	}
	// The result is first; of a move it may be two halves.
	results := 1
	if name == "mov.b64" && strings.HasPrefix(rest, "{") {
		results = 2
	}
	for i := results; i < len(operands); i++ {
		for _, to := range operands[:results] {
			r.flow(to, r.from[operands[i]])
		}
	}
	return nil
}

// copy notes what is copied to shared memory.
func (r *ptxReader) copy(name string, operands []string) error {
	switch {
	case name == "cp.async.wait_group":
	case strings.HasSuffix(strings.TrimSuffix(name, ".L2::128B"), ".shared.global") && len(operands) == 3:
		return r.access("ld", []string{"ld", "global"}, operands[1:])
	case strings.TrimSuffix(name, ".L2::cache_hint") == "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" && len(operands) >= 4:
		return r.access("ld", []string{"ld", "global"}, operands[1:2])
	default:
		r.code.Stray = name
	}
	return nil
}

func (r *ptxReader) flow(to string, arguments map[int]bool) {
	if len(arguments) == 0 {
		return
	}
	if r.from[to] == nil {
		r.from[to] = map[int]bool{}
	}
	maps.Copy(r.from[to], arguments)
}

// access notes a load, a store or both.
func (r *ptxReader) access(op string, parts, operands []string) error {
	space := ""
	for _, p := range parts[1:] {
		switch p {
		case "global", "shared", "param", "local", "const":
			space = p
		}
	}
	var address string
	for _, o := range operands {
		if strings.HasPrefix(o, "[") {
			address, _, _ = strings.Cut(strings.Trim(o, "[]"), "+")
		}
	}
	switch space {
	case "shared":
	case "param":
		i, err := strconv.Atoi(strings.TrimPrefix(address, "a"))
		if err != nil || op != "ld" || i < 0 || i >= r.code.Args {
			return fmt.Errorf("parameter %q, of %d", address, r.code.Args)
		}
		r.flow(operands[0], map[int]bool{i: true})
	case "global":
		arguments := r.from[address]
		if len(arguments) == 0 {
			r.code.Stray = "register " + address
		}
		if op != "st" {
			maps.Copy(r.code.Loads, arguments)
		}
		if op != "ld" && op != "prefetch" {
			maps.Copy(r.code.Stores, arguments)
		}
	default:
		r.code.Stray = strings.Join(parts, ".")
	}
	return nil
}

// disassemblePTX has nothing to do: the code is text.
func disassemblePTX(code []byte, _ map[uint32]uint32) (string, error) { return string(code), nil }
