package ir

import (
	"errors"
	"fmt"
)

// Unsupported returns an error for a model, tensor type or feature that zincc
// does not support, as opposed to a broken one. errors.Is(err,
// errors.ErrUnsupported) holds for it.
func Unsupported(format string, args ...any) error {
	return unsupported(fmt.Sprintf(format, args...))
}

type unsupported string

func (u unsupported) Error() string { return string(u) }

func (u unsupported) Is(target error) bool { return target == errors.ErrUnsupported }
