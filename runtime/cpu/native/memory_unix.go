//go:build unix

package native

import "golang.org/x/sys/unix"

func alloc(size int64) ([]byte, error) {
	return unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func free(mem []byte) { _ = unix.Munmap(mem) } // of memory that Mmap returned

func protectExec(mem []byte) error { return unix.Mprotect(mem, unix.PROT_READ|unix.PROT_EXEC) }

func protectNone(mem []byte) error { return unix.Mprotect(mem, unix.PROT_NONE) }
