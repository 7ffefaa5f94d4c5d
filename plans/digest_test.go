package plans

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// TestDigest checks that writing and reading a plan give the same digest, without embedded weights that of sha256sum,
// and that a change of any field of any section gives another.
func TestDigest(t *testing.T) {
	path := filepath.Join(t.TempDir(), "plan.bin")
	digest := func(p *Plan) Digest {
		t.Helper()
		wrote, err := WriteFile(path, p)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		read, ok := q.Digest()
		if err := q.Close(); err != nil || !ok || read != wrote {
			t.Errorf("written as %s, read as %s, %v, %v", wrote, read, ok, err)
		}
		return read
	}
	if _, ok := testPlan(t, true).Digest(); ok {
		t.Error("a plan that was not read has a digest")
	}
	good := digest(testPlan(t, false))
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := Digest(sha256.Sum256(data)); good != want {
		t.Errorf("%s, want %s", good, want)
	}
	seen := map[Digest]string{good: "the plan"}
	embedded := testPlan(t, true)
	embedded.Embedded = append(bytes.Clone(embedded.Embedded), make([]byte, 2*hashPiece)...)
	last := bytes.Clone(embedded.Embedded)
	last[len(last)-1]++
	for name, change := range map[string]func(p *Plan){
		"compiler":   func(p *Plan) { p.Header.Compiler += "x" },
		"path":       func(p *Plan) { p.Header.Model.Path += "x" },
		"token":      func(p *Plan) { p.Vocab.Tokens = append(p.Vocab.Tokens, "another") },
		"template":   func(p *Plan) { p.Vocab.ChatTemplate += "x" },
		"dialect":    func(p *Plan) { p.Dialect.ReasoningOpen += "x" },
		"constant":   func(p *Plan) { p.Pipelines[0].Consts[0].Value++ },
		"why":        func(p *Plan) { p.Entries[0].Dispatches[0].Why += "x" },
		"arena":      func(p *Plan) { p.Memory.Arena += 64 },
		"embedded":   func(p *Plan) { *p = *embedded },
		"last byte":  func(p *Plan) { *p = *embedded; p.Embedded = last },
		"first byte": func(p *Plan) { *p = *embedded; p.Embedded = append([]byte{last[0] + 1}, last[1:]...) },
	} {
		p := testPlan(t, false)
		change(p)
		d := digest(p)
		if other, ok := seen[d]; ok {
			t.Errorf("another %s: the digest of %s", name, other)
		}
		seen[d] = name
	}
}

func TestDigestText(t *testing.T) {
	want := Digest(sha256.Sum256([]byte("x")))
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var have Digest
	if err := json.Unmarshal(text, &have); err != nil || have != want {
		t.Errorf("%s, %v", have, err)
	}
	for _, bad := range []string{`""`, `"00"`, string(text[:len(text)-2]) + `"`, `"0` + string(text[1:]), `"z` + string(text[2:])} {
		if err := json.Unmarshal([]byte(bad), &have); err == nil {
			t.Errorf("%s is read as %s", bad, have)
		}
	}
}
