package sse

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func readAll(r io.Reader) (all []string, err error) {
	e := NewReader(r)
	for {
		data, err := e.Next()
		if err != nil {
			return all, err
		}
		all = append(all, string(data))
	}
}

func TestEvents(t *testing.T) {
	for _, c := range []struct {
		name, stream string
		want         []string
		err          error
	}{
		{"none", "", nil, io.EOF},
		{"two", "data: a\n\ndata: b\n\n", []string{"a", "b"}, io.EOF},
		{"ends of lines", "data: a\r\n\r\ndata: b\r\rdata: c\n\n", []string{"a", "b", "c"}, io.EOF},
		{"lines of data", "data: a\ndata\ndata:b\n\n", []string{"a\n\nb"}, io.EOF},
		{"one space is cut", "data:  a \n\n", []string{" a "}, io.EOF},
		{"comments and other fields", ": keep-alive\n\nevent: x\nid: 1\n\nevent: y\ndata: a\nretry: 5\n\n", []string{"a"}, io.EOF},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"a"}, io.EOF},
		{"empty data", "data\n\ndata:\n\n", []string{"", ""}, io.EOF},
		{"cut off in an event", "data: a\n\ndata: b\n", []string{"a"}, io.ErrUnexpectedEOF},
		{"cut off in a line", "data: a\n\ndat", []string{"a"}, io.ErrUnexpectedEOF},
		{"too long a line", "data: " + strings.Repeat("x", maxEvent) + "\n\n", nil, ErrTooLong},
		{"too many lines", strings.Repeat("data: "+strings.Repeat("x", 1000)+"\n", 1100), nil, ErrTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := readAll(strings.NewReader(c.stream))
			if !slices.Equal(got, c.want) || err != c.err {
				t.Errorf("%q, %v; want %q, %v", got, err, c.want, c.err)
			}
		})
	}
}

// An event is there when its last byte is: the reader does not wait for what may follow.
func TestEventsDoNotWait(t *testing.T) {
	for _, end := range []string{"\n\n", "\r\r", "\r\n\r\n"} {
		r, w := io.Pipe()
		e := NewReader(r)
		go io.WriteString(w, "data: a"+end)
		if got, err := e.Next(); string(got) != "a" || err != nil {
			t.Errorf("%q: %q, %v", end, got, err)
		}
		w.Close()
	}
}

// naiveEvents is what the stream means, read as a whole.
func naiveEvents(stream string) (all []string, whole bool) {
	stream = strings.TrimPrefix(stream, "\ufeff")
	stream = strings.ReplaceAll(strings.ReplaceAll(stream, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(stream, "\n")
	var data []string
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if data != nil {
				all = append(all, strings.Join(data, "\n"))
			}
			data = nil
			continue
		}
		if line == "data" {
			data = append(data, "")
		} else if value, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(value, " "))
		}
	}
	return all, strings.HasSuffix(stream, "\n\n") || strings.Trim(stream, "\n") == ""
}

func FuzzEvents(f *testing.F) {
	for _, s := range []string{"data: a\n\ndata: b\n\n", "data: a\r\n\r\n: x\r\rdata\n\n", "\ufeffdata:x\n\nev", "\r\n\n\rdata: a\n", "\ufeff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, stream []byte) {
		if len(stream) > maxEvent/2 {
			return // longer than an event may be
		}
		want, whole := naiveEvents(string(stream))
		for name, r := range map[string]io.Reader{
			"at once": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)), "by halves": iotest.HalfReader(bytes.NewReader(stream)),
		} {
			got, err := readAll(r)
			if !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
			if (err == io.EOF) != whole {
				t.Errorf("%s: %v; whole: %v", name, err, whole)
			}
		}
	})
}
