package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The second table: seconds from the start of a process to the first token of its text,
// with and without what the system keeps of the model file (pages) and what programs and
// the driver keep of compiled pipelines; beside them how long the disk takes to read the
// file; and how much device memory the process takes, with the same context.

// program is one of the two.
type program struct {
	name string
	args []string // that continue a text by one token
}

// zincrun is the one in a folder.
func (o *options) zincrun(name, bin, model, plan string) program {
	return program{name, []string{filepath.Join(bin, "zincrun"), plan, "--model", model, "-p", prompt, "-n", "4"}}
}

// completion is llama.cpp's.
func (o *options) completion(model string) program {
	return program{"llama.cpp", append(strings.Fields(o.peer), "llama-completion", "-m", model, "-c", strconv.Itoa(int(o.ctx)), "-ctk", o.kv, "-ctv", o.kv,
		"-fa", "on", "-ngl", "99", "--temp", "0", "-no-cnv", "--no-display-prompt", "--no-warmup", "-p", prompt, "-n", "4")}
}

// prompt is short, so that what is measured is the start.
const prompt = "a"

// start adds a model's rows of the second table.
func (o *options) start(model string, programs []program, dir string, w io.Writer) error {
	size, seconds, err := readDisk(model)
	if err != nil {
		return err
	}
	// Two by two with the same pipelines: of the first, none are kept.
	cases := []struct {
		what             string
		pages, pipelines bool
	}{
		{"s to the first token, pages and pipelines not kept", false, false},
		{"s to the first token, pages not kept", false, true},
		{"s to the first token, pipelines not kept", true, false},
		{"s to the first token, both kept", true, true},
	}
	times := make([][2][]float64, len(cases))
	var memory [2][]float64
	for round := range o.starts {
		for i, p := range programs {
			for j, c := range cases {
				if !c.pages {
					if err := dropPages(model); err != nil {
						return err
					}
				}
				kept := filepath.Join(dir, fmt.Sprintf("kept-%s-%d-%d", p.name, round, j/2))
				t, m, err := firstToken(p, kept)
				if err != nil {
					return err
				}
				times[j][i] = append(times[j][i], t)
				memory[i] = append(memory[i], m)
			}
		}
	}
	for j, c := range cases {
		fmt.Fprintf(w, "| %s | %s | %s | %s |\n", nameOf(model), c.what, seconds2(times[j][0]), seconds2(times[j][1]))
	}
	fmt.Fprintf(w, "| %s | MiB of device memory, context %d, KV %s | %.0f | %.0f |\n", nameOf(model), o.ctx, o.kv, mean(memory[0]), mean(memory[1]))
	fmt.Fprintf(w, "| %s | s that the disk takes for the file of %.2f GB, at %.2f GB/s | %.2f | %.2f |\n",
		nameOf(model), size/1e9, size/seconds/1e9, seconds, seconds)
	return nil
}

func seconds2(x []float64) string { return fmt.Sprintf("%.2f +- %.2f", mean(x), deviation(x)) }

// firstToken runs p, with the folder kept for compiled pipelines, and returns the seconds
// to its first byte of text, and the device memory that it takes at most, in MiB.
func firstToken(p program, kept string) (seconds, memory float64, err error) {
	if err := os.MkdirAll(kept, 0o777); err != nil {
		return 0, 0, err
	}
	env := []string{"XDG_CACHE_HOME=" + kept, "__GL_SHADER_DISK_CACHE_PATH=" + kept, "MESA_SHADER_CACHE_DIR=" + kept}
	m, err := watchMemory()
	if err != nil {
		return 0, 0, err
	}
	first := &firstByte{from: time.Now()}
	err = run(first, env, p.args[0], p.args[1:]...)
	memory = m.stop()
	if err == nil && first.after == 0 {
		err = fmt.Errorf("%s wrote no text", p.name)
	}
	return first.after.Seconds(), memory, err
}

// firstByte is a writer that notes when the first byte came.
type firstByte struct {
	from  time.Time
	after time.Duration
}

func (f *firstByte) Write(b []byte) (int, error) {
	if f.after == 0 && len(b) > 0 {
		f.after = time.Since(f.from)
	}
	return len(b), nil
}

// memoryWatch follows the device memory in use.
type memoryWatch struct {
	cmd         *exec.Cmd
	mu          sync.Mutex
	first, most float64
	line        []byte
	seen        chan struct{} // closed at the first figure
	once        sync.Once
}

// watchMemory returns when the memory in use before is known.
func watchMemory() (*memoryWatch, error) {
	m := &memoryWatch{seen: make(chan struct{})}
	m.cmd = exec.Command("nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-lms", "50")
	m.cmd.Stdout = m
	if err := m.cmd.Start(); err != nil {
		return nil, err
	}
	select {
	case <-m.seen:
		return m, nil
	case <-time.After(10 * time.Second):
		m.stop()
		return nil, fmt.Errorf("nvidia-smi says nothing")
	}
}

func (m *memoryWatch) Write(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.line = append(m.line, b...)
	for {
		line, rest, ok := strings.Cut(string(m.line), "\n")
		if !ok {
			return len(b), nil
		}
		m.line = []byte(rest)
		if used, err := strconv.ParseFloat(strings.TrimSpace(line), 64); err == nil {
			m.most = max(m.most, used)
			m.once.Do(func() { m.first = used; close(m.seen) })
		}
	}
}

// stop returns by how much the memory grew at most, in MiB.
func (m *memoryWatch) stop() float64 {
	m.cmd.Process.Kill()
	m.cmd.Wait() // the error is that it was killed
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.most - m.first
}

// dropPages makes the system forget what it keeps of a file.
func dropPages(path string) error {
	if _, err := output(nil, "sync", path); err != nil {
		return err
	}
	_, err := output(nil, "dd", "if="+path, "iflag=nocache", "count=0", "status=none")
	return err
}

// readers is how many parts of a file are read at once.
const readers = 8

// readDisk reads a file past the pages that the system keeps.
func readDisk(path string) (size, seconds float64, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	if _, err := output(nil, "sync", path); err != nil {
		return 0, 0, err
	}
	const block = 4 << 20
	part := (info.Size()/block + readers) / readers // in blocks
	errs := make([]error, readers)
	from := time.Now()
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			_, errs[i] = output(nil, "dd", "if="+path, "of=/dev/null", "iflag=direct", fmt.Sprintf("bs=%d", block),
				fmt.Sprintf("skip=%d", int64(i)*part), fmt.Sprintf("count=%d", part), "status=none")
		})
	}
	all.Wait()
	for _, e := range errs {
		if e != nil {
			return 0, 0, e
		}
	}
	return float64(info.Size()), time.Since(from).Seconds(), nil
}
