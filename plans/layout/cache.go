package layout

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// A KV cache of q8_0 or q4_0, [slots, positions, width], is two planes on the device:
//
//   - codes, row-major. Of q8_0 a byte for each element: its code plus 128. The bytes of four
//     neighbours are those of elements 0, 2, 1, 3: two masks give them in order, as
//     pairs of 16 bits. Of q4_0 a byte for two neighbours: the first's code plus 8, and 16 times the second's.
//   - the scales, f16, as [slots, width/32, positions]: what consecutive positions have
//     for the same elements lies together, and who reads a head reads no other's.
//
// Caches of other types lie as their type says. Of a cache in pages each page lies so, as if it was a slot alone.

// A cacheCodes is how the codes of a block lie on the device and in a row.
type cacheCodes struct{ toDevice, toRow func(dst, src []byte) }

var cacheFormats = map[ir.DType]cacheCodes{
	ir.Q8_0: {
		func(device, row []byte) {
			for i, c := range row {
				device[i&^3+codeAt[i&3]] = c + codeBias
			}
		},
		func(row, device []byte) {
			for i := range row {
				row[i] = device[i&^3+codeAt[i&3]] - codeBias
			}
		},
	},
	// A row has element i in the low bits of byte i, and that half a block on in the high ones.
	ir.Q4_0: {
		func(device, row []byte) {
			code := func(i int) byte { return row[i%len(row)] >> (i / len(row) * 4) & 15 }
			for i := range device {
				device[i] = code(2*i) | code(2*i+1)<<4
			}
		},
		func(row, device []byte) {
			code := func(i int) byte { return device[i/2] >> (i % 2 * 4) & 15 }
			for i := range row {
				row[i] = code(i) | code(i+len(row))<<4
			}
		},
	},
}

// codeAt is where the codes of four neighbours of q8_0 lie, codeBias what is added to each.
var codeAt = [4]int{0, 2, 1, 3}

const codeBias = 128

// CacheToDevice returns what rows, the blocks of a whole cache in a context of ctx positions, are on the device.
func CacheToDevice(v *ir.Value, ctx int, rows []byte) ([]byte, error) {
	return moveParts(v, ctx, rows, func(device, rows *cacheBlock) {
		copy(device.scale, rows.scale)
		cacheFormats[v.Type.DType].toDevice(device.codes, rows.codes)
	}, false)
}

// CacheFromDevice is the inverse of CacheToDevice.
func CacheFromDevice(v *ir.Value, ctx int, device []byte) ([]byte, error) {
	return moveParts(v, ctx, device, func(device, rows *cacheBlock) {
		copy(rows.scale, device.scale)
		cacheFormats[v.Type.DType].toRow(rows.codes, device.codes)
	}, true)
}

// pageType is the type of a page of a cache that lies in pages: a slot with as many positions.
func pageType(t ir.Type) ir.Type { return ir.MakeType(t.DType, 1, t.Shape[1], t.Last()) }

// moveParts is moveCache for the whole of a cache or, if it lies in pages, for each of them.
func moveParts(v *ir.Value, ctx int, src []byte, move func(device, rows *cacheBlock), fromDevice bool) ([]byte, error) {
	if !v.Paged() {
		return moveCache(v.Type, v.Type.Positions(ctx), src, move, fromDevice)
	}
	pages, dst := int(v.Type.Shape[0]), make([]byte, 0, len(src))
	for i := range pages {
		part, err := moveCache(pageType(v.Type), int(v.Type.Shape[1]), src[len(src)*i/pages:len(src)*(i+1)/pages], move, fromDevice)
		if err != nil {
			return nil, err
		}
		dst = append(dst, part...)
	}
	return dst, nil
}

// cacheBlock is the parts of one block.
type cacheBlock struct{ scale, codes []byte }

// moveCache calls move for every block, as it is on the device and in rows: src is the
// one, what is returned the other.
func moveCache(t ir.Type, positions int, src []byte, move func(device, rows *cacheBlock), fromDevice bool) ([]byte, error) {
	size, err := t.Bytes(1, positions)
	if err != nil {
		return nil, err
	}
	if int64(len(src)) != size || len(t.Shape) != 3 {
		return nil, fmt.Errorf("layout: %d bytes of a cache %s of %d", len(src), t, size)
	}
	if _, ok := cacheFormats[t.DType]; !ok {
		return src, nil
	}
	dst := make([]byte, size)
	device, rows := dst, src
	if fromDevice {
		device, rows = src, dst
	}
	bytes := t.DType.BlockBytes()
	blocks, codes := int(t.Last())/t.DType.Block(), bytes-2
	scales := int(t.Shape[0]) * positions * blocks * codes
	for i := range len(src) / bytes {
		block, pos, slot := i%blocks, i/blocks%positions, i/blocks/positions
		at := scales + 2*((slot*blocks+block)*positions+pos)
		row := rows[i*bytes : (i+1)*bytes]
		move(&cacheBlock{device[at : at+2], device[i*codes : (i+1)*codes]}, &cacheBlock{row[:2], row[2:]})
	}
	return dst, nil
}
