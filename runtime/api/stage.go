package api

import (
	"fmt"
	"time"

	"github.com/zincc-dev/zincc/internal/progress"
)

// stage is what a model that is on its way to memory waits for: that it is compiled, that its weights are read.
type stage struct {
	what string
	at   progress.Report
}

// String is the stage for people: "compiling, 45 %, building kernels".
func (s *stage) String() string {
	text := s.what
	if n, known := s.at.Percent(); known {
		text += fmt.Sprintf(", %d %%", n)
	}
	if s.at.Part != "" {
		text += ", " + s.at.Part
	}
	return text
}

// fraction is how much of the stage is done, 0 to 1; nil where that is not known.
func (s *stage) fraction() *float64 {
	if s.at.Total <= 0 {
		return nil
	}
	f := min(1, float64(s.at.Done)/float64(s.at.Total))
	return &f
}

// watch keeps the stage of a model.
func (l *loaded) watch(what string) progress.Task {
	t := &stageTask{l, what}
	t.At(progress.Report{})
	return t
}

type stageTask struct {
	l    *loaded
	what string
}

func (t *stageTask) At(r progress.Report) { t.l.stage.Store(&stage{t.what, r}) }
func (t *stageTask) Done()                {}

// stage is that of a model that is being loaded, nil of any other.
func (p *pool) stage(s *Served) *stage {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.models[s]
	if l == nil || l.model != nil {
		return nil
	}
	if at := l.stage.Load(); at != nil {
		return at
	}
	return &stage{what: "loading"}
}

// errLoading says that a model is not there yet, and how far it is.
func errLoading(name string, at *stage) *Error {
	message := "the model is loading"
	if at != nil {
		message = fmt.Sprintf("the model %s is not loaded yet: %s", name, at)
	}
	return &Error{Kind: unavailable, Code: "loading", Retry: time.Second, Message: message}
}
