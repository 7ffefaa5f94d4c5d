package plans

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// Deflate (RFC 1951) makes a plan about a fifth: sites, operands and reasons repeat
// from layer to layer, and so does the text of the program.

// maxRatio is above what deflate can make of a byte.
const maxRatio = 1032

// pack deflates data. The same data gives the same bytes.
func pack(data []byte) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write(data)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(fmt.Sprintf("plans: deflate into memory: %v", err))
	}
	return b.Bytes()
}

// unpack inflates part, which must give n bytes and end there. The caller has
// bounded n.
func unpack(part []byte, n int) (string, error) {
	if n/maxRatio > len(part) {
		return "", fmt.Errorf("%d bytes cannot come out of %d", n, len(part))
	}
	in := bytes.NewReader(part)
	r := flate.NewReader(in)
	var b strings.Builder
	b.Grow(n)
	// One byte more, to see the end.
	got, err := io.Copy(&b, io.LimitReader(r, int64(n)+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("unpack: %w", err)
	case got != int64(n) || in.Len() > 0:
		return "", fmt.Errorf("unpack: not the %d bytes that the table of contents says", n)
	}
	return b.String(), nil
}

// MarshalBinary encodes v as the section of a plan is encoded, behind its unpacked
// length in four bytes.
func (v *Vocab) MarshalBinary() ([]byte, error) {
	data := appendValue(nil, reflect.ValueOf(v).Elem())
	if len(data) > maxSection {
		return nil, fmt.Errorf("vocab: %d bytes, the limit is %d", len(data), maxSection)
	}
	return append(le.AppendUint32(nil, uint32(len(data))), pack(data)...), nil
}

// UnmarshalBinary is the inverse of MarshalBinary.
func (v *Vocab) UnmarshalBinary(b []byte) error {
	if len(b) < 4 || le.Uint32(b) > maxSection {
		return fmt.Errorf("vocab: bad length")
	}
	data, err := unpack(b[4:], int(le.Uint32(b)))
	if err == nil {
		*v = Vocab{}
		err = decodeSection(data, reflect.ValueOf(v).Elem())
	}
	if err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	return nil
}
