package main

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"
)

// TestReadLine reads lines around the largest size, through a buffer that is smaller.
func TestReadLine(t *testing.T) {
	long, most := strings.Repeat("x", 41), strings.Repeat("y", 39)
	in := bufio.NewReaderSize(strings.NewReader("a\n\n"+long+"\n"+most+"\nb\r\n"+long+long+"\n"+"end"), 16)
	var have []string
	for {
		line, err := readLine(in, 40)
		if err == io.EOF {
			break
		}
		have = append(have, fmt.Sprint(line, err))
	}
	tooLong := fmt.Sprint("", errLongLine)
	want := []string{"a<nil>", "<nil>", tooLong, most + "<nil>", "b<nil>", tooLong, "end<nil>"}
	if fmt.Sprint(have) != fmt.Sprint(want) {
		t.Errorf("%q, want %q", have, want)
	}
}
