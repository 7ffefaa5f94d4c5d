// Package kerneltest runs kernels for the tests of the packages that hold them: whole groups beside the oracle (Case),
// and candidates on what computes them (Launch). All of it runs under the race detector of package racetest.
package kerneltest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/zincc-dev/zincc/codegen/kernel/racetest"
	"github.com/zincc-dev/zincc/codegen/radv"
)

// Main is the TestMain of a package that holds kernels. spare are the barriers that order nothing which others do not
// order.
func Main(m *testing.M, spare ...racetest.Spare) {
	radv.Main()
	run := func() (int, error) {
		code, err := racetest.Main(m.Run, spare...)
		if err != nil || code != 0 || !racetest.All() {
			return code, err
		}
		if !testing.Short() {
			err = mesa.unseen()
		}
		return code, errors.Join(err, missing())
	}
	for _, d := range devices {
		inner := run
		run = func() (int, error) { return d.open(inner) }
	}
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// Takes reports whether a sweep has its case i: of -short one of n, by turns, unless everything is emulated.
func Takes(i, n int) bool { return !testing.Short() || *everything || i%n == 0 }

// Some returns the cases that a sweep has: of -short each fourth.
func Some[T any](cases []T) (list []T) {
	for i, c := range cases {
		if Takes(i, 4) {
			list = append(list, c)
		}
	}
	return list
}
