package layout

import "github.com/zincc-dev/zincc/ir"

// Range is bytes of a buffer.
type Range struct{ Offset, Bytes int64 }

// PageRows lists the bytes of rows [from, to) of a page of a cache of type t, [pages, rows, width], as it lies on the
// device.
func PageRows(t ir.Type, page, from, to int) []Range {
	one := pageType(t)
	list := CacheRows(one, int(t.Shape[1]), 0, from, to)
	for i := range list {
		list[i].Offset += int64(page) * one.DType.Bytes(int64(t.Shape[1]*t.Last()))
	}
	return list
}

// CacheRows lists the bytes of rows [from, to) of a sequence in a cache of type t, [sequences, rows, width], as it lies
// on the device: one range, or with scales apart one more for each block of a row.
func CacheRows(t ir.Type, rows, sequence, from, to int) []Range {
	const scale = 2 // bytes
	n, first := int64(to-from), int64(sequence)*int64(rows)+int64(from)
	row := t.DType.Bytes(int64(t.Last()))
	if _, apart := cacheFormats[t.DType]; !apart {
		return []Range{{first * row, n * row}}
	}
	blocks := int64(t.Last()) / int64(t.DType.Block())
	row -= blocks * scale
	list := []Range{{first * row, n * row}}
	scales := int64(t.Shape[0]) * int64(rows) * row
	for b := range blocks {
		at := (int64(sequence)*blocks+b)*int64(rows) + int64(from)
		list = append(list, Range{scales + at*scale, n * scale})
	}
	return list
}
