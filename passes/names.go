package passes

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

var layerPrefix = regexp.MustCompile(`^blk\.[0-9]+\.`)

// nameSites names every group after its layer and its matmul weights or, if it
// has none, its ops: "blk.3.attn_q+attn_k+attn_v", "blk.3.rope+kvwrite".
func nameSites(p *ir.Program) error {
	for _, f := range p.Funcs {
		taken := map[string]bool{}
		for _, g := range f.Groups {
			name := siteName(g)
			for i := 2; taken[name]; i++ {
				name = fmt.Sprintf("%s.%d", siteName(g), i)
			}
			taken[name] = true
			g.Name = name
		}
	}
	return nil
}

func siteName(g *ir.Group) string {
	prefix := ""
	var weights, kinds []string
	for _, op := range g.Ops {
		for _, a := range op.Args {
			if m := layerPrefix.FindString(a.Name); m != "" {
				prefix = m
			}
		}
		if op.Kind.Fusion == ir.MatMul || op.Kind.Name == "expert_linear" {
			name := strings.TrimSuffix(op.Args[1].Name, ".weight")
			weights = append(weights, strings.TrimPrefix(name, prefix))
		} else if op.Kind.Fusion != ir.RowNorm && !slices.Contains(kinds, op.Kind.Name) {
			kinds = append(kinds, op.Kind.Name)
		}
	}
	if len(weights) > 0 {
		return prefix + strings.Join(weights, "+")
	}
	if len(kinds) == 0 {
		kinds = []string{g.Ops[0].Kind.Name}
	}
	return prefix + strings.Join(kinds, "+")
}
