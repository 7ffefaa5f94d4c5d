// Package trust remembers which plans may run on this computer. A plan is a program: its kernels take sizes and
// addresses as the plan says them, and no reader of a plan from elsewhere can prove how far a kernel reaches. So a plan
// of any backend runs only if its digest is recorded here: zincc has made it or reproduced it, or the user has said
// so. A digest is of all bytes of a plan.
package trust

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/zincc-dev/zincc/internal/private"
	"github.com/zincc-dev/zincc/plans"
)

// accepted are digests that this process trusts, without a record.
var accepted sync.Map

// Accept trusts a digest until this program ends: zincc has told it.
func Accept(d plans.Digest) { accepted.Store(d, true) }

// Add records a digest for good.
func Add(d plans.Digest) error {
	dir, err := folder()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := check(dir); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, d.String()), nil, 0o600)
}

// UnknownError says that nobody has made, checked or accepted a plan on this computer.
type UnknownError struct {
	// Why there is no record, where it is not that nobody has made one.
	Why error
}

func (e *UnknownError) Error() string {
	text := "the plan was not made or checked on this computer: `zincc check` compares it with the compiler's own output, `zincrun trust` accepts it unchecked"
	if e.Why != nil {
		text += fmt.Sprintf(" (%v)", e.Why)
	}
	return text
}

// Check fails with UnknownError for a plan that is not trusted. A plan that was not decoded from bytes is this
// program's own: it has made it, or it is a part of it, as in programs of zincc compile --emit-go.
func Check(p *plans.Plan) error {
	d, decoded := p.Digest()
	if _, ok := accepted.Load(d); ok || !decoded {
		return nil
	}
	dir, err := folder()
	if err == nil {
		_, err = os.Lstat(filepath.Join(dir, d.String()))
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &UnknownError{}
	case err == nil:
		err = check(dir)
	}
	if err != nil {
		return &UnknownError{err}
	}
	return nil
}

// folder is where records are: an empty file for each digest.
func folder() (string, error) {
	dir, err := os.UserConfigDir()
	return filepath.Join(dir, "zincc", "trusted"), err
}

// check fails if others may have written records.
func check(dir string) error {
	return errors.Join(private.Check(filepath.Dir(dir)), private.Check(dir))
}
