// Package vkcheck compares the binding with github.com/vulkan-go/vulkan, which
// was generated from other files by another program. It needs cgo, so it is a
// module of its own.
package vkcheck

import (
	"reflect"
	"strings"
	"testing"
)

// structPair is one struct of Vulkan 1.0 in both bindings.
type structPair struct {
	c          string
	ours, peer reflect.Type
}

type constantPair struct {
	c          string
	ours, peer int64
}

func TestStructs(t *testing.T) {
	for _, p := range structPairs {
		c, ok := cStruct(p.peer)
		if !ok {
			t.Errorf("%s: the peer has no method that gives the C struct", p.c)
			continue
		}
		if p.ours.Size() != c.Size() {
			t.Errorf("sizeof(%s): %d, peer %d", p.c, p.ours.Size(), c.Size())
		}
		var fields []reflect.StructField
		for f := range c.Fields() {
			if f.Name != "_" { // cgo's padding
				fields = append(fields, f)
			}
		}
		if p.ours.NumField() != len(fields) {
			t.Errorf("%s: %d fields, peer %d", p.c, p.ours.NumField(), len(fields))
			continue
		}
		for i, f := range fields {
			ours := p.ours.Field(i)
			name := strings.TrimPrefix(f.Name, "_") // cgo marks Go keywords so
			if !strings.EqualFold(ours.Name, name) || ours.Offset != f.Offset || ours.Type.Size() != f.Type.Size() {
				t.Errorf("%s: field %s at %d of %d bytes, peer %s at %d of %d bytes", p.c,
					ours.Name, ours.Offset, ours.Type.Size(), name, f.Offset, f.Type.Size())
			}
		}
	}
	t.Logf("%d structs", len(structPairs))
}

// cStruct is the cgo struct behind a peer struct, from its method PassRef or
// Ref, which return a pointer to it. Methods of plain structs are on pointers.
func cStruct(peer reflect.Type) (reflect.Type, bool) {
	for _, name := range []string{"PassRef", "Ref"} {
		if m, ok := reflect.PointerTo(peer).MethodByName(name); ok {
			return m.Type.Out(0).Elem(), true
		}
	}
	return nil, false
}

func TestConstants(t *testing.T) {
	for _, p := range constantPairs {
		if p.ours != p.peer {
			t.Errorf("%s: %d, peer %d", p.c, p.ours, p.peer)
		}
	}
	t.Logf("%d constants", len(constantPairs))
}
