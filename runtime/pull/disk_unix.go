//go:build unix

package pull

import "golang.org/x/sys/unix"

// freeSpace is what this user may still write on the disk of dir, in bytes.
func freeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
