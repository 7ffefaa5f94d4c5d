package llvm

import (
	"fmt"

	"github.com/llir/llvm/ir/constant"
	"github.com/llir/llvm/ir/enum"
	"github.com/llir/llvm/ir/types"
	"github.com/llir/llvm/ir/value"
	"github.com/zincc-dev/zincc/codegen/kernel"
)

// tileFeatures are those of llc for tiles of bf16.
const tileFeatures = "+amx-tile,+amx-bf16"

// configureTiles gives the function 8 tiles of 16 rows of 64 bytes. It has to release them before it returns: a thread
// that has tiles hands 8 KiB more to whoever interrupts it.
func (l *lowering) configureTiles() {
	if !l.machine.Tiles {
		l.fail("there are no tiles on %s", l.machine.Name)
		return
	}
	l.need(tileFeatures)
	config := make([]byte, 64) // Intel's manual, volume 1, 18.1: palette, then bytes of a row and rows of each tile
	config[0] = 1
	for i := range kernel.Tiles {
		config[16+2*i], config[48+i] = 4*kernel.TileSide, kernel.TileSide
	}
	var list []constant.Constant
	for _, b := range config {
		list = append(list, constant.NewInt(types.I8, int64(b)))
	}
	g := l.m.NewGlobalDef("tiles", constant.NewArray(types.NewArray(uint64(len(config)), types.I8), list...))
	g.Immutable, g.Linkage, g.UnnamedAddr, g.Align = true, enum.LinkagePrivate, enum.UnnamedAddrUnnamedAddr, 64
	l.once(func() { l.call("llvm.x86.ldtilecfg", types.Void, literal{ptr, "@tiles"}) })
}

func (l *lowering) releaseTiles() { l.call("llvm.x86.tilerelease", types.Void) }

// tileOp lowers what is done with tiles: an instruction each.
func (l *lowering) tileOp(n *kernel.Node, s *scope) {
	if s.mask != nil {
		l.fail("%v where lanes may be elsewhere", n.Op())
		return
	}
	tile := func(i int) value.Value { return literal{types.I8, fmt.Sprint(n.Tile(i))} }
	switch n.Op() {
	case kernel.OpTileZero:
		l.call("llvm.x86.tilezero", types.Void, tile(0))
	case kernel.OpTileMulAdd:
		l.call("llvm.x86.tdpbf16ps", types.Void, tile(0), tile(1), tile(2))
	case kernel.OpTileLoad, kernel.OpTileStore:
		name := map[kernel.Op]string{kernel.OpTileLoad: "llvm.x86.tileloadd64", kernel.OpTileStore: "llvm.x86.tilestored64"}[n.Op()]
		stride := l.zext(l.scalar(n.Args()[1]), types.I64)
		l.call(name, types.Void, tile(0), l.at(types.I32, l.shared[n.Imm()], l.index(n.Args()[0])), l.times(stride, i64(4)))
	}
}
