package grammar

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
)

// TestMain keeps what tests keep apart from what the user has.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "zincc-grammar-")
	if err != nil {
		panic(err)
	}
	for _, name := range []string{"XDG_CACHE_HOME", "XDG_CONFIG_HOME", "HOME"} {
		os.Setenv(name, dir)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// TestTablesAreKept holds that tables which are read are those which were made, and that others are made again.
func TestTablesAreKept(t *testing.T) {
	pieces := []string{"a", "", `b"`, `":"`, `","c`, "a", "\xff<end>", "häus", `\u00`, "[1,"}
	want := NewVocabulary(pieces, []int32{6})
	path := filepath.Join(os.Getenv("XDG_CACHE_HOME"), "zincc", "vocabularies", tablesName(pieces, []int32{6}))
	same := func(what string) []byte {
		if got := Kept(pieces, []int32{6}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: tables differ", what)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	first := same("made")
	same("read")
	c := codec{data: first[32:]}
	{
		v := bare(pieces, []int32{6})
		if v.tables(&c); !c.good() || !reflect.DeepEqual(v, want) {
			t.Error("what is kept are other tables")
		}
	}
	for i, data := range [][]byte{first[:40], append([]byte{first[0] ^ 1}, first[1:]...), append(append([]byte{}, first...), 0), nil} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if again := same("damaged"); !reflect.DeepEqual(again, first) {
			t.Errorf("damage %d is not mended", i)
		}
	}
	for n := range len(first) - 32 { // what was cut off is no tables, whatever its sum
		v, c := bare(pieces, []int32{6}), codec{data: first[32 : 32+n]}
		if v.tables(&c); c.good() {
			t.Fatalf("%d bytes are taken", n)
		}
	}
	if tablesName(pieces, []int32{6}) == tablesName(pieces, []int32{5}) || tablesName(pieces, nil) == tablesName(pieces[:9], nil) {
		t.Error("other vocabularies have the same name")
	}
}
