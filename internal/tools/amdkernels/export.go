package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/zincc-dev/zincc/internal/rdna"
)

// exported is a launch for another emulator, as a line of JSON. Behind it are the bytes of its buffers, and then, as
// the kernel left them, of those that are written.
type exported struct {
	Kernel    string
	Gen       string
	Code      []uint32
	Rsrc2     uint32
	LDS       int
	Grid      [3]int
	Workgroup int
	Inline    []int // dwords of the arguments' addresses that lie in scalar registers
	InlineAt  int
	Args      []int // buffers
	Buffers   []exportedBuffer
}

type exportedBuffer struct {
	Bytes    int
	Writable bool
}

// most of what an exported launch has.
const mostExported = 48 << 20

// exporter writes launches into a folder.
type exporter struct {
	dir string
	n   atomic.Int64
}

// write writes a launch whose buffers are as the kernel left them; before has them in the order of the arguments.
// Launches that only this emulator can run are left out: of waves of 64, with scratch memory, with addresses behind a
// pointer; and those with moves of lanes that tinygrad lacks, or does lane by lane within one register, so that a lane
// reads what the lane before it has written.
func (x *exporter) write(name string, gen rdna.Gen, m *rdna.Kernel, l *rdna.Launch, before [][]byte) (err error) {
	if m.Wave != 32 || m.Scratch > 0 || m.PushAt >= 0 || m.GridAt >= 0 {
		return nil
	}
	lacks := false
	l.Program.Insts(func(in *rdna.Inst) {
		text := in.String()
		words := strings.Fields(text)
		inPlace := strings.Contains(words[0], "_dpp") && words[1] == words[2]
		lacks = lacks || inPlace || strings.Contains(text, "row_xmask") || strings.Contains(text, "row_share") || strings.HasPrefix(text, "buffer_")
	})
	if lacks {
		return nil
	}
	e := exported{Kernel: name, Gen: gen.String(), Code: m.Code, Rsrc2: m.Rsrc2, LDS: m.LDS, Grid: l.Grid, Workgroup: l.Workgroup, InlineAt: m.InlineAt}
	for i := range 64 {
		if m.Inline>>i&1 == 1 {
			e.Inline = append(e.Inline, i)
		}
	}
	index, bytes := map[*rdna.Buffer]int{}, 0
	var contents [][]byte
	var after [][]byte
	for i, b := range l.Args {
		if _, had := index[b]; !had {
			index[b] = len(contents)
			contents = append(contents, before[i])
			e.Buffers = append(e.Buffers, exportedBuffer{len(b.Data), b.Writable})
			bytes += len(b.Data)
			if b.Writable {
				after = append(after, b.Data)
			}
		}
		e.Args = append(e.Args, index[b])
	}
	if bytes > mostExported {
		return nil
	}
	f, err := os.Create(filepath.Join(x.dir, fmt.Sprintf("%03d.launch", x.n.Add(1))))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := json.NewEncoder(f).Encode(&e); err != nil {
		return err
	}
	for _, b := range append(contents, after...) {
		if _, err := f.Write(b); err != nil {
			return err
		}
	}
	return nil
}
