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
	compare bool // elements of arrays are compared
	decides bool // documents, of which only the end counts
}

// build calls front ends. It turns what breaks a limit into an error.
func build(f func(b *builder) (machine.Item, error)) (g *Grammar, err error) {
	defer catch(&err)
	b := &builder{pool: lex.NewPool(maxBuild)}
	root, err := f(b)
	if err != nil {
		return nil, err
	}
	g = &Grammar{machine: machine.New(b.pool, root), unique: b.unique, compare: b.compare, decides: b.decides}
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
	w := g.begin()
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
	outer int // arrays that have begun and are none of the state's
}

// begin is the place before a text.
func (g *Grammar) begin() walker {
	return walker{g: g, state: g.machine.Begin(), keys: keys{compare: g.compare}}
}

// follows says whether a grammar has conditions beside its machine.
func (g *Grammar) follows() bool { return g.unique || g.compare }

// step follows a byte; false where it is refused.
func (w *walker) step(b byte) bool { return w.follow(b, !w.g.decides) }

// follow is step. ahead: arrays whose elements can no longer differ are refused before these end.
func (w *walker) follow(b byte, ahead bool) bool {
	if w.g.follows() && !w.keys.step(b, w.state) && w.g.unique {
		return false
	}
	if w.state = w.g.machine.Next(w.state, b); w.state == nil {
		return false
	}
	if w.g.compare {
		if w.state = w.compare(w.state, ahead); w.state == nil {
			return false
		}
	}
	return !(w.g.unique && w.keys.stuck(w.state))
}
