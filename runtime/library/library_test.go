package library

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParseRef(t *testing.T) {
	for s, want := range map[string]string{
		"hf.co/acme/Tiny-GGUF":                    "hf.co/acme/Tiny-GGUF",
		"HF.co/acme/Tiny-GGUF:Q4_K_M":             "hf.co/acme/Tiny-GGUF:Q4_K_M",
		"huggingface.co/acme/T":                   "hf.co/acme/T",
		"https://huggingface.co/acme/T/tree/main": "hf.co/acme/T",
		"https://huggingface.co/acme/T/resolve/main/d/x-Q8_0.gguf?download=on": "hf.co/acme/T/d/x-Q8_0.gguf",
		"https://huggingface.co/acme/T/blob/main/x.gguf":                       "hf.co/acme/T/x.gguf",
		"hf.co/acme/T/x.gguf":            "hf.co/acme/T/x.gguf",
		"qwen3":                          "qwen3:latest",
		"qwen3:8b":                       "qwen3:8b",
		"ollama.com/library/qwen3:8b":    "qwen3:8b",
		"ollama.com/me/own":              "ollama.com/me/own:latest",
		"https://x.example/a/m.gguf":     "https://x.example/a/m.gguf",
		"http://127.0.0.1:1/m.gguf":      "http://127.0.0.1:1/m.gguf",
		"acme/Tiny":                      "!say hf.co/acme/Tiny or ollama.com/acme/Tiny",
		"hf.co/acme":                     "!want hf.co/ORG/REPO",
		"hf.co/acme/T:../x":              "!is no name of a GGUF file",
		"hf.co/acme/T:..":                "!want hf.co/ORG/REPO",
		"hf.co/../T":                     "!want hf.co/ORG/REPO",
		"hf.co/acme/T/../../x.gguf":      "!is no name of a GGUF file",
		"hf.co/acme/T/README.md":         "!is no name of a GGUF file",
		"http://x.example/m.gguf":        "!say https://",
		"https://me:pw@x.example/m.gguf": "!with a user's name",
		"https://x.example/":             "!does not end in .gguf",
		"a/b/c":                          "!want hf.co/ORG/REPO",
		"":                               "!want hf.co/ORG/REPO",
		"x y":                            "!want hf.co/ORG/REPO",
	} {
		r, err := ParseRef(s)
		wrong, fails := strings.CutPrefix(want, "!")
		switch {
		case fails && (err == nil || !strings.Contains(err.Error(), wrong)):
			t.Errorf("%q: %+v, %v; want error %s", s, r, err, wrong)
		case !fails && (err != nil || r.String() != want):
			t.Errorf("%q: %s, %v; want %s", s, r, err, want)
		}
	}
}

// TestPlacesLieInTheFolder holds that no name leads out of the models folder.
func TestPlacesLieInTheFolder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"..", ".", "", "a", "b.gguf", "/", "\\", "c:", "%2e%2e", "x\x00y", ".hidden", "~", "é"})
		text := strings.Join(rapid.SliceOfN(part, 1, 6).Draw(t, "parts"), rapid.SampledFrom([]string{"/", "", ":"}).Draw(t, "separator"))
		prefix := rapid.SampledFrom([]string{"", "hf.co/", "hf.co/a/b/", "https://x.example/", "ollama.com/"}).Draw(t, "prefix")
		r, err := ParseRef(prefix + text)
		if err != nil {
			return
		}
		file := text
		if r.File != "" {
			file = r.File
		}
		place, err := r.Place(file)
		if err == nil && (!filepath.IsLocal(place) || slices.Contains(strings.Split(filepath.ToSlash(place), "/"), "..") || strings.ContainsAny(place, "\\\x00:")) {
			t.Errorf("%q lies at %q", prefix+text, place)
		}
		if again, err := ParseRef(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v is read as %+v, %v", prefix+text, r, again, err)
		}
	})
}

func TestChoose(t *testing.T) {
	files := []string{
		"m-Q2_K.gguf", "m-UD-Q4_K_XL.gguf", "BF16/m-BF16-00001-of-00002.gguf", "BF16/m-BF16-00002-of-00002.gguf", "mmproj-F16.gguf", "m-imatrix.gguf",
		"README.md", "Q8_0/m-00001-of-00003.gguf", "Q8_0/m-00003-of-00003.gguf",
	}
	groups := Groups(files)
	for tag, want := range map[string]string{
		"": "m-UD-Q4_K_XL.gguf", "q2_k": "m-Q2_K.gguf", "bf16": "BF16/m-BF16-00001-of-00002.gguf BF16/m-BF16-00002-of-00002.gguf",
		"Q8_0": "Q8_0/m-00001-of-00003.gguf Q8_0/m-00003-of-00003.gguf, but Q8_0/m-00002-of-00003.gguf", "m-q2_k": "m-Q2_K.gguf",
		"Q6_K": "it has no Q6_K, but BF16, Q8_0, Q2_K, UD-Q4_K_XL",
	} {
		g, err := Choose(groups, tag)
		got := strings.Join(g.Files, " ")
		if g.Missing != "" {
			got += ", but " + g.Missing
		}
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: %s, want %s", tag, got, want)
		}
	}
	if _, err := Choose(Groups([]string{"a-Q2_K.gguf", "a-Q3_K_S.gguf"}), ""); err == nil || err.Error() != "say which: Q2_K, Q3_K_S" {
		t.Error(err)
	}
}

// write makes files of a few bytes.
func write(t *testing.T, root string, files ...string) {
	t.Helper()
	for _, f := range files {
		p := filepath.Join(root, filepath.FromSlash(f))
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte("GGUF"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// home makes a home of all caches, and returns the library of its models folder.
func home(t *testing.T) (*Library, string) {
	t.Helper()
	dir := t.TempDir()
	for _, v := range []string{"ZINCRUN_MODELS", "XDG_DATA_HOME", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "OLLAMA_MODELS"} {
		t.Setenv(v, "")
	}
	t.Setenv("HOME", dir)
	t.Setenv("USERPROFILE", dir)
	l, err := Open("")
	if err != nil {
		t.Fatal(err)
	}
	return l, dir
}

func TestListAndFind(t *testing.T) {
	l, dir := home(t)
	write(t, l.Dir, "hf.co/acme/Tiny-GGUF/tiny-Q4_K_M.gguf", "hf.co/acme/Tiny-GGUF/tiny-Q8_0.gguf", "hf.co/acme/Tiny-GGUF/other-Q8_0.gguf",
		"hf.co/acme/Big/big-F16-00001-of-00002.gguf", "hf.co/acme/Big/big-F16-00002-of-00002.gguf", "hf.co/acme/Half/half-Q4_0-00001-of-00002.gguf",
		"ollama/library/qwen3/8b.gguf", "ollama/library/qwen3/latest.gguf", "mine.gguf", "web/x.example/w.gguf", "hf.co/acme/Slow/slow-Q4_0.gguf.part",
		".locks/x.gguf", "hf.co/acme/Tiny-GGUF/mmproj-F16.gguf")
	commit := strings.Repeat("a", 40)
	write(t, dir, ".cache/huggingface/hub/models--acme--Hub/snapshots/"+commit+"/h-Q4_0.gguf", ".cache/huggingface/hub/models--acme--Hub/snapshots/old/x-Q4_0.gguf",
		".lmstudio/models/acme/Tiny-GGUF/tiny-Q4_K_M.gguf", ".lmstudio/models/acme/Studio/s-Q6_K.gguf", ".ollama/models/blobs/sha256-"+strings.Repeat("b", 64))
	for path, text := range map[string]string{
		".cache/huggingface/hub/models--acme--Hub/refs/main":           commit,
		".ollama/models/manifests/registry.ollama.ai/library/llama/1b": fmt.Sprintf(`{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:%s","size":4}]}`, strings.Repeat("b", 64)),
		".ollama/models/manifests/registry.ollama.ai/library/evil/1b":  `{"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:../../../mine.gguf","size":4}]}`,
	} {
		p := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, m := range l.List() {
		got = append(got, m.Name+" | "+m.Where+" | "+m.Problem)
	}
	want := []string{
		"hf.co/acme/Big:F16 | models | ",
		"hf.co/acme/Half:Q4_0 | models | half-Q4_0-00002-of-00002.gguf is missing",
		"hf.co/acme/Hub:Q4_0 | Hugging Face | ",
		"hf.co/acme/Slow:Q4_0 | models | " + Unfinished,
		"hf.co/acme/Studio:Q6_K | LM Studio | ",
		"hf.co/acme/Tiny-GGUF/tiny-Q8_0.gguf | models | ",
		"hf.co/acme/Tiny-GGUF:Q4_K_M | models | ",
		"hf.co/acme/Tiny-GGUF:Q8_0 | models | ",
		"llama:1b | Ollama | ",
		"mine | models | ",
		"qwen3:8b | models | ",
		"qwen3:latest | models | ",
		"w | models | ",
	}
	if !slices.Equal(got, want) {
		t.Errorf("list:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for name, want := range map[string]string{
		"QWEN3:8B": "qwen3:8b", "qwen3": "qwen3:latest", "hf.co/acme/Tiny-GGUF": "hf.co/acme/Tiny-GGUF:Q4_K_M", "acme/tiny-gguf:q8_0": "hf.co/acme/Tiny-GGUF:Q8_0",
		"Tiny-GGUF:Q4_K_M": "hf.co/acme/Tiny-GGUF:Q4_K_M", "tiny-q4_k_m": "hf.co/acme/Tiny-GGUF:Q4_K_M", "Big": "hf.co/acme/Big:F16", "big-F16": "hf.co/acme/Big:F16",
		"llama": "llama:1b", "Studio": "hf.co/acme/Studio:Q6_K", "mine": "mine", "nothing": "there is no model nothing here", "evil:1b": "there is no model evil:1b here",
		"h-q4_0": "hf.co/acme/Hub:Q4_0", "https://x.example/w.gguf": "there is no model https://x.example/w.gguf here",
	} {
		m, err := l.Find(name)
		got := m.Name
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestRemove(t *testing.T) {
	l, dir := home(t)
	write(t, l.Dir, "hf.co/acme/Big/big-F16-00001-of-00002.gguf", "hf.co/acme/Big/big-F16-00002-of-00002.gguf", "mine.gguf", "hf.co/acme/Slow/slow-Q4_0.gguf.part",
		"hf.co/acme/Slow/.slow-Q4_0.gguf.part.json")
	write(t, dir, ".lmstudio/models/acme/Studio/s-Q6_K.gguf")
	if err := (Record{From: "x"}).Write(filepath.Join(l.Dir, "mine.gguf")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"Big", "mine", "Slow"} {
		m, err := l.Find(name)
		if err == nil {
			err = l.Remove(m)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := os.ReadDir(l.Dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	m, err := l.Find("Studio")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Remove(m); err == nil || !strings.Contains(err.Error(), "the cache of LM Studio") {
		t.Errorf("removes what is another's: %v", err)
	}
}
