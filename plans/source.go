package plans

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/zincc-dev/zincc/internal/mapped"
	"github.com/zincc-dev/zincc/ir/gguf"
)

// Source supplies the bytes of a plan's weights, in the form of the GGUF, from the
// model file or from the plan itself.
type Source struct {
	plan    *Plan
	file    *gguf.File // nil when the plan embeds its weights
	paths   []string   // of the files that hold the weights; none for a plan that was not read from a file
	infos   []os.FileInfo
	weights map[string]*Weight
}

// OpenSource finds the weights of p, which was read from planPath: in the plan,
// else in model if that is not empty, else in the file from which the plan was compiled.
// It looks for that file at its old path, as given and absolute, then beside the plan. The model must
// have the same header; the data of its tensors is not checked.
func OpenSource(p *Plan, planPath, model string) (*Source, error) {
	s := &Source{plan: p, weights: map[string]*Weight{}}
	for i := range p.Weights {
		s.weights[p.Weights[i].Name] = &p.Weights[i]
	}
	if len(p.Embedded) > 0 && model == "" {
		if p.info != nil {
			s.paths, s.infos = []string{planPath}, []os.FileInfo{p.info}
		}
		return s, nil
	}
	f, err := openModel(p, planPath, model, gguf.Open)
	if err != nil {
		return nil, err
	}
	s.file, s.paths, s.infos = f, f.Shards(), f.Infos()
	return s, nil
}

// OpenModelHeader opens the model of p without its weights; it looks for the file as
// OpenSource does.
func OpenModelHeader(p *Plan, planPath, model string) (*gguf.File, error) {
	return openModel(p, planPath, model, gguf.OpenHeader)
}

func openModel(p *Plan, planPath, model string, open func(path string) (*gguf.File, error)) (*gguf.File, error) {
	m := &p.Header.Model
	if model != "" {
		return openSame(m, planPath, model, open)
	}
	var first error // of a file that is there
	for _, path := range []string{m.Path, m.Absolute, filepath.Join(filepath.Dir(planPath), filepath.Base(m.Path))} {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			continue
		}
		f, err := openSame(m, planPath, path, open)
		if err == nil {
			return f, nil
		}
		if first == nil {
			first = fmt.Errorf("%w; name the model with --model", err)
		}
	}
	if first == nil {
		first = fmt.Errorf("%s: the model %s is not where it was at compilation, nor beside the plan; name it with --model", planPath, m.Path)
	}
	return nil, first
}

// openSame opens a model that must be m.
func openSame(m *Model, planPath, path string, open func(path string) (*gguf.File, error)) (*gguf.File, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	if fp := f.Fingerprint(); hex.EncodeToString(fp[:]) != m.Fingerprint {
		f.Close()
		return nil, fmt.Errorf("%s: not the model that %s was compiled from (fingerprint %x, want %.12s)", path, planPath, fp[:6], m.Fingerprint)
	}
	return f, nil
}

// Files are the paths of the model's files; none where the plan holds the weights.
func (s *Source) Files() []string {
	if s.file == nil {
		return nil
	}
	return s.file.Shards()
}

// Identity identifies the files with the weights, in their state when they were opened. Another model, or a file
// written since, has another identity. It does not depend on the bytes of tensors.
func (s *Source) Identity() ([32]byte, error) {
	if len(s.infos) == 0 {
		return [32]byte{}, errors.New("the plan was not read from a file")
	}
	text := []byte(s.plan.Header.Model.Fingerprint)
	for _, info := range s.infos {
		text = fmt.Appendf(text, " %d %d", info.Size(), info.ModTime().UnixNano())
	}
	return sha256.Sum256(text), nil
}

// Unchanged returns an error if a path of the files with the weights now leads to another file, or if a file was
// written since it was opened.
func (s *Source) Unchanged() error {
	for i, path := range s.paths {
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		if was := s.infos[i]; !os.SameFile(info, was) || info.Size() != was.Size() || !info.ModTime().Equal(was.ModTime()) {
			return errors.New("the model file was written meanwhile")
		}
	}
	return nil
}

// Read calls do, which reads bytes that Weight has returned, in this goroutine. A file that was cut meanwhile is an
// error that names it.
func (s *Source) Read(do func() error) error {
	err := mapped.Read(do)
	if errors.Is(err, mapped.ErrCut) && len(s.paths) > 0 {
		err = fmt.Errorf("%s: %w", s.paths[0], err)
	}
	return err
}

// Weight returns the bytes of the tensor. They are valid until Close, and whoever reads them does so in Read: they may
// be mapped.
func (s *Source) Weight(name string) ([]byte, error) {
	w := s.weights[name]
	if w == nil {
		return nil, fmt.Errorf("tensor %q is not in the plan", name)
	}
	if s.file == nil {
		if w.At < 0 || w.At > int64(len(s.plan.Embedded))-w.Size {
			return nil, fmt.Errorf("tensor %q is not embedded in the plan", name)
		}
		return s.plan.Embedded[w.At : w.At+w.Size], nil
	}
	t, ok := s.file.Tensor(name)
	if !ok || t.Type != w.DType || t.Size != w.Size {
		return nil, fmt.Errorf("%s: tensor %q is not as the plan has it", s.file.Path, name)
	}
	var data []byte
	err := s.Read(func() error { data = s.file.Data(t); return nil })
	return data, err
}

// Close unmaps the model file.
func (s *Source) Close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}
