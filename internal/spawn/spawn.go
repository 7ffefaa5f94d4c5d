// Package spawn runs programs for comparisons: servers on free ports, and what ends by itself.
package spawn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/zincc-dev/zincc/internal/printable"
)

// Server is a program that serves on a port of this computer.
type Server struct {
	URL     string
	Command []string // with PORT
	cmd     *exec.Cmd
	log     tail
	ended   chan struct{} // closed when the process is gone
	status  error         // then
}

// errTaken says that another program has taken the port that was free.
var errTaken = errors.New("its port was taken")

// Start runs the command, in which PORT is replaced by a free port, and returns when the server says that it is well.
// It takes another port where a program is faster to take the first.
func Start(ctx context.Context, command []string) (*Server, error) {
	for tries := 3; ; tries-- {
		port, err := freePort()
		if err != nil {
			return nil, err
		}
		s, err := startOn(ctx, command, port)
		if tries == 1 || !errors.Is(err, errTaken) {
			return s, err
		}
	}
}

func startOn(ctx context.Context, command []string, port int) (*Server, error) {
	var args []string
	for _, a := range command {
		args = append(args, strings.ReplaceAll(a, "PORT", strconv.Itoa(port)))
	}
	s := &Server{URL: fmt.Sprintf("http://127.0.0.1:%d", port), Command: command, cmd: exec.Command(args[0], args[1:]...), ended: make(chan struct{})}
	s.cmd.Stdout, s.cmd.Stderr = &s.log, &s.log
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.status = s.cmd.Wait()
		close(s.ended)
	}()
	if err := s.ready(ctx); err != nil {
		s.Stop()
		if l, taken := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); taken != nil {
			err = fmt.Errorf("%w, %w", err, errTaken)
		} else {
			l.Close()
		}
		return nil, fmt.Errorf("%s: %w", strings.Join(args, " "), err)
	}
	return s, nil
}

// startTime is how long a server may take to load its model.
const startTime = 3 * time.Minute

func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, fmt.Errorf("not ready within %s", startTime))
	defer cancel()
	for {
		select {
		case <-s.ended: // whoever answers is another
			return fmt.Errorf("ended (%v): %s", s.status, s.log.last())
		default:
		}
		req, err := http.NewRequestWithContext(ctx, "GET", s.URL+"/health", nil)
		if err != nil {
			return err
		}
		r, err := http.DefaultClient.Do(req)
		if err == nil {
			r.Body.Close()
			if r.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ended:
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Stop asks the server to end and returns how it did. One that does not within a minute is killed.
func (s *Server) Stop() error {
	s.cmd.Process.Signal(syscall.SIGTERM) // in vain if it is gone
	select {
	case <-s.ended:
		return s.status
	case <-time.After(time.Minute):
	}
	s.Kill()
	return errors.New("did not end within a minute of SIGTERM")
}

// Kill ends the server at once and returns when it is gone.
func (s *Server) Kill() {
	s.cmd.Process.Kill()
	<-s.ended
}

// freePort returns a port that nobody listens on.
var freePort = func() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// tail keeps the end of what a program writes.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-4096):]
	return len(p), nil
}

// last is the last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.b)), "\n")
	return printable.Line(lines[len(lines)-1])
}

// Run runs a program; the last line of what it writes is the error's.
func Run(ctx context.Context, args ...string) error {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		return fmt.Errorf("%s: %w: %s", strings.Join(args, " "), err, printable.Line(lines[len(lines)-1]))
	}
	return nil
}

// Said is the last line that the server wrote.
func (s *Server) Said() string { return s.log.last() }
