package native

import "golang.org/x/sys/unix"

// advise asks for huge pages: fewer of them miss in the caches of addresses. A system that has
// none goes on with small ones.
func advise(mem []byte) { _ = unix.Madvise(mem, unix.MADV_HUGEPAGE) }
