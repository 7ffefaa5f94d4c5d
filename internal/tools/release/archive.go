package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"strings"
	"time"
)

// folders are those that files lie in, each before what is in it.
func folders(files []file) []file {
	var all []file
	seen := map[string]bool{"./": true}
	for _, f := range files {
		for i, c := range f.name {
			if name := f.name[:i+1]; c == '/' && !seen[name] {
				seen[name] = true
				all = append(all, file{name, 0o755, nil})
			}
		}
	}
	return all
}

// tarred packs files, with root as their owner. A name with a slash at its end is a folder.
func tarred(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		kind := byte(tar.TypeReg)
		if strings.HasSuffix(f.name, "/") {
			kind = tar.TypeDir
		}
		h := &tar.Header{Typeflag: kind, Name: f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: when, Uname: "root", Gname: "root", Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func tarball(files []file, when time.Time) ([]byte, error) {
	plain, err := tarred(files, when)
	if err != nil {
		return nil, err
	}
	return gzipped(plain)
}

func gzipped(data []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	err = w.Close()
	return b.Bytes(), err
}

func zipped(files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		to, err := w.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: when})
		if err != nil {
			return nil, err
		}
		if _, err := to.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
