package schema

import (
	"errors"
	"strings"
)

// Error says what of a schema cannot be used, and where.
type Error struct {
	Keyword string // "" where no keyword is at fault
	Path    string // JSON pointer of the schema that has the keyword
	Problem string
	Refused bool // the schema may be good: this is not supported
}

func (e *Error) Error() string {
	at := e.Path
	if at == "" {
		at = "/"
	}
	if e.Keyword == "" {
		return "schema: " + at + ": " + e.Problem
	}
	return "schema: " + at + ": " + e.Keyword + ": " + e.Problem
}

// Is makes refusals errors.ErrUnsupported.
func (e *Error) Is(target error) bool { return e.Refused && target == errors.ErrUnsupported }

// escapePointer writes a name as a part of a JSON pointer.
func escapePointer(name string) string { return pointerEscapes.Replace(name) }

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")
