package grammar

import (
	"container/list"
	"crypto/sha256"
	"encoding/json"
	"sync"
	"sync/atomic"

	"github.com/zincc-dev/zincc/runtime/grammar/machine"
)

// Kind is what a Source is written in.
type Kind string

// The kinds of sources.
const (
	JSONSchema Kind = "json_schema"
	GBNFText   Kind = "grammar"
	Pattern    Kind = "regex"
	Choices    Kind = "choice"
	Free       Kind = "text" // any text without Text in it
)

// Source is what a grammar is made of.
type Source struct {
	Kind  Kind
	Text  string   // of all but Choices
	Texts []string // of Choices
	// Leads are what an answer begins with, one of them, before the text of the grammar: marks in angle brackets with
	// bars are control tokens where the vocabulary has these. None: the answer begins with the text.
	Leads []string
	// Calls are calls of tools that the answer may be instead; behind Free they may follow.
	Calls *Calls
	// OnlyCalls: the answer is calls.
	OnlyCalls bool
}

// AnyObject is the source of any JSON object.
func AnyObject() Source { return Source{Kind: JSONSchema, Text: `{"type":"object"}`} }

// makers make the items of each kind.
var makers = map[Kind]func(b *builder, s *Source) (machine.Item, error){
	JSONSchema: func(b *builder, s *Source) (machine.Item, error) {
		r, err := b.schema([]byte(s.Text), SchemaOptions{})
		if err != nil {
			return machine.Item{}, err
		}
		return r.Root, nil
	},
	GBNFText: func(b *builder, s *Source) (machine.Item, error) { return b.gbnf(s.Text) },
	Pattern:  func(b *builder, s *Source) (machine.Item, error) { return b.regex(s.Text) },
	Choices:  func(b *builder, s *Source) (machine.Item, error) { return b.choice(s.Texts) },
	Free: func(b *builder, s *Source) (machine.Item, error) {
		return b.plain(b.pool.Not(b.pool.Cat(b.pool.Any(), b.pool.Text(s.Text), b.pool.Any())))
	},
}

// Make returns the grammar of a source. Those that were made last are kept, until they take too much memory. The error
// is that of the kind's function.
func Make(s Source) (*Grammar, error) { return made.get(s) }

func (s *Source) make() (*Grammar, error) {
	return build(func(b *builder) (machine.Item, error) {
		var ways [][]machine.Item
		if !s.OnlyCalls {
			item, err := makers[s.Kind](b, s)
			if err != nil {
				return item, err
			}
			if len(s.Leads) == 0 {
				ways = append(ways, []machine.Item{item})
			}
			for _, lead := range s.Leads {
				ways = append(ways, append(b.marks(lead), item))
			}
		}
		if s.Calls != nil {
			more, err := s.Calls.sequences(b)
			if err != nil {
				return machine.Item{}, err
			}
			for _, way := range more {
				if s.Kind == Free && !s.OnlyCalls {
					way = append([]machine.Item{ways[0][0]}, way...)
				}
				ways = append(ways, way)
			}
		}
		if len(ways) == 1 && len(ways[0]) == 1 {
			return ways[0][0], nil
		}
		return machine.Of(machine.NewSymbol(func() [][]machine.Item { return ways })), nil
	})
}

// What a cache keeps: so many grammars, and bytes of all of them.
const (
	keptGrammars = 64
	keptMemory   = 256 << 20
)

// A grammar takes so many bytes for each byte of its source, and for each state that its machine has built.
const (
	sourceBytes = 96
	stateBytes  = 2 << 10
)

// made are the grammars that were made last.
var made = cache{bytes: keptMemory}

type cache struct {
	bytes   int64 // at most
	mu      sync.Mutex
	entries map[[32]byte]*list.Element
	order   list.List // the one that was asked for last in front
}

type entry struct {
	key     [32]byte
	source  int64 // bytes of its source
	once    sync.Once
	grammar atomic.Pointer[Grammar]
	err     error
}

func (c *cache) get(s Source) (*Grammar, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	e := c.entry(sha256.Sum256(text), int64(len(text)))
	e.once.Do(func() {
		g, err := s.make()
		e.grammar.Store(g)
		e.err = err
		c.mu.Lock()
		defer c.mu.Unlock()
		c.shrink()
	})
	return e.grammar.Load(), e.err
}

func (c *cache) entry(key [32]byte, source int64) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.entries == nil {
		c.entries = map[[32]byte]*list.Element{}
	}
	c.shrink()
	if e := c.entries[key]; e != nil {
		c.order.MoveToFront(e)
		return e.Value.(*entry)
	}
	e := &entry{key: key, source: source}
	c.entries[key] = c.order.PushFront(e)
	if c.order.Len() > keptGrammars {
		c.drop(c.order.Back())
	}
	return e
}

// shrink drops grammars that, with what was asked for later, take too many bytes. Answers that have begun keep theirs.
func (c *cache) shrink() {
	total := int64(0)
	for e := c.order.Front(); e != nil; {
		next := e.Next()
		if g := e.Value.(*entry).grammar.Load(); g != nil {
			if total += e.Value.(*entry).source*sourceBytes + g.machine.Built()*stateBytes; total > c.bytes {
				c.drop(e)
			}
		}
		e = next
	}
}

func (c *cache) drop(e *list.Element) {
	delete(c.entries, e.Value.(*entry).key)
	c.order.Remove(e)
}
