package objects

import (
	"context"

	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/plans/object"
)

// folder is where objects are kept that LLVM made on this computer.
const folder = "objects"

type fresh struct{}

// Fresh returns a context in which Of takes nothing from the user's cache folder: an object is one that this program
// holds, or that LLVM makes.
func Fresh(ctx context.Context) context.Context { return context.WithValue(ctx, fresh{}, true) }

// kept returns an object that was kept, nil if there is none that this user has kept.
func kept(ctx context.Context, key string) []byte {
	if ctx.Value(fresh{}) != nil {
		return nil
	}
	c, err := private.Open(folder)
	if err != nil {
		return nil
	}
	code := c.Read(key + ".o")
	if _, err := object.Read(code); err != nil {
		return nil
	}
	return code
}

// keep keeps an object. That it cannot is no error: it is made again then.
func keep(key string, code []byte) {
	if c, err := private.Open(folder); err == nil {
		_ = c.Write(key+".o", code)
	}
}
