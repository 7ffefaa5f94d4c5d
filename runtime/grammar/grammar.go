// Package grammar makes models write texts of a grammar: of a JSON schema, a GBNF grammar, a regular expression, a list
// of choices or the tool calls of a dialect. A Matcher follows one answer and says which tokens may come next. What it
// allows is exact: a token is allowed if and only if the answer can still become a text of the grammar with it.
//
// docs/structured-output.md says what grammars there are, what is refused, and how it works.
package grammar

import (
	"errors"
	"sync"
	"time"

	"github.com/zincc-dev/zincc/runtime/grammar/lex"
	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// MaxSource bounds the text of a grammar, in bytes.
const MaxSource = 4 << 20

// maxBuild bounds the time in which a grammar is made.
const maxBuild = 5 * time.Second

// Grammar is a language. It is safe for use by several goroutines.
type Grammar struct {
	mu      sync.Mutex
	machine *machine.Machine
	unique  bool // keys of JSON objects beside those that the machine counts must not come twice
}

// build calls front ends. It turns what breaks a limit into an error.
func build(f func(b *builder) (machine.Item, error)) (g *Grammar, err error) {
	defer catch(&err)
	b := &builder{pool: lex.NewPool(maxBuild)}
	root, err := f(b)
	if err != nil {
		return nil, err
	}
	g = &Grammar{machine: machine.New(b.pool, root), unique: b.unique}
	g.machine.Begin()
	return g, nil
}

// ErrTooComplex is what errors about limits are. They are errors.ErrUnsupported, too.
var ErrTooComplex = errors.New("the grammar is too complex")

type tooComplex struct{ why string }

func (e *tooComplex) Error() string { return ErrTooComplex.Error() + ": " + e.why }

func (e *tooComplex) Is(target error) bool {
	return target == ErrTooComplex || target == errors.ErrUnsupported
}

// catch makes an error of a panic with a *lex.LimitError.
func catch(err *error) {
	switch p := recover().(type) {
	case nil:
	case *lex.LimitError:
		*err = &tooComplex{p.What}
	default:
		panic(p)
	}
}

// Check says whether a text belongs to the grammar. If not, at is the length of the longest beginning that can still
// become one.
func (g *Grammar) Check(text []byte) (at int, ok bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer catch(&err)
	g.machine.Allow()
	w := walker{g: g, state: g.machine.Begin()}
	for i, b := range text {
		if i&0xfff == 0xfff {
			g.machine.Allow()
		}
		if !w.step(b) {
			return i, false, nil
		}
	}
	return len(text), w.state.Final(), nil
}

// walker is a place in a text.
type walker struct {
	g     *Grammar
	state *machine.State
	keys  keys
}

// step follows a byte; false where it is refused.
func (w *walker) step(b byte) bool {
	if w.g.unique && !w.keys.step(b, w.state) {
		return false
	}
	w.state = w.g.machine.Next(w.state, b)
	return w.state != nil && !(w.g.unique && w.keys.stuck(w.state))
}
