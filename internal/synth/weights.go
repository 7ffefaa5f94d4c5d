package synth

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/zincc-dev/zincc/ir"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// kind is what the elements of a tensor are like, beside their type.
type kind int

const (
	random kind = iota // matrices and biases: around 0, so wide that sums over a row keep their magnitude
	factor             // norms and scales: around 1
	decay              // logarithms of what a state keeps: below 0
)

func kindOf(name string) kind {
	switch {
	case strings.HasSuffix(name, "ssm_a"):
		return decay
	case strings.Contains(name, "norm"), strings.Contains(name, "scale"), strings.HasPrefix(name, "rope_"):
		return factor
	}
	return random
}

// look is what decides about the data of a tensor.
type look struct {
	dtype ir.DType
	kind  kind
	power int // of two: the magnitude of random elements
}

func lookOf(t gguf.TensorData) look {
	l := look{t.Type, kindOf(t.Name), 0}
	if l.kind == random {
		l.power = -int(math.Round(math.Log2(float64(t.Shape[0])) / 2))
	}
	return l
}

// pattern is random blocks, of at most 2 MB and of no more than most bytes, which is repeated to fill tensors: a disk
// takes some gigabytes a second, a generator gives less. Its length is a prime number of blocks, so rows differ until
// there are that many.
func (l look) pattern(most int64) []byte {
	rng := rand.New(rand.NewPCG(uint64(l.dtype), uint64(l.kind)<<32|uint64(uint32(l.power))))
	n := prime(int(min(most, 2<<20)) / l.dtype.BlockBytes())
	if l.kind == random {
		return Blocks(rng, l.dtype, int64(n*l.dtype.Block()), l.power)
	}
	var data []byte // of float32
	for range n {
		x := 1 + rng.NormFloat64()/20
		if l.kind == decay {
			x = -0.1 - rng.Float64()
		}
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(x)))
	}
	return data
}

// prime returns the largest prime up to n.
func prime(n int) int {
	for ; n > 2; n-- {
		divisor := 2
		for divisor*divisor <= n && n%divisor != 0 {
			divisor++
		}
		if n%divisor != 0 {
			return n
		}
	}
	return n
}

// Write writes the whole file, with random weights of which logits stay finite. The same shape gives the same bytes.
func (m *Model) Write(path string) error {
	return m.write(path, func(gguf.TensorData) bool { return true })
}

// WriteHollow writes a file of the whole size of which all but factors, which a compiler reads, is a hole that takes no
// room on a disk.
func (m *Model) WriteHollow(path string) error {
	return m.write(path, func(t gguf.TensorData) bool { return kindOf(t.Name) == factor })
}

// write writes the header, and the data of the tensors that are wanted.
func (m *Model) write(path string, wanted func(gguf.TensorData) bool) error {
	var header bytes.Buffer
	if err := gguf.WriteHeader(&header, m.Meta, m.Tensors); err != nil {
		return err
	}
	part := path + ".part"
	f, err := os.Create(part)
	if err != nil {
		return err
	}
	defer os.Remove(part)
	at := aligned(int64(header.Len()))
	size := at
	for _, t := range m.Tensors {
		size += aligned(bytesOf(t))
	}
	_, err = f.Write(header.Bytes())
	if err == nil {
		err = f.Truncate(size)
	}
	if err == nil {
		err = m.fill(f, at, wanted)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// fill writes weights from an offset on.
func (m *Model) fill(f *os.File, at int64, wanted func(gguf.TensorData) bool) error {
	largest := map[look]int64{}
	for _, t := range m.Tensors {
		largest[lookOf(t)] = max(largest[lookOf(t)], bytesOf(t))
	}
	patterns := map[look]func() []byte{}
	for l, size := range largest {
		patterns[l] = sync.OnceValue(func() []byte { return l.pattern(size) })
	}
	var group errgroup.Group
	group.SetLimit(min(runtime.GOMAXPROCS(0), 8))
	for _, t := range m.Tensors {
		pattern, size, start := patterns[lookOf(t)], bytesOf(t), at
		at += aligned(size)
		if wanted(t) {
			group.Go(func() error { return repeat(f, start, size, pattern(), phase(t)) })
		}
	}
	return group.Wait()
}

// alignment is that of files that do not name one.
const alignment = 32

func aligned(n int64) int64 { return (n + alignment - 1) &^ (alignment - 1) }

func bytesOf(t gguf.TensorData) int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return t.Type.Bytes(n)
}

// phase is the block of the pattern that a tensor begins with: tensors of one look differ.
func phase(t gguf.TensorData) int64 {
	h := fnv.New32a()
	io.WriteString(h, t.Name)
	return int64(h.Sum32()) * int64(t.Type.BlockBytes())
}

// repeat writes size bytes of the pattern at an offset of the file, from a byte of the pattern on.
func repeat(f io.WriterAt, offset, size int64, pattern []byte, from int64) error {
	for from %= int64(len(pattern)); size > 0; from = 0 {
		part := pattern[from:]
		if int64(len(part)) > size {
			part = part[:size]
		}
		n, err := f.WriteAt(part, offset)
		if err != nil {
			return err
		}
		offset, size = offset+int64(n), size-int64(n)
	}
	return nil
}

// Bytes is the size of all tensors.
func (m *Model) Bytes() (n int64) {
	for _, t := range m.Tensors {
		n += bytesOf(t)
	}
	return n
}
