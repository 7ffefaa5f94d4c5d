package ir

import (
	"fmt"
	"strings"
)

// Rows of f16 laid out in tiles, which matrix products of four subgroups read in place: see TileElement.

const (
	// TileRows is the rows of a tile, TileBlock the elements of a row that are permuted together, PieceElements those
	// that then lie together.
	TileRows, TileBlock, PieceElements = 128, 256, 8
)

// TileElement returns the index in its block of element e of piece q. A block is TileBlock elements of a row: 32
// octets. Two bits of an octet's number, lanes, are its lane's number. The four octets that differ in these bits alone
// make four pieces, each with two elements of every lane: elements 0 and 2 of their octets, 1 and 3, 4 and 6, 5 and 7.
func TileElement(lanes [2]int, q, e int) int {
	octet, rest := 0, q/4
	for bit := range 5 {
		switch bit {
		case lanes[0]:
			octet |= (e / 2 & 1) << bit
		case lanes[1]:
			octet |= (e / 4 & 1) << bit
		default:
			octet |= (rest & 1) << bit
			rest >>= 1
		}
	}
	return 8*octet + [4]int{0, 1, 4, 5}[q%4] + 2*(e%2)
}

// TileOrders parses attribute lanes of op tile: pairs of bits, such as "13 24".
func TileOrders(lanes string) (list [][2]int, err error) {
	words := strings.Split(lanes, " ")
	if len(words) > 10 {
		return nil, fmt.Errorf("lanes %q: there are 10 pairs of bits", lanes)
	}
	for _, word := range words {
		var at [2]int
		if len(word) != 2 || word[0] < '0' || word[0] >= word[1] || word[1] > '4' {
			return nil, fmt.Errorf("lanes %q: want pairs of bits, such as 13", lanes)
		}
		for i := range at {
			at[i] = int(word[i] - '0')
		}
		list = append(list, at)
	}
	return list, nil
}

var tileAttrs = []AttrSpec{intAttr("rows"), stringAttr("lanes")}

// tilesOf returns the number of tiles of op, over all orders, or an error if x can be neither tiled nor tiles.
func tilesOf(op *Op) (Dim, error) {
	x, rows := op.Args[0].Type, op.Attrs.Int("rows")
	orders, err := TileOrders(op.Attrs.Str("lanes"))
	if err != nil {
		return 0, err
	}
	if x.DType != F16 || areProjected(x) != nil || rows <= 0 || rows > 1<<20 || rows%TileRows != 0 {
		return 0, fmt.Errorf("%d rows of %s are no tiles", rows, x)
	}
	return Dim(rows / TileRows * len(orders)), nil
}

var tileOps = []*OpKind{
	{
		Name: "tile",
		Doc: "x laid out in tiles of 128 rows, with zeros behind the last row: for each order of `lanes` and each 8 elements of a row, a row of y holds those elements of all rows of the tile; " +
			"TileElement says which elements they are",
		Params: []string{"x"},
		Attrs:  tileAttrs,
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			tiles, err := tilesOf(op)
			if err != nil {
				return Type{}, err
			}
			x := op.Args[0].Type
			if x.Last()%TileBlock != 0 {
				return Type{}, fmt.Errorf("rows of %s are no whole blocks of %d", x, TileBlock)
			}
			return MakeType(F16, tiles*x.Last()/PieceElements, TileRows*PieceElements), nil
		},
	},
	{
		Name:   "untile",
		Doc:    "the inverse of tile: from the result of tile to its x",
		Params: []string{"x"},
		Attrs:  tileAttrs,
		Flops:  noFlops,
		Error:  exact,
		Infer: func(op *Op) (Type, error) {
			tiles, err := tilesOf(op)
			if err != nil {
				return Type{}, err
			}
			x := op.Args[0].Type
			if x.Last() != TileRows*PieceElements || x.Shape[0] <= 0 || x.Shape[0]%(tiles*TileBlock/PieceElements) != 0 {
				return Type{}, fmt.Errorf("%s has no %d tiles", x, tiles)
			}
			return MakeType(F16, T, x.Shape[0]/tiles*PieceElements), nil
		},
	},
}
