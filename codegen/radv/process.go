package radv

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/zincc-dev/zincc/plans"
)

// manifestDirs are where Vulkan's loader looks for drivers.
var manifestDirs = []string{"/usr/share/vulkan/icd.d", "/usr/local/share/vulkan/icd.d", "/etc/vulkan/icd.d"}

// manifest returns RADV's driver manifest for 64 bits.
func manifest() (string, error) {
	for _, dir := range manifestDirs {
		for _, name := range []string{"radeon_icd.json", "radeon_icd.x86_64.json", "radeon_icd.aarch64.json"} {
			path := filepath.Join(dir, name)
			if _, err := os.Stat(path); err == nil {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%w: there is no radeon_icd.json in %s", ErrNoDriver, strings.Join(manifestDirs, ", "))
}

// process is a child.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	send   *json.Encoder
	answer *os.File
	recv   *json.Decoder
	stderr *tail
	driver string
	has    plans.VulkanCapabilities // for the family
}

// start executes this program again as a child.
func start(ctx context.Context, family string) (*process, error) {
	icd, err := manifest()
	if err != nil {
		return nil, err
	}
	if !ready {
		return nil, fmt.Errorf("%w: this program does not begin with what starts it", ErrNoDriver)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command(self), stderr: &tail{}}
	p.cmd.Env = append(os.Environ(),
		childVariable+"=1",
		familyVariable+"="+family,
		"VK_DRIVER_FILES="+icd,
		"MESA_SHADER_CACHE_DISABLE=true",
		// The runtime's own cache of pipelines would be one of a device that is not there.
		"XDG_CACHE_HOME="+os.DevNull,
		"ZINC_VALIDATE=",
		"RADV_DEBUG=", "ACO_DEBUG=", "RADV_PERFTEST=",
	)
	p.cmd.Stdout, p.cmd.Stderr = p.stderr, p.stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, theirs, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.answer = answers
	p.cmd.ExtraFiles = []*os.File{theirs}
	err = p.cmd.Start()
	theirs.Close()
	if err != nil {
		answers.Close()
		return nil, err
	}
	p.send, p.recv = json.NewEncoder(p.in), json.NewDecoder(answers)
	var h hello
	defer context.AfterFunc(ctx, p.kill)()
	if err := p.recv.Decode(&h); err != nil {
		p.stop()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %s: %s", ErrNoDriver, icd, p.lastWords(err))
	}
	if h.Err != "" {
		p.stop()
		return nil, fmt.Errorf("%w: %s: %s", ErrNoDriver, icd, h.Err)
	}
	p.driver, p.has = h.Driver, h.Has
	return p, nil
}

func (p *process) compile(ctx context.Context, k *Kernel, what want) (answer, error) {
	defer context.AfterFunc(ctx, p.kill)()
	spirv := make([]byte, 0, 4*len(k.Words))
	for _, w := range k.Words {
		spirv = binary.LittleEndian.AppendUint32(spirv, w)
	}
	var a answer
	if err := p.send.Encode(request{k.Name, spirv, k.Consts, k.Wave, k.Full, what}); err != nil {
		return a, err
	}
	return a, p.recv.Decode(&a)
}

func (p *process) kill() { _ = p.cmd.Process.Kill() }

// stop ends the child, which it does on its own when its input does.
func (p *process) stop() {
	p.in.Close()
	p.answer.Close()
	_ = p.cmd.Wait() // how it ended no longer matters
}

// lastWords are the child's last line on standard error, err if there is none. The
// child must have ended.
func (p *process) lastWords(err error) string {
	lines := strings.Split(strings.TrimSpace(p.stderr.String()), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return last
	}
	return err.Error()
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

const maxTail = 4 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.Buffer.Write(p)
	if n := t.Len() - maxTail; n > 0 {
		t.Next(n)
	}
	return len(p), nil
}
