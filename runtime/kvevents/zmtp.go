package kvevents

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// The wire protocol of ZeroMQ, ZMTP 3.0 (rfc.zeromq.org/spec/23), as far as a PUB and a ROUTER socket need it, without
// security. Pure Go libraries take a frame's size from the peer as it stands, and write to one subscriber behind the
// other, so that one which does not read stops all.

// Bounds of what a peer may send, and of the time that it has.
const (
	mostFrame     = 4 << 10 // bytes
	mostFrames    = 8       // of a message
	handshakeTime = 10 * time.Second
	writeTime     = 10 * time.Second // for a message
)

// Bits of a frame's first byte.
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// conn is a connection with a peer.
type conn struct {
	net.Conn
	r *bufio.Reader
}

// greeting of version 3.0 with the mechanism NULL.
func greeting() []byte {
	g := make([]byte, 64)
	g[0], g[9], g[10] = 0xff, 0x7f, 3
	copy(g[12:], "NULL")
	return g
}

// handshake greets a peer as a socket of our type, and refuses one whose type does not go with it.
func handshake(c net.Conn, ours string, theirs ...string) (*conn, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	if _, err := c.Write(greeting()); err != nil {
		return nil, err
	}
	z := &conn{c, bufio.NewReaderSize(c, mostFrame)}
	var g [64]byte
	if _, err := io.ReadFull(z.r, g[:]); err != nil {
		return nil, err
	}
	if g[0] != 0xff || g[9]&1 == 0 || g[10] < 3 || string(bytes.TrimRight(g[12:32], "\x00")) != "NULL" {
		return nil, errors.New("the peer does not speak ZMTP 3 without security")
	}
	ready := property([]byte("\x05READY"), "Socket-Type", ours)
	if ours == "ROUTER" {
		ready = property(ready, "Identity", "")
	}
	if _, err := c.Write(frame(nil, flagCommand, ready)); err != nil {
		return nil, err
	}
	flags, body, err := z.frame()
	if err != nil {
		return nil, err
	}
	rest, ok := bytes.CutPrefix(body, []byte("\x05READY"))
	if flags != flagCommand || !ok {
		return nil, errors.New("the peer is not ready")
	}
	kind, err := socketType(rest)
	if err != nil {
		return nil, err
	}
	for _, t := range theirs {
		if kind == t {
			return z, c.SetDeadline(time.Time{})
		}
	}
	return nil, fmt.Errorf("a %.16q socket does not go with %s", kind, ours)
}

// property appends a property of a READY command.
func property(b []byte, name, value string) []byte {
	b = append(append(b, byte(len(name))), name...)
	return append(binary.BigEndian.AppendUint32(b, uint32(len(value))), value...)
}

// socketType finds the property that says what a peer is.
func socketType(b []byte) (string, error) {
	for len(b) > 0 {
		n := int(b[0])
		if len(b) < 1+n+4 {
			break
		}
		name, size := b[1:1+n], binary.BigEndian.Uint32(b[1+n:])
		b = b[1+n+4:]
		if uint64(size) > uint64(len(b)) {
			break
		}
		if bytes.EqualFold(name, []byte("Socket-Type")) {
			return string(b[:size]), nil
		}
		b = b[size:]
	}
	return "", errors.New("the peer does not say what it is")
}

// frame appends a frame.
func frame(b []byte, flags byte, body []byte) []byte {
	if len(body) > 255 {
		b = append(b, flags|flagLong)
		b = binary.BigEndian.AppendUint64(b, uint64(len(body)))
	} else {
		b = append(b, flags, byte(len(body)))
	}
	return append(b, body...)
}

// message makes the frames of a message.
func message(parts ...[]byte) []byte {
	var b []byte
	for i, p := range parts {
		flags := byte(flagMore)
		if i == len(parts)-1 {
			flags = 0
		}
		b = frame(b, flags, p)
	}
	return b
}

// frame reads a frame.
func (z *conn) frame() (flags byte, body []byte, err error) {
	if flags, err = z.r.ReadByte(); err != nil {
		return 0, nil, err
	}
	var size uint64
	if flags&flagLong != 0 {
		var b [8]byte
		_, err = io.ReadFull(z.r, b[:])
		size = binary.BigEndian.Uint64(b[:])
	} else {
		var b byte
		b, err = z.r.ReadByte()
		size = uint64(b)
	}
	if err != nil {
		return 0, nil, err
	}
	if size > mostFrame || flags&^(flagMore|flagLong|flagCommand) != 0 {
		return 0, nil, fmt.Errorf("a frame of %d bytes, flags %#x", size, flags)
	}
	body = make([]byte, size)
	_, err = io.ReadFull(z.r, body)
	return flags &^ flagLong, body, err
}

// message reads the next message, or command, as a message of one part.
func (z *conn) message() (parts [][]byte, command bool, err error) {
	for len(parts) < mostFrames {
		flags, body, err := z.frame()
		if err != nil {
			return nil, false, err
		}
		if flags&flagCommand != 0 {
			return [][]byte{body}, true, nil
		}
		if parts = append(parts, body); flags&flagMore == 0 {
			return parts, false, nil
		}
	}
	return nil, false, fmt.Errorf("a message of more than %d frames", mostFrames)
}

// send writes a message, in time.
func (z *conn) send(m []byte) error {
	if err := z.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return err
	}
	_, err := z.Write(m)
	return err
}
