package gguf

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
	"pgregory.net/rapid"
)

// allValues has an entry of each value type, scalar and array.
var allValues = []KV{
	{"general.architecture", "test"},
	{"u8", uint8(200)}, {"i8", int8(-100)}, {"u16", uint16(60000)}, {"i16", int16(-30000)},
	{"u32", uint32(4e9)}, {"i32", int32(-2e9)}, {"u64", uint64(1 << 63)}, {"i64", int64(-1 << 63)},
	{"f32", float32(1.5)}, {"f64", 0.1}, {"bool", true}, {"string", "ünïcode"}, {"empty", ""},
	{"u8s", []uint8{1, 2}}, {"i8s", []int8{-1}}, {"u16s", []uint16{1}}, {"i16s", []int16{-1}},
	{"u32s", []uint32{1, 2, 3}}, {"i32s", []int32{}}, {"u64s", []uint64{1 << 63}}, {"i64s", []int64{-1}},
	{"f32s", []float32{0.5, -0.5}}, {"f64s", []float64{0.1}}, {"bools", []bool{true, false}},
	{"strings", []string{"a", "", "ccc"}},
}

func encode(t testing.TB, meta []KV, tensors []TensorData) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := Write(&b, meta, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func smallModel(t testing.TB) []byte {
	return encode(t, allValues, []TensorData{
		{"token_embd.weight", ir.Q4_K, []int64{256, 2}, bytes.Repeat([]byte{0x5a}, 288)},
		{"blk.0.attn_norm.weight", ir.F32, []int64{5}, bytes.Repeat([]byte{0x3f}, 20)},
		{"scale", ir.F16, nil, []byte{0, 0x3c}},
		{"output.weight", ir.Q8_0, []int64{32, 3, 2}, bytes.Repeat([]byte{0x11}, 204)},
	})
}

func TestParse(t *testing.T) {
	data := smallModel(t)
	h, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	if h.version != 3 {
		t.Errorf("version %d", h.version)
	}
	if len(h.Keys()) != len(allValues) {
		t.Fatalf("%d keys, want %d", len(h.Keys()), len(allValues))
	}
	for i, want := range allValues {
		got, _ := h.Value(want.Key)
		if h.Keys()[i] != want.Key || !reflect.DeepEqual(got, want.Value) {
			t.Errorf("key %d is %s = %#v, want %s = %#v", i, h.Keys()[i], got, want.Key, want.Value)
		}
	}
	start := (h.end + 31) / 32 * 32
	want := []Tensor{
		{"token_embd.weight", ir.Q4_K, "Q4_K", []int64{256, 2}, 0, start, 288, nil},
		{"blk.0.attn_norm.weight", ir.F32, "F32", []int64{5}, 0, start + 288, 20, nil},
		{"scale", ir.F16, "F16", nil, 0, start + 320, 2, nil},
		{"output.weight", ir.Q8_0, "Q8_0", []int64{32, 3, 2}, 0, start + 352, 204, nil},
	}
	if !reflect.DeepEqual(h.tensors, want) {
		t.Errorf("tensors\n%+v, want\n%+v", h.tensors, want)
	}
	if n := h.tensors[3].Elements(); n != 192 {
		t.Errorf("%d elements, want 192", n)
	}
}

func TestParseTruncated(t *testing.T) {
	data := smallModel(t)
	h, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	last := h.tensors[len(h.tensors)-1]
	for n := range data {
		_, err := parse(data[:n])
		if (err == nil) != (int64(n) >= last.Offset+last.Size) {
			t.Errorf("%d of %d bytes: %v", n, len(data), err)
		} else if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%d bytes: error is not one line: %q", n, err)
		}
	}
}

// parseBounded fails if parse allocates out of proportion to its input.
func parseBounded(t testing.TB, data []byte) (*header, error) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	h, err := parse(data)
	runtime.ReadMemStats(&after)
	if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(64<<10+64*len(data)); got > bound {
		t.Fatalf("%d bytes of input: allocated %d bytes, more than %d (error %v)", len(data), got, bound, err)
	}
	return h, err
}

func TestParseDamaged(t *testing.T) {
	data := smallModel(t)
	h, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		damaged := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			at := r.Int64N(h.end)
			if r.IntN(2) == 0 {
				damaged[at] ^= 1 << r.IntN(8)
			} else {
				damaged[at] = byte(r.Uint32())
			}
		}
		checkParsed(t, damaged)
	}
}

// checkParsed parses data and checks what must hold of every header accepted.
func checkParsed(t testing.TB, data []byte) {
	t.Helper()
	h, err := parseBounded(t, data)
	if err != nil {
		if strings.Contains(err.Error(), "\n") {
			t.Fatalf("error is not one line: %q", err)
		}
		return
	}
	if len(h.keys) != len(h.values) {
		t.Fatalf("%d keys, %d values", len(h.keys), len(h.values))
	}
	for _, x := range h.tensors {
		if x.Size < 1 || x.Elements() < 1 || x.Offset < h.end || x.Offset+x.Size > int64(len(data)) {
			t.Fatalf("tensor %+v is not inside %d to %d", x, h.end, len(data))
		}
		if x.Type != ir.Invalid && x.Type.Bytes(x.Elements()) != x.Size {
			t.Fatalf("tensor %+v has the wrong size", x)
		}
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(smallModel(f))
	f.Add(encode(f, []KV{{keyAlignment, uint32(64)}}, []TensorData{{"x", ir.I8, []int64{3}, []byte{1, 2, 3}}}))
	f.Add(raw(3, 1, 0).tensor("x", 16, 0, 256).pad(96))
	f.Fuzz(func(t *testing.T, data []byte) { checkParsed(t, data) })
}

// raw builds headers by hand, so that they can be wrong.
type rawHeader []byte

func raw(version uint32, tensors, keys uint64) rawHeader {
	b := le.AppendUint32([]byte(magic), version)
	return le.AppendUint64(le.AppendUint64(b, tensors), keys)
}

func (b rawHeader) key(name string, valueTypes ...uint32) rawHeader {
	b = appendString(b, name)
	for _, t := range valueTypes {
		b = le.AppendUint32(b, t)
	}
	return b
}

func (b rawHeader) kv(name string, value any) rawHeader {
	b, err := appendValue(appendString(b, name), value)
	if err != nil {
		panic(err)
	}
	return b
}

func (b rawHeader) u64(v uint64) rawHeader { return le.AppendUint64(b, v) }

func (b rawHeader) tensor(name string, typ uint32, offset uint64, shape ...uint64) rawHeader {
	b = le.AppendUint32(appendString(b, name), uint32(len(shape)))
	for _, d := range shape {
		b = le.AppendUint64(b, d)
	}
	return le.AppendUint64(le.AppendUint32(b, typ), offset)
}

// pad adds the padding before the data and n bytes of data.
func (b rawHeader) pad(n int) []byte {
	return append(b, make([]byte, -len(b)&(defaultAlignment-1)+n)...)
}

func TestParseErrors(t *testing.T) {
	long := strings.Repeat("n", 64)
	tests := []struct {
		data []byte
		want string
	}{
		{nil, "file ends inside the header: 4 bytes wanted at 0, file has 0"},
		{[]byte("GGML\x03\x00\x00\x00"), "not a GGUF file"},
		{raw(0x03000000, 0, 0), "big-endian GGUF files are not supported"},
		{raw(1, 0, 0), "GGUF version 1 is not supported, only 2 and 3"},
		{raw(4, 0, 0), "GGUF version 4 is not supported, only 2 and 3"},
		{raw(3, 1<<60, 0), "1152921504606846976 tensors cannot fit in the 8 bytes left"},
		{raw(3, 0, 1<<60), "1152921504606846976 keys cannot fit in the 0 bytes left"},
		{raw(3, 0, 1).u64(1 << 40).pad(99), "key 0 has a name of 1099511627776 bytes"},
		{raw(3, 0, 1).u64(0).pad(99), "key 0 has a name of 0 bytes"},
		{raw(3, 0, 2).kv("k", uint8(1)).kv("k", uint8(1)), `key "k": key "k" appears twice`},
		{raw(3, 0, 1).key("k", 13).u64(0), `key "k": unknown value type 13`},
		{raw(3, 0, 1).key("k", 9, 9).u64(1), `key "k": arrays of value type 9 are not supported`},
		{raw(3, 0, 1).key("k", 9, 5).u64(1 << 40), `key "k": 1099511627776 array elements cannot fit in the 0 bytes left`},
		{raw(3, 0, 1).key("k", 8).u64(1 << 63), `key "k": file ends inside the header: 9223372036854775808 bytes wanted at 45, file has 45`},
		{append(raw(3, 0, 1).key("k", 7), 2), `key "k": bool has the value 2`},
		{raw(3, 0, 1).kv(keyAlignment, uint64(32)), `key "general.alignment" is the uint64 "32", not a uint32`},
		{raw(3, 0, 1).kv(keyAlignment, uint32(0)), `key "general.alignment" is 0, not a power of two up to 1048576`},
		{raw(3, 0, 1).kv(keyAlignment, uint32(48)), `key "general.alignment" is 48, not a power of two up to 1048576`},
		{raw(3, 0, 1).kv(keyAlignment, uint32(1<<31)), `key "general.alignment" is 2147483648, not a power of two up to 1048576`},
		{raw(3, 1, 0).tensor("", 0, 0, 1).pad(4), "tensor has a name of 0 bytes, not 1 to 63"},
		{raw(3, 1, 0).tensor(long, 0, 0, 1).pad(4), "tensor has a name of 64 bytes, not 1 to 63"},
		{raw(3, 1, 0).tensor("x", 0, 0, 1, 1, 1, 1, 1).pad(4), `tensor "x" has 5 dimensions, more than 4`},
		{raw(3, 1, 0).tensor("x", 0, 0, 2, 0).pad(4), `tensor "x": shape [2 0] has a dimension below 1`},
		{raw(3, 1, 0).tensor("x", 0, 0, 1<<63).pad(4), `tensor "x": shape [-9223372036854775808] has a dimension below 1`},
		{raw(3, 1, 0).tensor("x", 0, 0, 1<<32, 1<<31).pad(4), `tensor "x": shape [4294967296 2147483648] has too many elements`},
		{raw(3, 1, 0).tensor("x", 0, 0, 1<<62).pad(4), `tensor "x": shape [4611686018427387904] has too many bytes`},
		{raw(3, 1, 0).tensor("x", 12, 0, 128, 2).pad(144), `tensor "x": rows of shape [128 2] are not whole Q4_K blocks of 256`},
		{raw(3, 1, 0).tensor("x", 8, 0).pad(34), `tensor "x": rows of shape [] are not whole Q8_0 blocks of 32`},
		{raw(3, 1, 0).tensor("x", 4, 0, 32).pad(34), `tensor "x" has the unknown type number 4`},
		{raw(3, 1, 0).tensor("x", 1<<31, 0, 32).pad(34), `tensor "x" has the unknown type number 2147483648`},
		{raw(3, 1, 0).tensor("x", 0, 8, 1).pad(12), `tensor "x": offset 8 is not a multiple of the alignment 32`},
		{raw(3, 1, 0).tensor("x", 0, 1<<63, 1).pad(12), `tensor "x": offset 9223372036854775808 is too large`},
		{raw(3, 1, 0).tensor("x", 0, 1<<63-32, 1).pad(12), `tensor "x": data ends at 9223372036854775844, file has 76 bytes: the download or copy did not end`},
		{raw(3, 1, 0).tensor("x", 0, 0, 4).pad(15), `tensor "x": data ends at 80, file has 79 bytes: the download or copy did not end`},
		{raw(3, 1, 0).tensor("x", 16, 0, 256).pad(65), `tensor "x": data ends at 130, file has 129 bytes: the download or copy did not end`},
		{raw(3, 1, 0).tensor("x", 0, 0, 1), `tensor "x": data ends at 68, file has 57 bytes: the download or copy did not end`},
		{raw(3, 2, 0).tensor("x", 0, 0, 1).tensor("x", 0, 32, 1).pad(64), `tensor "x" appears twice`},
		{raw(3, 2, 0).tensor("y", 0, 32, 8).tensor("x", 0, 0, 9).pad(64), `tensors "x" and "y" overlap`},
		{raw(3, 2, 0).tensor("x", 0, 0, 1).tensor("y", 0, 0, 1).pad(64), `tensors "x" and "y" overlap`},
	}
	for _, test := range tests {
		_, err := parseBounded(t, test.data)
		if err == nil || err.Error() != test.want {
			t.Errorf("got  %v\nwant %s", err, test.want)
		}
	}
}

// What the format allows although no writer in use does it.
func TestParseAccepts(t *testing.T) {
	tests := map[string][]byte{
		"version 2":            raw(2, 1, 0).tensor("x", 0, 0, 1).pad(4),
		"nothing":              raw(3, 0, 0),
		"tensors out of order": raw(3, 2, 0).tensor("x", 0, 32, 1).tensor("y", 0, 0, 8).pad(36),
		"a gap":                raw(3, 2, 0).tensor("x", 0, 0, 1).tensor("y", 0, 64, 1).pad(68),
		"alignment 1":          append(raw(3, 2, 1).kv(keyAlignment, uint32(1)).tensor("x", 24, 0, 1).tensor("y", 24, 1, 1), 1, 2),
	}
	for name, data := range tests {
		if _, err := parse(data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestParseUnsupportedType(t *testing.T) {
	h, err := parse(raw(3, 1, 0).tensor("x", 15, 0, 512).pad(584))
	if err != nil {
		t.Fatal(err)
	}
	want := Tensor{"x", ir.Invalid, "Q8_K", []int64{512}, 0, 64, 584, nil}
	if !reflect.DeepEqual(h.tensors[0], want) {
		t.Errorf("got %+v, want %+v", h.tensors[0], want)
	}
}

func TestWriteErrors(t *testing.T) {
	f32 := func(name string, shape []int64, bytes int) []TensorData {
		return []TensorData{{name, ir.F32, shape, make([]byte, bytes)}}
	}
	tests := []struct {
		meta    []KV
		tensors []TensorData
		want    string
	}{
		{[]KV{{"k", 1}}, nil, `key "k": GGUF has no value type for int`},
		{[]KV{{"k", nil}}, nil, `key "k": GGUF has no value type for <nil>`},
		{[]KV{{"k", [][]string{}}}, nil, `key "k": GGUF has no value type for [][]string`},
		{[]KV{{keyAlignment, uint32(3)}}, nil, `key "general.alignment" is 3, not a power of two up to 1048576`},
		{nil, []TensorData{{"x", ir.Invalid, []int64{1}, nil}}, `tensor "x": GGUF has no type invalid`},
		{nil, []TensorData{{"x", ir.Q4_0, []int64{16, 2}, nil}}, `tensor "x": rows of shape [16 2] are not whole Q4_0 blocks of 32`},
		{nil, f32("x", []int64{2}, 9), `tensor "x": shape [2] of f32 takes 8 bytes, not 9`},
	}
	for _, test := range tests {
		if err := Write(new(bytes.Buffer), test.meta, test.tensors); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
}

// What is written is read back, for any tensors and alignment.
func TestWriteParse(t *testing.T) {
	types := ir.DTypes()
	rapid.Check(t, func(t *rapid.T) {
		meta := []KV{{keyAlignment, uint32(1) << rapid.IntRange(0, 8).Draw(t, "log alignment")}}
		for i, v := range rapid.SliceOf(rapid.String()).Draw(t, "strings") {
			meta = append(meta, KV{fmt.Sprint("key.", i), v})
		}
		var tensors []TensorData
		for i := range rapid.IntRange(0, 5).Draw(t, "tensors") {
			typ := rapid.SampledFrom(types).Draw(t, "type")
			shape := rapid.SliceOfN(rapid.Int64Range(1, 3), 1, 4).Draw(t, "shape")
			n := int64(typ.Block())
			for _, d := range shape {
				n *= d
			}
			shape[0] *= int64(typ.Block())
			data := bytes.Repeat([]byte{byte(i + 1)}, int(typ.Bytes(n)))
			tensors = append(tensors, TensorData{fmt.Sprint("t.", i), typ, shape, data})
		}
		var b bytes.Buffer
		if err := Write(&b, meta, tensors); err != nil {
			t.Fatal(err)
		}
		h, err := parse(b.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range meta {
			if v, _ := h.Value(e.Key); v != e.Value {
				t.Fatalf("%s = %v, want %v", e.Key, v, e.Value)
			}
		}
		for i, want := range tensors {
			got := h.tensors[i]
			data := b.Bytes()[got.Offset:][:got.Size]
			if got.Name != want.Name || got.Type != want.Type || !reflect.DeepEqual(got.Shape, want.Shape) || !bytes.Equal(data, want.Data) {
				t.Fatalf("got %+v, want %+v", got, want)
			}
		}
	})
}
