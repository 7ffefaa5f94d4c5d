package gguf

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// kinds are what people take for models, by how such files begin.
var kinds = []struct{ begins, what string }{
	{magic, "a GGUF file"},
	{"PK\x03\x04", "a zip archive (or a checkpoint of PyTorch)"},
	{"\x1f\x8b", "a gzip archive"},
	{"\x28\xb5\x2f\xfd", "a zstd archive"},
	{"version https://git-lfs", "a pointer of Git LFS: git lfs pull fetches the file"},
	{"<!DOCTYPE", "a web page"},
	{"<!doctype", "a web page"},
	{"<html", "a web page"},
	{"ggjt", "a model in a form older than GGUF"},
	{"tjgg", "a model in a form older than GGUF"},
	{"lmgg", "a model in a form older than GGUF"},
}

// What says in a few words what lies at path: a folder, an empty file, a zip archive and so on; "" if nobody knows.
func What(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	switch {
	case info.IsDir():
		return "a folder"
	case !info.Mode().IsRegular():
		return "no regular file"
	case info.Size() == 0:
		return "an empty file"
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head := make([]byte, 512)
	n, err := io.ReadFull(f, head)
	if err != nil && n == 0 {
		return ""
	}
	head = head[:n]
	for _, k := range kinds {
		if strings.HasPrefix(string(head), k.begins) {
			return k.what
		}
	}
	switch {
	case len(head) > 9 && head[8] == '{' && bytes.Equal(head[4:8], make([]byte, 4)):
		return "a file of safetensors"
	case len(bytes.Trim(head, "\x00")) == 0:
		return "a file of zeros, such as a download that was broken off"
	case isText(head):
		return "a text"
	}
	return ""
}

// isText says whether a text begins so; its last character may be cut.
func isText(b []byte) bool {
	for cut := 0; cut < utf8.UTFMax && cut < len(b); cut++ {
		if b := b[:len(b)-cut]; utf8.Valid(b) {
			return !bytes.ContainsFunc(b, func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n\f", r) })
		}
	}
	return false
}
