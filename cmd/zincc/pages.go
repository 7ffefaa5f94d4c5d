package main

import (
	"github.com/spf13/pflag"

	"github.com/zincc-dev/zincc/internal/cli"
	"github.com/zincc-dev/zincc/ir"
)

// pageFlags lay the KV caches of several slots into pages.
type pageFlags struct {
	page int
	pool cli.Positions
}

func (p *pageFlags) declare(f *pflag.FlagSet) {
	f.IntVar(&p.page, "page", 0, "with --slots: positions of a page of the KV caches, a power of two such as 128. Sequences then take what they need of a pool of pages, and share what they have in common. 0: each slot has room for its whole context")
	f.Var(&p.pool, "pool", "with --page: positions that all sequences have together at least, such as 96k; at least a context (default that of every slot). zincrun serve takes more pages, as the device has memory")
}

// check holds the flags against what pages can have, and against slots, of which max is no number.
func (p *pageFlags) check(slots int) error {
	switch {
	case p.page == 0 && p.pool > 0:
		return cli.Usagef("--pool is of pages; add --page, such as --page 128")
	case p.page == 0:
		return nil
	case slots == 1:
		return cli.Usagef("--page is for plans of several slots; add --slots")
	}
	if err := ir.CheckPage(p.page); err != nil {
		return cli.Usagef("--page: %s", err)
	}
	return nil
}
