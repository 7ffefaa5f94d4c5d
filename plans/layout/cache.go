package layout

import (
	"fmt"

	"github.com/zincc-dev/zincc/ir"
)

// A KV cache of q8_0, [slots, positions, width], is two planes on the device:
//
//   - a byte for each element, row-major: its code plus 128. The bytes of four
//     neighbours are those of elements 0, 2, 1, 3: two masks give them in order, as
//     pairs of 16 bits.
//   - the scales, f16, as [slots, width/32, positions]: what consecutive positions have
//     for the same elements lies together, and who reads a head reads no other's.
//
// Caches of other types lie as their type says.

// codeAt is where the codes of four neighbours lie, codeBias what is added to each.
var codeAt = [4]int{0, 2, 1, 3}

const codeBias = 128

// CacheToDevice returns what rows, the blocks of a whole cache of type t with that
// many positions, are on the device.
func CacheToDevice(t ir.Type, positions int, rows []byte) ([]byte, error) {
	return moveCache(t, positions, rows, func(device, rows *cacheBlock) {
		copy(device.scale, rows.scale)
		for i, c := range rows.codes {
			device.codes[i&^3+codeAt[i&3]] = c + codeBias
		}
	}, false)
}

// CacheFromDevice is the inverse of CacheToDevice.
func CacheFromDevice(t ir.Type, positions int, device []byte) ([]byte, error) {
	return moveCache(t, positions, device, func(device, rows *cacheBlock) {
		copy(rows.scale, device.scale)
		for i := range rows.codes {
			rows.codes[i] = device.codes[i&^3+codeAt[i&3]] - codeBias
		}
	}, true)
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
	if t.DType != ir.Q8_0 {
		return src, nil
	}
	dst := make([]byte, size)
	device, rows := dst, src
	if fromDevice {
		device, rows = src, dst
	}
	n, bytes := t.DType.Block(), t.DType.BlockBytes()
	blocks := int(t.Last()) / n
	scales := int(t.Shape[0]) * positions * blocks * n
	for i := range len(src) / bytes {
		block, pos, slot := i%blocks, i/blocks%positions, i/blocks/positions
		at := scales + 2*((slot*blocks+block)*positions+pos)
		row := rows[i*bytes : (i+1)*bytes]
		move(&cacheBlock{device[at : at+2], device[i*n : (i+1)*n]}, &cacheBlock{row[:2], row[2:]})
	}
	return dst, nil
}
