package library

import "testing"

func FuzzParseRef(f *testing.F) {
	for _, s := range []string{"hf.co/a/b:Q4_0", "qwen3:8b", "https://x.example/a%2f..%2fb.gguf", "hf.co/a/b/c/../d.gguf", "http://[::1]:5/x.gguf"} {
		f.Add(s, "x.gguf")
	}
	f.Fuzz(func(t *testing.T, s, file string) {
		r, err := ParseRef(s)
		if err != nil {
			return
		}
		if place, err := r.Place(file); err == nil && !IsLocalName(place) {
			t.Errorf("%q lies at %q", s, place)
		}
		if again, err := ParseRef(r.String()); err != nil || again != r {
			t.Errorf("%q: %+v is read as %+v, %v", s, r, again, err)
		}
	})
}
