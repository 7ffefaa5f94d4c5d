package plans

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// Region is one buffer of a space: a global, or an io value of an entry.
type Region struct {
	Name  string // of the global; "entry:%id" for io
	Bytes int64
	Kept  *Kept // of the spaces kv and state; else nil
}

// Kept is what a cache or state holds of every sequence for later steps: rows, as ir.Region has them. Row r of sequence
// s is number s*Rows + r; where rows lie in pages, the block table says in which page it is.
type Kept struct {
	Kind      string // "positions", "ring", "state" or "pages": ir.Keep
	Sequences int
	Rows      int   // of a sequence
	RowBytes  int64 // of one, in all planes of the region
	Window    int   // newest positions that a row of a step sees there, its own among them; 0: all that are there
	Back      int   // positions that a sequence can go back from any other and still find what it sees
	Page      int   `json:",omitempty"` // rows of a page; 0: those of a sequence lie side by side
	Pages     int   `json:",omitempty"` // that the region has, page 0 among them, which is nobody's
	Group     int   `json:",omitempty"` // of caches in pages: those of a group share a block table, see ir.PageGroups
}

// KeptOf returns what the plan says of a region that has so many bytes.
func KeptOf(r ir.Region, bytes int64) *Kept {
	k := &Kept{r.Keep.String(), r.Sequences, r.Rows, 0, r.Window, r.Back, r.Page, r.Pages, r.Group}
	k.RowBytes = bytes / k.rows()
	return k
}

// rows is how many the region has.
func (k *Kept) rows() int64 {
	if k.Kind == ir.KeepPages.String() {
		return int64(k.Pages) * int64(k.Page)
	}
	return int64(k.Sequences) * int64(k.Rows)
}

// pagesAt is how many pages sequences would have in a context of ctx positions: a pool that has fewer than all of them
// would stay as it is, but for those that one takes.
func (k *Kept) pagesAt(ctx int) int {
	one := ir.PagesOf(ctx, k.Page)
	if pool := k.Pages - 1; pool < k.Sequences*(k.Rows/k.Page) {
		return min(k.Sequences*one, max(one, pool))
	}
	return k.Sequences * one
}

// fits reports whether rows and bytes of one are in range and make the bytes of the region.
func (k *Kept) fits(bytes int64) bool {
	if k.Rows <= 0 || k.Rows > 2*ir.MaxCtx || k.RowBytes <= 0 || k.Page < 0 || k.Pages < 0 || k.Pages > maxRegion {
		return false
	}
	n := k.rows()
	return n > 0 && bytes/n == k.RowBytes && n*k.RowBytes == bytes
}

// checkPages says what is wrong with the pages of a region, if it keeps such.
func (k *Kept) checkPages() error {
	if k.Kind != ir.KeepPages.String() {
		if k.Page != 0 || k.Pages != 0 || k.Group != 0 {
			return fmt.Errorf("keeps %s and has %d pages of %d rows, of group %d", k.Kind, k.Pages, k.Page, k.Group)
		}
		return nil
	}
	if k.Group < 0 || k.Group >= ir.PageGroups || k.Group == ir.WindowGroup && k.Window <= 0 {
		return fmt.Errorf("pages of group %d with a window of %d", k.Group, k.Window)
	}
	if err := ir.CheckPage(k.Page); err != nil {
		return err
	}
	if k.Rows%k.Page != 0 || k.Pages <= k.Rows/k.Page {
		return fmt.Errorf("%d pages of %d rows for sequences of %d rows, beside the page that is nobody's", k.Pages, k.Page, k.Rows)
	}
	return nil
}

// Recurrent reports whether sequences have recurrent state, of which a checkpoint is a copy.
func (m *Memory) Recurrent() bool { return len(m.State) > 0 }

// Hold reports whether the caches hold all that a row at pos sees of a sequence that has been written up to position
// end at most. Without rings they hold everything.
func (m *Memory) Hold(end, pos int) bool {
	for _, r := range m.KV {
		if k := r.Kept; pos > 0 && end > k.Rows && end-pos > k.Back {
			return false
		}
	}
	return true
}

// First returns the first position that all caches hold of such a sequence.
func (m *Memory) First(end int) int {
	first := 0
	for _, r := range m.KV {
		first = max(first, end-r.Kept.Rows)
	}
	return first
}

// Span is a part of a region.
type Span struct {
	Region string
	Offset int64
	Bytes  int64
}

// SpanBytes is what spans have together.
func SpanBytes(spans []Span) (bytes int64) {
	for _, s := range spans {
		bytes += s.Bytes
	}
	return bytes
}

// Checkpoint lists what a copy of a sequence at a position must hold: its recurrent state, and of rings of that space
// the rows that the next position sees. The caches of keys and values are not part of it: their rows stay until they
// are overwritten (see Hold).
func (m *Memory) Checkpoint(sequence, pos int) []Span {
	var spans []Span
	for _, r := range m.State {
		k := r.Kept
		base := int64(sequence) * int64(k.Rows) * k.RowBytes
		if k.Window == 0 {
			spans = append(spans, Span{r.Name, base, int64(k.Rows) * k.RowBytes})
			continue
		}
		for p := max(0, pos+1-k.Window); p < pos; p++ {
			spans = append(spans, Span{r.Name, base + int64(p%k.Rows)*k.RowBytes, k.RowBytes})
		}
	}
	return spans
}

// validateKept checks what m says of caches and states: sizes add up, so that nobody leaves a region by them.
func validateKept(p *Plan) error {
	for _, s := range p.Memory.spaces() {
		for _, r := range s.regions {
			if keeps := s.name == "kv" || s.name == "state"; keeps != (r.Kept != nil) {
				return fmt.Errorf("%s region %q: says what it keeps: %t, want %t", s.name, r.Name, !keeps, keeps)
			}
			k := r.Kept
			if k == nil {
				continue
			}
			if _, known := ir.ParseKeep(k.Kind); !known {
				return fmt.Errorf("%s region %q: keeps %q", s.name, r.Name, k.Kind)
			}
			if err := k.checkPages(); err != nil {
				return fmt.Errorf("%s region %q: %w", s.name, r.Name, err)
			}
			switch {
			case k.Sequences != p.Header.Slots:
				return fmt.Errorf("%s region %q: %d sequences in a plan of %d", s.name, r.Name, k.Sequences, p.Header.Slots)
			case !k.fits(r.Bytes):
				return fmt.Errorf("%s region %q: %s of %d bytes are not its %d bytes", s.name, r.Name, k.extent(), k.RowBytes, r.Bytes)
			case k.Window < 0 || k.Window > ir.MaxCtx || k.Back < 0 || k.Back > k.Rows:
				return fmt.Errorf("%s region %q: a window of %d and %d positions back in %d rows", s.name, r.Name, k.Window, k.Back, k.Rows)
			}
		}
	}
	return nil
}

// checkRegions holds what the plan says of its caches and states against what their readers and writers do.
func checkRegions(c *checker) {
	want := c.plan.Program.Regions()
	for _, s := range c.plan.Memory.spaces() {
		for _, r := range s.regions {
			if r.Kept == nil {
				continue
			}
			g := c.plan.Program.Global(r.Name)
			if g == nil || g.Class.String() != s.name {
				c.add("regions", "", r.Name, "the program has no %s of this name", s.name)
			} else if have, want := *r.Kept, *KeptOf(want[g], r.Bytes); have != want {
				c.add("regions", "", r.Name, "%s region states %s, its readers and writers have %s", s.name, have, want)
			}
		}
	}
	for group := range ir.PageGroups {
		if k := c.plan.PagedIn(group); k != nil && k.Pages > c.plan.MostPages() {
			c.add("regions", "", "", "%d pages, of which sequences have, and kernels can index, %d", k.Pages, c.plan.MostPages())
		}
	}
	c.problems = append(c.problems, partsOfPools(c.plan)...)
}

// extent says which rows the region has.
func (k *Kept) extent() string {
	if k.Page > 0 {
		return fmt.Sprintf("%d pages of %d rows", k.Pages, k.Page)
	}
	return fmt.Sprintf("%d sequences of %d rows", k.Sequences, k.Rows)
}

func (k Kept) String() string {
	s := fmt.Sprintf("%s of %d sequences, %d rows of %d bytes, a window of %d, %d positions back", k.Kind, k.Sequences, k.Rows, k.RowBytes, k.Window, k.Back)
	if k.Page > 0 {
		s += fmt.Sprintf(", %s, of group %d", k.extent(), k.Group)
	}
	return s
}
