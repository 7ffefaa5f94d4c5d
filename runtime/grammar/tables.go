package grammar

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/zincc-dev/zincc/internal/private"
)

// tablesFormat changes with what a vocabulary's tables are, or how they are written.
const tablesFormat = 1

// mostKept is how many bytes of tables are kept: of some twenty vocabularies, those that were used last.
const mostKept = 256 << 20

// Kept is NewVocabulary with tables that are kept in the user's cache folder, beside the plans that zincrun makes.
// Those that are not there, or not as they were written, are made, and kept for the next time.
func Kept(pieces []string, ends []int32) *Vocabulary {
	cache, err := private.Open("vocabularies")
	if err != nil {
		return NewVocabulary(pieces, ends)
	}
	name := tablesName(pieces, ends)
	v := bare(pieces, ends)
	if c := (codec{data: cache.Read(name)}); c.data != nil {
		if v.tables(&c); c.good() {
			return v
		}
	}
	v = NewVocabulary(pieces, ends)
	c := codec{writes: true}
	v.tables(&c)
	if cache.Write(name, c.data) == nil { // it only saves time
		cache.Bound(mostKept, 0)
	}
	return v
}

// tablesName is the name of a file: the sum of what the tables are made of.
func tablesName(pieces []string, ends []int32) string {
	h := sha256.New()
	c := codec{writes: true}
	format, radii := int32(tablesFormat), make([]int32, len(radii))
	for i, r := range radii {
		radii[i] = int32(r)
	}
	c.number(&format)
	c.numbers(&radii)
	c.numbers(&ends)
	c.texts(&pieces)
	h.Write(c.data)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// tables writes the tables, or reads them.
func (v *Vocabulary) tables(c *codec) {
	c.masks(&v.unwritten)
	c.numbers(&v.twins)
	c.numbers(&v.quoted)
	c.numbers(&v.reopen)
	each(c, &v.openers, func(o *opener) {
		c.text(&o.head)
		c.numbers(&o.tokens)
	})
	each(c, &v.slices, func(s *slice) {
		each(c, &s.sets, c.masks)
		each(c, &s.longer, c.trie)
		each(c, &s.length, c.numbers)
		c.trie(&s.rest)
	})
	q := &v.quotes
	c.trie(&q.inner)
	c.trie(&q.heads)
	c.texts(&q.texts)
	each(c, &q.closes, func(list *closing) {
		each(c, (*[]closed)(list), func(e *closed) {
			c.number(&e.id)
			c.number(&e.tail)
		})
	})
	c.trie(&q.tails)
	c.flag(&q.bare)
	c.size(&v.longest)
	c.size(&v.marked)
	v.finish()
}

// codec writes numbers behind each other, or reads them.
type codec struct {
	data   []byte
	at     int
	writes bool
	broken bool // there were fewer
}

// good says whether all was read.
func (c *codec) good() bool { return !c.broken && c.at == len(c.data) }

// next returns the next bytes to read, nil if there are not so many.
func (c *codec) next(n int) []byte {
	if c.broken || n < 0 || n > len(c.data)-c.at {
		c.broken = true
		return nil
	}
	c.at += n
	return c.data[c.at-n : c.at]
}

func (c *codec) number(n *int32) {
	if c.writes {
		c.data = binary.LittleEndian.AppendUint32(c.data, uint32(*n))
	} else if b := c.next(4); b != nil {
		*n = int32(binary.LittleEndian.Uint32(b))
	}
}

func (c *codec) size(n *int) {
	m := int32(*n)
	c.number(&m)
	*n = int(m)
}

func (c *codec) flag(f *bool) {
	n := 0
	if *f {
		n = 1
	}
	c.size(&n)
	*f = n == 1
}

// length writes or reads how many things of a size follow, and returns it.
func (c *codec) length(n, size int) int {
	c.size(&n)
	if !c.writes && (n < 0 || n*size > len(c.data)-c.at) {
		c.broken = true
	}
	if c.broken {
		return 0
	}
	return n
}

func (c *codec) numbers(l *[]int32) {
	n := c.length(len(*l), 4)
	if c.writes {
		for _, x := range *l {
			c.data = binary.LittleEndian.AppendUint32(c.data, uint32(x))
		}
		return
	}
	b := c.next(4 * n)
	*l = sized[int32](n)
	for i := range *l {
		(*l)[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
}

func (c *codec) masks(m *Mask) {
	n := c.length(len(*m), 8)
	if c.writes {
		for _, w := range *m {
			c.data = binary.LittleEndian.AppendUint64(c.data, w)
		}
		return
	}
	b := c.next(8 * n)
	*m = make(Mask, n)
	for i := range *m {
		(*m)[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
}

func (c *codec) text(s *string) {
	n := c.length(len(*s), 1)
	if c.writes {
		c.data = append(c.data, *s...)
		return
	}
	*s = string(c.next(n))
}

func (c *codec) texts(list *[]string) { each(c, list, c.text) }

// nodeBytes is how many bytes a node of a trie takes.
const nodeBytes = 12

func (c *codec) trie(t *trie) {
	n := c.length(len(t.nodes), nodeBytes)
	if c.writes {
		for _, d := range t.nodes {
			c.data = binary.LittleEndian.AppendUint32(c.data, uint32(d.end))
			c.data = binary.LittleEndian.AppendUint32(c.data, uint32(d.token))
			c.data = binary.LittleEndian.AppendUint32(c.data, uint32(d.depth)<<8|uint32(d.b))
		}
		return
	}
	b := c.next(nodeBytes * n)
	t.nodes = sized[node](n)
	for i := range t.nodes {
		e := b[nodeBytes*i : nodeBytes*i+nodeBytes]
		rest := binary.LittleEndian.Uint32(e[8:])
		t.nodes[i] = node{end: int32(binary.LittleEndian.Uint32(e)), token: int32(binary.LittleEndian.Uint32(e[4:])), depth: uint16(rest >> 8), b: byte(rest)}
	}
	t.root()
}

// sized makes a list, nil if it is to be empty.
func sized[T any](n int) []T {
	if n == 0 {
		return nil
	}
	return make([]T, n)
}

// each writes or reads a list.
func each[T any](c *codec, l *[]T, f func(*T)) {
	n := c.length(len(*l), 1)
	if !c.writes {
		*l = sized[T](n)
	}
	for i := range n {
		f(&(*l)[i])
	}
}
