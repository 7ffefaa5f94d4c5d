package gguf

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

func bytesTensor(name string, data ...byte) TensorData {
	return TensorData{name, ir.I8, []int64{int64(len(data))}, data}
}

func write(t *testing.T, path string, meta []KV, tensors ...TensorData) {
	t.Helper()
	if err := os.WriteFile(path, encode(t, meta, tensors), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	write(t, path, allValues, bytesTensor("a", 1, 2, 3), bytesTensor("b", 4))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if f.Path != path || f.Version != 3 || !reflect.DeepEqual(f.Shards(), []string{path}) {
		t.Errorf("path %s, version %d, shards %v", f.Path, f.Version, f.Shards())
	}
	if len(f.Tensors) != 2 || f.Tensors[1].Name != "b" {
		t.Errorf("tensors %+v", f.Tensors)
	}
	a, ok := f.Tensor("a")
	if !ok || !bytes.Equal(f.Data(a), []byte{1, 2, 3}) {
		t.Errorf("tensor a: %v %+v", ok, a)
	}
	if _, ok := f.Tensor("c"); ok {
		t.Error("found a tensor that is not there")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "model.gguf")
	if err := os.WriteFile(path, raw(3, 1, 0).tensor("x", 0, 0, 1<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.gguf")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	missing := filepath.Join(dir, "missing.gguf")
	tests := map[string]string{
		path:    path + `: tensor "x": data ends at 4160, file has 57 bytes: the download or copy did not end`,
		empty:   empty + ": not a GGUF file, but an empty file",
		dir:     dir + ": not a GGUF file, but a folder",
		missing: "open " + missing + ": no such file or directory",
	}
	for path, want := range tests {
		if _, err := Open(path); err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// part is the metadata of part no, from 0, of count, and of tensors in all.
func part(no, count uint16, tensors int32) []KV {
	return []KV{{"split.no", no}, {"split.count", count}, {"split.tensors.count", tensors}}
}

func TestOpenSplit(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range uint16(3) {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("m-%05d-of-00003.gguf", i+1)))
		meta := append(part(i, 3, 3), KV{"general.name", fmt.Sprint("part ", i)})
		tensors := []TensorData{bytesTensor(fmt.Sprint("t", i), byte(i))}
		if i == 0 {
			tensors = nil // llama-gguf-split --no-tensor-first-split
		} else if i == 1 {
			tensors = append(tensors, bytesTensor("t0", 9))
		}
		write(t, paths[i], meta, tensors...)
	}
	f, err := Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if !reflect.DeepEqual(f.Shards(), paths) {
		t.Errorf("shards %v", f.Shards())
	}
	if name, _, _ := f.String("general.name"); name != "part 0" {
		t.Errorf("metadata is that of %s", name)
	}
	var got []string
	for i := range f.Tensors {
		x := &f.Tensors[i]
		got = append(got, fmt.Sprintf("%s %d %v", x.Name, x.Shard, f.Data(x)))
	}
	if want := []string{"t1 1 [1]", "t0 1 [9]", "t2 2 [2]"}; !reflect.DeepEqual(got, want) {
		t.Errorf("tensors %v, want %v", got, want)
	}
	before := f.Fingerprint()
	write(t, paths[2], append(part(2, 3, 3), KV{"general.name", "another"}), bytesTensor("t2", 2))
	other, err := Open(paths[0])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if other.Fingerprint() == before {
		t.Error("the fingerprint does not depend on the header of the last file")
	}
}

func TestOpenSplitErrors(t *testing.T) {
	x, y := bytesTensor("x", 1), bytesTensor("y", 2)
	type file struct {
		name    string
		meta    []KV
		tensors []TensorData
	}
	const first, second = "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"
	tests := map[string]struct {
		open  string
		files []file
		want  string // DIR/ stands for the folder
	}{
		"later part": {second, []file{{second, part(1, 2, 2), nil}},
			"DIR/" + second + ": part 2 of 2 of a split model: open the first, DIR/" + first},
		"renamed": {"m.gguf", []file{{"m.gguf", part(0, 2, 2), nil}},
			"DIR/m.gguf: part 1 of 2 of a split model, but the name does not end in -00001-of-00002.gguf"},
		"missing part": {first, []file{{first, part(0, 2, 2), nil}},
			"DIR/" + first + ": part 2 of 2 of the model is missing: DIR/" + second},
		"swapped": {first, []file{{first, part(0, 2, 2), nil}, {second, part(0, 2, 2), nil}},
			"DIR/" + second + ": part 1 of 2 by its metadata, part 2 of 2 by its name"},
		"of another model": {first, []file{{first, part(0, 2, 2), nil}, {second, part(1, 3, 2), nil}},
			"DIR/" + second + ": part 2 of 3 by its metadata, part 2 of 2 by its name"},
		"not a part": {first, []file{{first, part(0, 2, 2), nil}, {second, nil, nil}},
			"DIR/" + second + ": not a part of a split model by its metadata"},
		"tensors missing": {first, []file{{first, part(0, 2, 3), []TensorData{x}}, {second, part(1, 2, 3), []TensorData{y}}},
			"DIR/" + first + ": split.tensors.count is 3, the 2 parts have 2 tensors"},
		"tensor twice": {first, []file{{first, part(0, 2, 2), []TensorData{x}}, {second, part(1, 2, 2), []TensorData{x}}},
			"DIR/" + second + `: tensor "x" is in an earlier part too`},
		"no number": {first, []file{{first, []KV{{"split.count", uint16(2)}}, nil}},
			"DIR/" + first + `: key "split.no" is missing`},
		"number too large": {first, []file{{first, part(2, 2, 2), nil}},
			"DIR/" + first + ": split.no is 2, split.count 2"},
		"not a number": {first, []file{{first, []KV{{"split.count", "two"}}, nil}},
			"DIR/" + first + `: key "split.count" is the string "two", not an unsigned integer`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, f := range test.files {
				write(t, filepath.Join(dir, f.name), f.meta, f.tensors...)
			}
			_, err := Open(filepath.Join(dir, test.open))
			if want := strings.ReplaceAll(test.want, "DIR", dir); err == nil || err.Error() != want {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestFingerprint(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.gguf")
	fingerprint := func(meta []KV, tensors ...TensorData) [32]byte {
		write(t, path, meta, tensors...)
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		return f.Fingerprint()
	}
	base := fingerprint(allValues, bytesTensor("x", 1))
	if fingerprint(allValues, bytesTensor("x", 2)) != base {
		t.Error("depends on tensor data")
	}
	if fingerprint(allValues[1:], bytesTensor("x", 1)) == base {
		t.Error("does not depend on the metadata")
	}
	if fingerprint(allValues, bytesTensor("y", 1)) == base {
		t.Error("does not depend on the tensor table")
	}
}

func TestAccessors(t *testing.T) {
	h, err := parse(encode(t, allValues, nil))
	if err != nil {
		t.Fatal(err)
	}
	// a result and its error as one string, to keep the table readable
	show := func(v any, ok bool, err error) string {
		if err != nil {
			return err.Error()
		}
		return fmt.Sprint(v, " ", ok)
	}
	get := map[string]func(key string) string{
		"Uint":    func(k string) string { v, ok, err := h.Uint(k); return show(v, ok, err) },
		"Float":   func(k string) string { v, ok, err := h.Float(k); return show(v, ok, err) },
		"Bool":    func(k string) string { v, ok, err := h.Bool(k); return show(v, ok, err) },
		"String":  func(k string) string { v, ok, err := h.String(k); return show(v, ok, err) },
		"Strings": func(k string) string { v, ok, err := h.Strings(k); return show(v, ok, err) },
		"Ints":    func(k string) string { v, ok, err := h.Ints(k); return show(v, ok, err) },
		"Floats":  func(k string) string { v, ok, err := h.Floats(k); return show(v, ok, err) },
	}
	tests := []struct{ accessor, key, want string }{
		{"Uint", "u8", "200 true"},
		{"Uint", "u64", "9223372036854775808 true"},
		{"Uint", "none", "0 false"},
		{"Uint", "i32", `key "i32" is the int32 "-2000000000", not an unsigned integer`},
		{"Uint", "f32", `key "f32" is the float32 "1.5", not an unsigned integer`},
		{"Uint", "u32s", `key "u32s" is a []uint32, not an unsigned integer`},
		{"Float", "f32", "1.5 true"},
		{"Float", "i8", "-100 true"},
		{"Float", "u16", "60000 true"},
		{"Float", "none", "0 false"},
		{"Float", "bool", `key "bool" is the bool "true", not a number`},
		{"Bool", "bool", "true true"},
		{"Bool", "none", "false false"},
		{"Bool", "u8", `key "u8" is the uint8 "200", not a bool`},
		{"String", "string", "ünïcode true"},
		{"String", "none", " false"},
		{"String", "bool", `key "bool" is the bool "true", not a string`},
		{"Strings", "strings", "[a  ccc] true"},
		{"Strings", "none", "[] false"},
		{"Strings", "string", `key "string" is the string "ünïcode", not an array of strings`},
		{"Ints", "u32s", "[1 2 3] true"},
		{"Ints", "i32s", "[] true"},
		{"Ints", "i16", "[-30000] true"},
		{"Ints", "none", "[] false"},
		{"Ints", "u64s", `key "u64s" is a []uint64, not an integer or an array of integers`},
		{"Ints", "f32", `key "f32" is the float32 "1.5", not an integer or an array of integers`},
		{"Floats", "f32s", "[0.5 -0.5] true"},
		{"Floats", "u8", "[200] true"},
		{"Floats", "none", "[] false"},
		{"Floats", "bools", `key "bools" is a []bool, not a number or an array of numbers`},
	}
	for _, test := range tests {
		if got := get[test.accessor](test.key); got != test.want {
			t.Errorf("%s(%q)\ngot  %s\nwant %s", test.accessor, test.key, got, test.want)
		}
	}
}

// TestOpenHeader opens what is left of a model that ends anywhere behind its header.
func TestOpenHeader(t *testing.T) {
	data, err := os.ReadFile("../../testdata/models/gopher-q4_k_m.gguf")
	if err != nil {
		t.Fatal(err)
	}
	h, err := parse(data)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "head.gguf")
	for _, c := range []struct {
		size int64
		ok   bool
	}{{h.end, true}, {h.end + 1000, true}, {int64(len(data)), true}, {h.end - 1, false}} {
		if err := os.WriteFile(path, data[:c.size], 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := OpenHeader(path)
		if (err == nil) != c.ok {
			t.Fatalf("%d of %d bytes: %v", c.size, len(data), err)
		}
		if err != nil {
			continue
		}
		if len(f.Tensors) != len(h.tensors) || f.Tensors[3].Offset != h.tensors[3].Offset {
			t.Errorf("%d bytes: %d tensors, want %d", c.size, len(f.Tensors), len(h.tensors))
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}
