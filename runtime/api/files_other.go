//go:build !unix

package api

// files is how many files this process may have open: more than a server needs.
func files() uint64 { return 1 << 20 }
