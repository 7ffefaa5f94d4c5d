// Package trust remembers which plans of machine code may run on this computer. A plan whose kernels
// are machine code is a program: whoever writes its code, its constants or its grids decides what it does. No
// reader of such a plan can prove that it stays within its memory. So a runtime accepts only plans
// that zincc made or checked here, and plans that the user told it to trust. This package keeps their
// checksums for each user.
package trust

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/zincc-dev/zincc/plans"
)

// accepted are the sums that this process trusts, without a file.
var accepted sync.Map

// Accept trusts a plan until this process ends: one that is a part of the program.
func Accept(p *plans.Plan) { accepted.Store(plans.RunSum(p), true) }

// Add trusts a plan for good. A plan without machine code needs no trust.
func Add(p *plans.Plan) error {
	if p.Require.Backend != plans.CPU {
		return nil
	}
	path, err := file(plans.RunSum(p))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// Check fails for a plan of machine code that is not trusted.
func Check(p *plans.Plan) error {
	if p.Require.Backend != plans.CPU {
		return nil
	}
	sum := plans.RunSum(p)
	if _, ok := accepted.Load(sum); ok {
		return nil
	}
	path, err := file(sum)
	if err == nil {
		_, err = os.Stat(path)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the plan holds machine code that was not made or checked on this computer: `zincc check` compares it with the compiler's own output, `zincrun trust` accepts it unchecked")
	}
	return fmt.Errorf("whether the plan's machine code is trusted cannot be looked up: %w", err)
}

// file is where the sum of a plan that is trusted is kept.
func file(sum [sha256.Size]byte) (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "zincc", "trusted", fmt.Sprintf("%x", sum)), nil
}
