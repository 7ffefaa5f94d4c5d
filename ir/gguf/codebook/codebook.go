// Package codebook has the tables that codes of block formats point into: 16 values for the 4-bit
// formats, and grids of vectors for those of less than 4 bits.
package codebook

import (
	_ "embed"
	"sync"
)

// IQ4 holds the values of IQ4_NL and IQ4_XS.
var IQ4 = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// E2M1 holds the 4-bit floats of the OCP Microscaling specification, doubled.
var E2M1 = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// Grid is a set of vectors of codes, in ascending order of their codes read as digits of a number,
// the first the least. An index of a format is a vector's rank in it.
type Grid struct {
	Name   string
	Values []int8 // what a code means
	Size   int    // codes of a vector
	Count  int    // vectors

	// even: the codes of every vector add up to an even number, and there are no bits for others.
	even bool
	// members has a bit for each vector there could be, the lowest of a byte first.
	members string
	vectors func() vectors
}

// vectors are the vectors of a grid, one behind the other.
type vectors struct {
	codes  []byte
	values []int8
}

//go:embed iq2xxs.bits
var iq2xxs string

//go:embed iq2xs.bits
var iq2xs string

//go:embed iq2s.bits
var iq2s string

//go:embed iq1s.bits
var iq1s string

//go:embed iq3xxs.bits
var iq3xxs string

//go:embed iq3s.bits
var iq3s string

var (
	three   = []int8{8, 25, 43}
	ternary = []int8{-1, 0, 1}

	IQ2XXS = newGrid("iq2xxs", three, 8, 256, true, iq2xxs)
	IQ2XS  = newGrid("iq2xs", three, 8, 512, true, iq2xs)
	IQ2S   = newGrid("iq2s", three, 8, 1024, true, iq2s)
	IQ1S   = newGrid("iq1s", ternary, 8, 2048, false, iq1s)
	IQ3XXS = newGrid("iq3xxs", []int8{4, 12, 20, 28, 36, 44, 52, 62}, 4, 256, true, iq3xxs)
	IQ3S   = newGrid("iq3s", []int8{1, 3, 5, 7, 9, 11, 13, 15}, 4, 512, false, iq3s)
)

func newGrid(name string, values []int8, size, count int, even bool, members string) *Grid {
	g := &Grid{Name: name, Values: values, Size: size, Count: count, even: even, members: members}
	g.vectors = sync.OnceValue(g.expand)
	return g
}

// expand makes the vectors.
func (g *Grid) expand() (all vectors) {
	v := make([]byte, g.Size)
	for i := 0; i < 8*len(g.members); {
		sum := 0
		for _, c := range v {
			sum += int(c)
		}
		if !g.even || sum%2 == 0 {
			if g.members[i/8]>>(i%8)&1 != 0 {
				for _, c := range v {
					all.codes, all.values = append(all.codes, c), append(all.values, g.Values[c])
				}
			}
			i++
		}
		at := 0
		for at < len(v) && int(v[at]) == len(g.Values)-1 {
			v[at] = 0
			at++
		}
		if at == len(v) {
			break
		}
		v[at]++
	}
	return all
}

// Codes returns the codes of vector i, which are only to be read.
func (g *Grid) Codes(i int) []byte { return g.vectors().codes[i*g.Size:][:g.Size] }

// Vector returns the elements of vector i, which are only to be read.
func (g *Grid) Vector(i int) []int8 { return g.vectors().values[i*g.Size:][:g.Size] }
