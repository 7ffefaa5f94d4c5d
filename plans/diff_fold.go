package plans

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// siteChange is one thing that differs at a site of an entry.
type siteChange struct{ entry, site, what, a, b string }

// fold joins the differences that all layers, all sites or several entries have in
// common.
type fold struct {
	entries []string
	sites   map[string][]string // by entry, in order: also those without a difference
	changes []siteChange
}

func newFold() *fold { return &fold{sites: map[string][]string{}} }

// site says that the entry has the site in one of the plans at least.
func (f *fold) site(entry, site string) {
	if f.sites[entry] == nil {
		f.entries = append(f.entries, entry)
	}
	f.sites[entry] = append(f.sites[entry], site)
}

// add adds a difference, if it is one.
func (f *fold) add(c siteChange) {
	if c.a != c.b {
		f.changes = append(f.changes, c)
	}
}

// folded is a row of the result.
type folded struct{ site, entries, what, a, b string }

// rows returns the differences, those of a call site together, in order of their
// first appearance.
func (f *fold) rows() []folded {
	type key struct{ site, what, a, b string }
	entries := map[key][]string{}
	var order []key
	for _, entry := range f.entries {
		for _, c := range f.foldSites(entry) {
			k := key{c.site, c.what, c.a, c.b}
			if entries[k] == nil {
				order = append(order, k)
			}
			entries[k] = append(entries[k], entry)
		}
	}
	var rows []folded
	for _, k := range order {
		rows = append(rows, folded{k.site, entriesName(entries[k], f.entries), k.what, k.a, k.b})
	}
	first := map[string]int{}
	for i, r := range rows {
		if _, ok := first[groupName(r.site)]; !ok {
			first[groupName(r.site)] = i
		}
	}
	slices.SortStableFunc(rows, func(a, b folded) int { return cmp.Compare(first[groupName(a.site)], first[groupName(b.site)]) })
	return rows
}

// groupName is what rows of the same sites in some layers or others have in common.
func groupName(site string) string {
	if head, rest, ok := strings.Cut(site, "{"); ok {
		_, tail, _ := strings.Cut(rest, "}")
		return head + "*" + tail
	}
	name, _, _ := strings.Cut(site, " ")
	return FoldSite(name)
}

// foldSites joins the differences of an entry over its sites.
func (f *fold) foldSites(entry string) []siteChange {
	type same struct{ what, a, b string }
	at := map[same][]string{} // sites
	var changes []siteChange
	for _, c := range f.changes {
		if c.entry == entry {
			changes = append(changes, c)
			k := same{c.what, c.a, c.b}
			at[k] = append(at[k], c.site)
		}
	}
	seen := map[siteChange]bool{}
	var rows []siteChange
	for _, c := range changes {
		sites := at[same{c.what, c.a, c.b}]
		if len(sites) == len(f.sites[entry]) && len(sites) > 1 {
			c.site = "*"
		} else {
			c.site = layersName(FoldSite(c.site), sites, f.sites[entry])
		}
		if !seen[c] {
			seen[c] = true
			rows = append(rows, c)
		}
	}
	return rows
}

// layersName names the sites that fold to name: "blk.*.x" if they are all of them,
// "blk.{0-3,7}.x" otherwise, or the one that there is. Without layers in their names
// they are counted: "glu (3 of 40)".
func layersName(name string, sites, all []string) string {
	of := func(list []string) (out []string) {
		for _, s := range list {
			if FoldSite(s) == name {
				out = append(out, s)
			}
		}
		return out
	}
	changed, total := of(sites), of(all)
	if len(changed) == 1 {
		return changed[0]
	}
	if len(changed) == len(total) {
		return name
	}
	prefix, suffix, ok := strings.Cut(name, "*")
	if !ok {
		return fmt.Sprintf("%s (%d of %d)", name, len(changed), len(total))
	}
	var layers []int
	for _, s := range changed {
		var n int
		if _, err := fmt.Sscanf(s, "blk.%d.", &n); err == nil {
			layers = append(layers, n)
		}
	}
	slices.Sort(layers)
	return prefix + "{" + ranges(layers) + "}" + suffix
}

// ranges writes ascending numbers as "0-3,7".
func ranges(numbers []int) string {
	var parts []string
	for i := 0; i < len(numbers); {
		j := i
		for j+1 < len(numbers) && numbers[j+1] == numbers[j]+1 {
			j++
		}
		if j == i {
			parts = append(parts, fmt.Sprint(numbers[i]))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", numbers[i], numbers[j]))
		}
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// entriesName names a part of all entries: "all", "decode/*" for all of a kind, and
// the names of others.
func entriesName(some, all []string) string {
	if len(some) == len(all) {
		return "all"
	}
	kind := func(name string) string { k, _, _ := strings.Cut(name, "/"); return k }
	count := func(list []string, k string) (n int) {
		for _, name := range list {
			if kind(name) == k {
				n++
			}
		}
		return n
	}
	var names []string
	for _, name := range some {
		k := kind(name)
		if n := count(all, k); n > 1 && n == count(some, k) {
			name = k + "/*"
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " ")
}
