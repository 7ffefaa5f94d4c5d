package kerneltest

import (
	"encoding/binary"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/zincc-dev/zincc/ir"
)

// testPage is the positions of a page of Paged, the fewest that there may be.
const testPage = 64

var (
	cacheGlobal = regexp.MustCompile(`(?m)^kv @(\w+) : (\w+)\[\d+, L, (\d+)\]$`)
	cacheOp     = regexp.MustCompile(`(?m)^(.*(?:attention|attention_split|kvwrite) [^{\n]*?)( \{.*)?$`)
)

// Paged is the test with its caches in pages: those of each slot lie in descending order, apart from those of others,
// and there are some that nobody has.
func (c Case) Paged() Case {
	each := ir.PagesOf(c.Ctx, testPage)
	pages := 2*c.Slots*each + 1
	c.Pages = make([]int32, c.Slots*each)
	for i := range c.Pages {
		c.Pages[i] = int32(pages - 1 - 2*i)
	}
	c.Globals = cacheGlobal.ReplaceAllString(c.Globals, fmt.Sprintf("kv @$1 : $2[%d, %d, $3] as pages", pages, testPage))
	c.Globals = strings.TrimSuffix(c.Globals, "\n") + fmt.Sprintf("\nstep @pages : i32[%d, %d]\n", c.Slots, each)
	c.Group = cacheOp.ReplaceAllString(c.Group, "$1, @pages$2")
	c.Given = maps.Clone(c.Given)
	if c.Given == nil {
		c.Given = map[string][]byte{}
	}
	c.Given["pages"], _ = binary.Append(nil, binary.LittleEndian, c.Pages)
	return c
}

var windowOf = regexp.MustCompile(`window=(\d+)`)

// GivenBack is a test of Paged whose slots have no pages any more that lie before what the window of their rows sees.
func (c Case) GivenBack() Case {
	window, _ := strconv.Atoi(windowOf.FindStringSubmatch(c.Group)[1])
	first := map[int]int{} // position that is kept, by slot
	for r := range c.live() {
		slot, at := At(c.Slot, r, 0), ir.FirstKept(At(c.Pos, r, 1), window)
		if have, ok := first[slot]; !ok || at < have {
			first[slot] = at
		}
	}
	each := len(c.Pages) / c.Slots
	c.Pages, c.Given = slices.Clone(c.Pages), maps.Clone(c.Given)
	for slot, at := range first {
		clear(c.Pages[slot*each:][:at/testPage])
	}
	c.Given["pages"], _ = binary.Append(nil, binary.LittleEndian, c.Pages)
	return c
}

// holder returns the slot and the position that a row of a cache in pages holds; false if it is nobody's.
func (c Case) holder(row int) (slot, position int, ok bool) {
	each := len(c.Pages) / c.Slots
	for i, page := range c.Pages {
		if page > 0 && int(page) == row/testPage {
			return i / each, i%each*testPage + row%testPage, true
		}
	}
	return 0, 0, false
}
