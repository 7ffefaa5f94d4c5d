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
// has none, its ops: "blk.3.attn_q+attn_k+attn_v", "blk.3.rope+kvwrite". A group
// without globals of a layer belongs to the layer whose results it reads.
func nameSites(p *ir.Program) error {
	for _, f := range p.Funcs {
		taken := map[string]bool{}
		layerOf := map[*ir.Value]string{}
		for _, g := range f.Groups {
			layer := layerName(g, layerOf)
			base := layer + siteName(g, layer)
			name := base
			for i := 2; taken[name]; i++ {
				name = fmt.Sprintf("%s.%d", base, i)
			}
			taken[name] = true
			g.Name = name
			for _, op := range g.Ops {
				if op.Result != nil {
					layerOf[op.Result] = layer
				}
			}
		}
	}
	return nil
}

// Rename names a group, whose ops have changed since NameSites, after these.
func Rename(g *ir.Group) {
	layer := layerPrefix.FindString(g.Name)
	g.Name = layer + siteName(g, layer)
}

// layerName returns the prefix of the layer that g belongs to, empty if none.
func layerName(g *ir.Group, layerOf map[*ir.Value]string) string {
	in := g.Inputs()
	for _, v := range in {
		if m := layerPrefix.FindString(v.Name); m != "" {
			return m
		}
	}
	global := slices.ContainsFunc(in, func(v *ir.Value) bool { return v.Class == ir.Weight })
	for _, v := range slices.Backward(in) {
		if l := layerOf[v]; l != "" && !global && len(g.Writes()) == 0 {
			return l
		}
	}
	return ""
}

func siteName(g *ir.Group, layer string) string {
	var weights, kinds []string
	for _, op := range g.Ops {
		if op.Kind.Fusion == ir.MatMul || op.Kind.Name == "expert_linear" {
			name := strings.TrimSuffix(op.Args[1].Name, ".weight")
			weights = append(weights, strings.TrimPrefix(name, layer))
		} else if op.Kind.Fusion != ir.RowNorm && !slices.Contains(kinds, op.Kind.Name) {
			kinds = append(kinds, op.Kind.Name)
		}
	}
	if len(weights) > 0 {
		if slices.Contains(kinds, "deltanet") {
			weights = append(weights, "deltanet")
		}
		return strings.Join(weights, "+")
	}
	if len(kinds) == 0 {
		return g.Ops[0].Kind.Name
	}
	return strings.Join(kinds, "+")
}
