package gguf

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWhat(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"": "an empty file", "GGUF\x03": "a GGUF file", "PK\x03\x04...": "a zip archive (or a checkpoint of PyTorch)", "<!DOCTYPE html>": "a web page",
		"version https://git-lfs.github.com/spec/v1\n": "a pointer of Git LFS: git lfs pull fetches the file", "hello, w\u00f6rld\n": "a text", "gr\xc3": "a text",
		"\x40\x00\x00\x00\x00\x00\x00\x00{\"a\"": "a file of safetensors", "\x00\x00\x00\x00": "a file of zeros, such as a download that was broken off", "\x01\xff\x02": "",
	} {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := What(path); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	if got := What(dir); got != "a folder" {
		t.Errorf("a folder is %q", got)
	}
	if got := What(filepath.Join(dir, "none")); got != "" {
		t.Errorf("nothing is %q", got)
	}
}
