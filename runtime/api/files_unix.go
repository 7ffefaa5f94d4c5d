//go:build unix

package api

import "golang.org/x/sys/unix"

// files is how many files this process may have open.
func files() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 256
	}
	return uint64(l.Cur)
}
