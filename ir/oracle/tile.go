package oracle

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// tile clears what lies behind the last row.
func tile(c *call) error {
	orders, err := ir.TileOrders(c.op.Attrs.Str("lanes"))
	if err != nil {
		return err
	}
	if c.rows(0) > c.op.Attrs.Int("rows") {
		return fmt.Errorf("%d rows into tiles of %d", c.rows(0), c.op.Attrs.Int("rows"))
	}
	x, y, k := c.arg(0), c.result(), width(c.op.Args[0])
	clear(y)
	for i, lanes := range orders {
		eachTiled(lanes, i, len(orders), c.rows(0), k, func(tiled, row int) { y[tiled] = x[row] })
	}
	return nil
}

// untile reads the first order: all have the same.
func untile(c *call) error {
	orders, err := ir.TileOrders(c.op.Attrs.Str("lanes"))
	if err != nil {
		return err
	}
	if c.n > c.op.Attrs.Int("rows") {
		return fmt.Errorf("%d rows of tiles of %d", c.n, c.op.Attrs.Int("rows"))
	}
	x, y := c.arg(0), c.result()
	eachTiled(orders[0], 0, len(orders), c.n, width(c.op.Result), func(tiled, row int) { y[row] = x[tiled] })
	return nil
}

// eachTiled calls one for every element of n rows of k: where it lies in order i of some, and in rows.
func eachTiled(lanes [2]int, i, orders, n, k int, one func(tiled, row int)) {
	const pieces = ir.TileBlock / ir.PieceElements
	for q := range pieces {
		for e := range ir.PieceElements {
			at := ir.TileElement(lanes, q, e)
			for r := range n {
				first := (r/ir.TileRows*orders + i) * k / ir.PieceElements
				for block := range k / ir.TileBlock {
					one((first+block*pieces+q)*ir.TileRows*ir.PieceElements+r%ir.TileRows*ir.PieceElements+e, r*k+block*ir.TileBlock+at)
				}
			}
		}
	}
}
