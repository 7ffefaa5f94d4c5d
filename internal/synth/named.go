package synth

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Named are the shapes that Parse knows.
func Named() []Shape { return slices.Concat(Published, Grid) }

// Parse returns the shape that SHAPE[:TYPE][:LAYERS] asks for: a name of Named, with another quantization or number of
// layers.
//
//	qwen3-8b   llama-8b:Q8_0   qwen35-35b-a3b:8   llama-8b:IQ3_S:4
func Parse(asked string) (Shape, error) {
	name, changes, _ := strings.Cut(asked, ":")
	i := slices.IndexFunc(Named(), func(s Shape) bool { return s.Name == name })
	if i < 0 {
		return Shape{}, fmt.Errorf("no shape %q; `go run ./internal/synth/write` lists them", name)
	}
	s := Named()[i]
	for change := range strings.SplitSeq(changes, ":") {
		switch n, err := strconv.Atoi(change); {
		case change == "":
		case err == nil && n > 0:
			s.Layers = n
		case err == nil:
			return Shape{}, fmt.Errorf("%s: %d layers", asked, n)
		case quants[change] != nil:
			s.Quant = change
		default:
			return Shape{}, fmt.Errorf("%s: no quantization %q; there are %s", asked, change, strings.Join(Quants(), " "))
		}
	}
	return s, nil
}
