package plans

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/zincc-dev/zincc/ir"
)

func TestRoundTrip(t *testing.T) {
	for _, embed := range []bool{false, true} {
		p := testPlan(t, embed)
		path := filepath.Join(t.TempDir(), "plan.bin")
		if _, err := WriteFile(path, p); err != nil {
			t.Fatal(err)
		}
		q, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(encoded(t, q), encoded(t, p)) {
			t.Error("what was read encodes to other bytes")
		}
		if ir.Print(p.Program) != ir.Print(q.Program) {
			t.Error("program differs")
		}
		q.Program, q.mapped, q.info, q.digest = p.Program, nil, nil, nil
		if !reflect.DeepEqual(p, q) {
			t.Errorf("read back\n%+v\nwant\n%+v", q, p)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDamage flips bytes anywhere and cuts everywhere near a section's ends: each
// damage is an error of one line.
func TestDamage(t *testing.T) {
	data := encoded(t, testPlan(t, true))
	check := func(what string, at int, bad []byte) {
		p, err := Decode(bad)
		if err == nil || p != nil || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%s at %d: error %v", what, at, err)
		}
	}
	rng := rand.New(rand.NewPCG(3, 4))
	for range 10000 {
		at := rng.IntN(len(data))
		flip := byte(1 + rng.IntN(255))
		data[at] ^= flip
		check("flip", at, data)
		data[at] ^= flip
	}
	ends := []int{0, 1, len(magic), headSize, headSize + len(sections)*tocEntrySize, len(data)}
	for i := range sections {
		at := int(le.Uint64(data[headSize+i*tocEntrySize+8:]))
		ends = append(ends, at, at+int(le.Uint64(data[headSize+i*tocEntrySize+16:])))
	}
	for _, end := range ends {
		for at := max(0, end-2); at <= min(end+2, len(data)-1); at++ {
			check("cut", at, data[:at])
		}
	}
	check("tail", len(data), append(data[:len(data):len(data)], 0))
}

// rewrite replaces the bytes of a section and makes the checksums right again.
func rewrite(data []byte, id int, section []byte) []byte {
	return repack(data, id, makePart(sections[id], section))
}

// repack is rewrite for a section as it is in the file.
func repack(data []byte, id int, section part) []byte {
	at := frontEnd(data)
	parts, err := split(data[:at], data[at:])
	if err != nil {
		panic(err)
	}
	parts[id] = section
	front, err := join(parts)
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := writeFile(&b, front, parts[len(parts)-1].data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// TestForgedSections has right checksums around wrong contents: no byte of a
// section may panic the decoder, and huge counts may not allocate.
func TestForgedSections(t *testing.T) {
	data := encoded(t, testPlan(t, true))
	rng := rand.New(rand.NewPCG(5, 6))
	for id, s := range sections {
		if s.decode == nil {
			continue
		}
		part := s.encode(testPlan(t, true))
		for range 300 {
			bad := bytes.Clone(part)
			for range 1 + rng.IntN(3) {
				bad[rng.IntN(len(bad))] = []byte{0, 1, 0x7f, 0x80, 0xff, byte(rng.Uint32())}[rng.IntN(6)]
			}
			if p, err := Decode(rewrite(data, id, bad)); err == nil {
				Check(p)
			} else if strings.Contains(err.Error(), "\n") {
				t.Fatalf("section %s: error of several lines: %q", s.name, err)
			}
		}
		huge := append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, part...)
		if _, err := Decode(rewrite(data, id, huge)); err == nil {
			t.Errorf("section %s: count of 2^41 is taken", s.name)
		}
	}
}

// TestPackedSizes has sections that unpack to other sizes than the table of contents
// says, or claim sizes beyond all bounds.
func TestPackedSizes(t *testing.T) {
	good := encoded(t, testPlan(t, false))
	vocab := sections[8].encode(testPlan(t, false))
	packed, bomb := pack(vocab), pack(make([]byte, maxSection+1))
	for _, c := range []struct {
		name string
		part part
		want string
	}{
		{"too few said", part{packed, len(vocab) - 1}, "unpack: not the"},
		{"too many said", part{packed, len(vocab) + 1}, "unpack: not the"},
		{"bytes after the end", part{append(bytes.Clone(packed), 0), len(vocab)}, "unpack: not the"},
		{"cut", part{packed[:len(packed)-1], len(vocab)}, "unpack: unexpected EOF"},
		{"not deflated", part{[]byte("\xff\xff\xff"), 10}, "unpack: flate: corrupt input"},
		{"empty", part{nil, 10}, "unpack: unexpected EOF"},
		{"more than deflate can hold", part{packed, maxSection - 1}, "cannot come out of"},
		{"bomb", part{bomb, 1000}, "unpack: not the 1000 bytes"},
	} {
		_, err := Decode(repack(good, 8, c.part))
		if err == nil || !strings.HasPrefix(err.Error(), "section vocab: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	// Sizes beyond the limits, in a head whose checksum is right.
	for _, n := range []uint64{maxSection + 1, 1 << 63, 1<<64 - 1} {
		bad := bytes.Clone(good)
		le.PutUint64(bad[headSize+8*tocEntrySize+24:], n)
		le.PutUint32(bad[20:], headSum(bad[:headSize+len(sections)*tocEntrySize]))
		if _, err := Decode(bad); err == nil || !strings.Contains(err.Error(), "the limit is") {
			t.Errorf("unpacked size %d: error %v", n, err)
		}
	}
}

func TestErrors(t *testing.T) {
	good := encoded(t, testPlan(t, false))
	with := func(at int, v uint32) []byte {
		b := bytes.Clone(good)
		le.PutUint32(b[at:], v)
		return b
	}
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "not a zincc plan"},
		{"gguf", []byte("GGUF\x03\x00\x00\x00 and so on, and so on"), `not a zincc plan (begins with "GGUF`},
		{"newer", with(8, Version+1), "newer than this program's"},
		{"older", with(8, Version-1), "compile the model again"},
		{"schema", with(12, 1), "another development version"},
		{"toc", with(headSize+8, 1), "head: checksum"},
		{"cut", good[:len(good)-64], "section"},
		{"weights", rewrite(good, 5, []byte("\x01\x03abc\x02q9 and more")), `section weights: field [0].DType: unknown dtype "q9"`},
		{"program", rewrite(good, 7, []byte("zir 1\nstage place\nmodel x")), "section program: zir line 3"},
		{"extra", rewrite(good, 8, append(sections[8].encode(testPlan(t, false)), 0)), "section vocab: 1 bytes too many"},
	}
	for _, tt := range tests {
		if _, err := Decode(tt.data); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, good[:200], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.HasPrefix(err.Error(), path) {
		t.Errorf("error %v does not begin with the path", err)
	}
	if _, err := Read(filepath.Dir(path)); err == nil || !strings.Contains(err.Error(), "not a zincc plan") {
		t.Errorf("directory: error %v", err)
	}
}

func TestWriteFileIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plan.bin")
	if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := testPlan(t, false)
	p.Entries[0].Dispatches[0].Pipeline = 99
	if _, err := WriteFile(path, p); err == nil {
		t.Error("a plan that cannot be read back was written")
	}
	files, err := os.ReadDir(dir)
	if data, _ := os.ReadFile(path); err != nil || len(files) != 1 || string(data) != "before" {
		t.Errorf("after failed writes: %d files, %q", len(files), data)
	}
}

func TestVocabSizeAndSpeed(t *testing.T) {
	p := testPlan(t, false)
	text := strings.Repeat("token", 1<<20)
	for i := range 1 << 18 {
		p.Vocab.Tokens = append(p.Vocab.Tokens, text[i:i+8])
		p.Vocab.Merges = append(p.Vocab.Merges, text[i:i+9])
	}
	data := encoded(t, p)
	if n := (8 + 9 + 2) << 18; len(data) > n+1<<16 {
		t.Errorf("plan has %d bytes, want about %d", len(data), n)
	}
	if _, err := Decode(data); err != nil {
		t.Fatal(err)
	}
	// Strings share the section's memory: a few allocations, not one a token.
	if n := testing.AllocsPerRun(1, func() { Decode(data) }); n > 10000 {
		t.Errorf("%g allocations", n)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(encoded(f, testPlan(f, false)))
	f.Add(encoded(f, testPlan(f, true)))
	f.Add([]byte(magic))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Decode(data)
		if err != nil {
			return
		}
		checkStable(t, p)
		Check(p)
	})
}

// checkStable checks that p is what its encoding decodes to. The bytes that p came
// from may be others: a text can be deflated in many ways.
func checkStable(t *testing.T, p *Plan) {
	t.Helper()
	q, err := Decode(encoded(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encoded(t, p), encoded(t, q)) {
		t.Error("encodes to other bytes")
	}
}

// FuzzPacked gives a section any bytes in place of deflated ones.
func FuzzPacked(f *testing.F) {
	good := encoded(f, testPlan(f, false))
	for id, s := range sections {
		if s.decode != nil {
			data := s.encode(testPlan(f, false))
			f.Add(uint8(id), pack(data), uint32(len(data)))
		}
	}
	f.Fuzz(func(t *testing.T, id uint8, data []byte, unpacked uint32) {
		section := int(id) % len(sections)
		if sections[section].decode == nil {
			return
		}
		p, err := Decode(repack(good, section, part{data, int(unpacked % maxSection)}))
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("error of several lines: %q", err)
			}
			return
		}
		checkStable(t, p)
	})
}

// FuzzSection skips the checksums and the packing, which a fuzzer cannot guess.
func FuzzSection(f *testing.F) {
	p := testPlan(f, false)
	good := encoded(f, p)
	for id, s := range sections {
		if s.decode != nil {
			f.Add(uint8(id), s.encode(p))
		}
	}
	f.Fuzz(func(t *testing.T, id uint8, part []byte) {
		p, err := Decode(rewrite(good, int(id)%len(sections), part))
		if err != nil {
			return
		}
		checkStable(t, p)
		Check(p)
	})
}
