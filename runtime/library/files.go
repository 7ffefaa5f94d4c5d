package library

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	partName = regexp.MustCompile(`^(.+)-(\d{5})-of-(\d{5})\.gguf$`)
	quant    = regexp.MustCompile(`(?i)(?:^|[-._/])((?:UD-)?(?:I?Q\d[0-9A-Z_]*|BF16|F16|F32|TQ\d_\d|MXFP4(?:_MOE)?|NVFP4))$`)
)

// defaultQuants are taken where nothing was asked for, the first first.
var defaultQuants = []string{"Q4_K_M", "UD-Q4_K_XL", "Q4_K_S", "Q4_0", "Q8_0"}

// otherUses are how files are named that a model needs for other things than text, and what for.
var otherUses = []struct{ word, purpose string }{
	{"mmproj", "images and audio, which zincrun does not read"},
	{"imatrix", "making quantizations"},
	{"mtp-", "drafting"},
	{"eagle3-", "drafting"},
	{"dflash-", "drafting"},
	{"dspark-", "drafting"},
}

// OtherUse says what a file is for that is no model: "" for a model.
func OtherUse(file string) string {
	name := strings.ToLower(path.Base(file))
	for _, b := range otherUses {
		if strings.Contains(name, b.word) {
			return b.purpose
		}
	}
	return ""
}

// Group is a model among files: one file, or all parts of a split one in order.
type Group struct {
	Stem  string // the name without the part's number and .gguf
	Quant string // "" if the name has none
	Files []string
	// Missing is the name of the first part that is not there.
	Missing string
}

// Part tells apart the name of a part of a split model: its number from 1, of how many.
func Part(file string) (stem string, part, of int, ok bool) {
	m := partName.FindStringSubmatch(file)
	if m == nil {
		return "", 0, 0, false
	}
	part, _ = strconv.Atoi(m[2])
	of, _ = strconv.Atoi(m[3])
	return m[1], part, of, true
}

// Groups sorts GGUF files into models; those for other things are left out.
func Groups(files []string) []Group {
	files = slices.Clone(files)
	slices.Sort(files)
	type key struct {
		stem string
		of   int
	}
	at := map[key]int{}
	var all []Group
	for _, f := range files {
		if !strings.HasSuffix(strings.ToLower(f), ".gguf") || OtherUse(f) != "" {
			continue
		}
		stem, _, of, split := Part(f)
		if !split {
			stem = f[:len(f)-len(".gguf")]
		}
		i, ok := at[key{stem, of}]
		if !ok {
			i = len(all)
			at[key{stem, of}] = i
			all = append(all, Group{Stem: stem, Quant: quantOf(stem)})
		}
		all[i].Files = append(all[i].Files, f)
	}
	for i := range all {
		all[i].complete()
	}
	return all
}

// complete looks whether all parts are there.
func (g *Group) complete() {
	_, _, of, split := Part(g.Files[0])
	if !split {
		return
	}
	for i, f := range g.Files {
		if _, part, _, _ := Part(f); part != i+1 {
			g.Missing = PartOf(g.Stem, i+1, of)
			return
		}
	}
	if len(g.Files) < of {
		g.Missing = PartOf(g.Stem, len(g.Files)+1, of)
	}
}

// PartOf is how a part of a split model is called; parts count from 1.
func PartOf(stem string, part, of int) string {
	return fmt.Sprintf("%s-%05d-of-%05d.gguf", stem, part, of)
}

// quantOf is the quantization that a name, or the folder that it lies in, ends in.
func quantOf(stem string) string {
	for _, s := range []string{stem, path.Dir(stem)} {
		if m := quant.FindStringSubmatch(s); m != nil {
			return strings.ToUpper(m[1])
		}
	}
	return ""
}

// Choose returns the group of that quantization; of an empty one the only group, or the usual. Else it fails, and says
// what there is.
func Choose(groups []Group, tag string) (Group, error) {
	want := []string{tag}
	if tag == "" || strings.EqualFold(tag, "latest") {
		if len(groups) == 1 {
			return groups[0], nil
		}
		want = defaultQuants
	}
	for _, w := range want {
		for _, g := range groups {
			if strings.EqualFold(g.Quant, w) || strings.EqualFold(path.Base(g.Stem), w) {
				return g, nil
			}
		}
	}
	var have []string
	for _, g := range groups {
		name := g.Quant
		if name == "" {
			name = path.Base(g.Stem)
		}
		have = append(have, name)
	}
	switch {
	case len(have) == 0:
		return Group{}, fmt.Errorf("it has no GGUF file of a model")
	case tag == "":
		return Group{}, fmt.Errorf("say which: %s", strings.Join(have, ", "))
	}
	return Group{}, fmt.Errorf("it has no %s, but %s", tag, strings.Join(have, ", "))
}
